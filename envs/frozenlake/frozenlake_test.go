package frozenlake

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

func instance(group int64) draw.Address {
	return draw.Address{Seed: 1, Purpose: draw.Instance, Group: group}
}

func chance(group, member int64) draw.Address {
	return draw.Address{Seed: 1, Purpose: draw.Chance, Group: group, Member: member}
}

func index(action string) int { return slices.Index(moves, action) }

func mustNew(t *testing.T, options string) envs.Environment {
	t.Helper()
	env, err := envs.New(Name, json.RawMessage(options))
	require.NoError(t, err)
	return env
}

// onLake is an environment with one lake.
func onLake(t *testing.T, layout, rest string) envs.Environment {
	t.Helper()
	encoded, err := json.Marshal(layout)
	require.NoError(t, err)
	return mustNew(t, `{"layout":`+string(encoded)+rest+`}`)
}

func TestEpisode(t *testing.T) {
	const layout = "SFH\nFFG"
	env := onLake(t, layout, `,"slippery":false`)
	e := env.Reset(instance(1), chance(1, 0))
	require.Equal(t, "P_O\n__G", e.Observation())
	require.Equal(t, envs.Outcome{}, e.Step("Left"), "against the edge")
	require.Equal(t, envs.Outcome{Effective: true}, e.Step("Right"))
	require.Equal(t, "_PO\n__G", e.Observation(), "the start is an ordinary cell")
	require.Equal(t, "SFH\nFFG\n1", e.StateKey())
	hole := env.Reset(instance(1), chance(1, 0))
	hole.Step("Right")
	require.Equal(t, envs.Outcome{Done: true, Effective: true}, hole.Step("Right"))
	require.Equal(t, "__X\n__G", hole.Observation())
	require.Panics(t, func() { hole.Step("Left") })
	e.Step("Down")
	require.Equal(t, envs.Outcome{Reward: 1, Done: true, Effective: true, Success: true}, e.Step("Right"))
	require.Equal(t, []string{"__O", "__√"}, e.(envs.Gridded).Grid())
	require.Panics(t, func() { env.Cases()[0].Step("left") })
	canonical, ok := env.Cases()[0].Legal("uP")
	require.True(t, ok)
	require.Equal(t, "Up", canonical)
}

func TestObservationForms(t *testing.T) {
	const layout = "SFH\nFFG\nFHF"
	for form, want := range map[string]string{
		"coord":      "P (0,0)\nG (1,2)\nO (0,2) (2,1)",
		"grid_coord": "P_O\n__G\n_O_\nP (0,0)\nG (1,2)\nO (0,2) (2,1)",
	} {
		require.Equal(t, want, onLake(t, layout, `,"observation":"`+form+`"`).Cases()[0].Observation())
	}
	require.Equal(t, "P (0,0)\nG (0,1)\nO none", onLake(t, "SG", `,"observation":"coord"`).Cases()[0].Observation())
}

func TestInstances(t *testing.T) {
	env := mustNew(t, `{"instances":6}`)
	seen := map[string]bool{}
	for group := range int64(6) {
		seen[env.Reset(draw.Address{Seed: 9, Iteration: 4, Group: group}, draw.Address{}).StateKey()] = true
	}
	cases := map[string]bool{}
	for _, e := range env.Cases() {
		cases[e.StateKey()] = true
	}
	require.Equal(t, cases, seen)
	unlimited := mustNew(t, "")
	require.Len(t, unlimited.Cases(), 64)
	require.Equal(t, unlimited.Reset(instance(3), chance(3, 0)).StateKey(), unlimited.Reset(draw.Address{Seed: 1, Purpose: draw.Instance, Group: 3, Member: 7}, chance(3, 7)).StateKey())
}

// No state is wider, in the starter's tokens, than what widths are made from.
func TestWidest(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	for _, options := range []string{"", `{"observation":"coord","frozen_probability":0.2}`, `{"observation":"grid_coord","size":12}`} {
		env := mustNew(t, options)
		widest := 0
		for _, e := range env.(*FrozenLake).Widest() {
			widest = max(widest, len(tok.EncodePlain(e.Observation())))
		}
		for k := range int64(60) {
			e := env.Reset(instance(k), chance(k, 0))
			for n := 0; n < 10 && !e.Done(); n++ {
				require.LessOrEqual(t, len(tok.EncodePlain(e.Observation())), widest)
				e.Step(moves[n*n%4])
			}
		}
	}
	widths, err := envs.MaxPromptTokens(mustNew(t, ""), tok, envs.Protocol{Think: true}, 2, 32)
	require.NoError(t, err)
	t.Log("prompt tokens of a 4×4 lake by turn:", widths)
	require.LessOrEqual(t, widths[0], 192)
}

func TestOptions(t *testing.T) {
	for options, problems := range map[string][]string{
		`{"slipery":true}`:                           {`did you mean "slippery"?`},
		`{"size":1,"frozen_probability":1.5}`:        {`size: found 1, want from 2 to 50`, `frozen_probability: found 1.5, want from 0 to 1`},
		`{"success_rate":-0.1,"slippery":1}`:         {`slippery: found 1, want true or false`, `success_rate: found -0.1`},
		`{"observation":"grids"}`:                    {`did you mean "grid"?`},
		`{"instances":1.5,"max_actions_per_turn":0}`: {`instances: found 1.5, want an integer`, `max_actions_per_turn: found 0`},
		`{"layout":"SFG\nFF"}`:                       {`layout: found 2 cells in line 2, want 3 as in line 1`},
		`{"layout":"SFG\nFxF"}`:                      {`layout: found 'x' in line 2, column 2, want one of the glyphs SFHG`},
		`{"layout":"SFG\nFSF"}`:                      {`found 'S' in line 2, column 2, want one start; the first is in line 1, column 1`},
		`{"layout":"FFG"}`:                           {`found no start`},
		`{"layout":"SFG\n"  ,"size":0}`:              {`size: found 0, want from 2 to 50`},
		`{"layout":"SFG\nF G"}`:                      {`found ' ' in line 2, column 2`},
		`{"layout":"sfg"}`:                           {`found 's' in line 1, column 1, want one of the glyphs SFHG`},
		`{"instances":-1,"pool":1048577}`:            {`instances: found -1, want from 0 to 1048576`, `pool: found 1048577`},
		`{"layout":"SFF"}`:                           {`found no goal`},
		`{"layout":"SHG"}`:                           {`found no way from S to G that has no hole`},
	} {
		_, err := envs.New(Name, json.RawMessage(options))
		var wrong *envs.OptionsError
		require.ErrorAs(t, err, &wrong, options)
		require.Len(t, wrong.Problems, len(problems), err.Error())
		for _, p := range problems {
			require.ErrorContains(t, err, p)
		}
	}
}

// Whatever a layout holds, it is refused with a place or is a lake.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "SFFF\nFHFH\nFFFH\nHFFG", "S\r\nG\r\n", "SG\n\n", "\xff", "SFG\nHH"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lake, err := Parse(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		again, err := Parse(strings.Join(lake.Rows(), "\n"))
		require.NoError(t, err)
		require.Equal(t, lake, again)
		for _, actions := range lake.Transitions(Slip{Slippery: true, SuccessRate: 0.5}) {
			for _, outcomes := range actions {
				sum := 0.0
				for _, o := range outcomes {
					sum += o.Probability
				}
				require.InDelta(t, 1, sum, 1e-12)
			}
		}
	})
}

// The warm start's transcripts: whole episodes, first actions balanced, within the widths.
func TestTranscripts(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	env := mustNew(t, `{"instances":8}`)
	p := envs.Protocol{Think: true}
	const turns, sample = 5, 48
	widths, err := envs.MaxPromptTokens(env, tok, p, turns, sample)
	require.NoError(t, err)
	require.Equal(t, 32, starter.Combinations(env))
	rows, err := starter.Transcripts(tok, env, p, starter.Options{Turns: turns}, 32, draw.Address{Purpose: draw.WarmStart})
	require.NoError(t, err)
	firsts := map[string]int{}
	for _, row := range rows {
		require.LessOrEqual(t, len(row.IDs), widths[turns-1]+sample)
		at := slices.Index(row.Loss, true)
		require.LessOrEqual(t, at, widths[0])
		firsts[p.Parse(tok.Decode(row.IDs[at:]), 1).Actions[0]]++
	}
	require.Equal(t, map[string]int{"Left": 8, "Down": 8, "Right": 8, "Up": 8}, firsts)
}
