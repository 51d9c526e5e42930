package sokoban

import (
	"encoding/json"
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

func mustNew(t *testing.T, options string) envs.Environment {
	t.Helper()
	env, err := envs.New(Name, json.RawMessage(options))
	require.NoError(t, err)
	return env
}

// inRoom is an environment with one room.
func inRoom(t *testing.T, layout, rest string) envs.Environment {
	t.Helper()
	encoded, err := json.Marshal(layout)
	require.NoError(t, err)
	return mustNew(t, `{"layout":`+string(encoded)+rest+`}`)
}

func TestObservation(t *testing.T) {
	const layout = "#######\n#_OX__#\n#_S√X_#\n#####_#\n#######"
	for rest, want := range map[string]string{
		``:                                      layout,
		`,"observation":"coord"`:                "P (2,2)\nX (1,3) (2,3) (2,4)\nO (1,2) (2,2) (2,3)",
		`,"observation":"grid_coord"`:           layout + "\nP (2,2)\nX (1,3) (2,3) (2,4)\nO (1,2) (2,2) (2,3)",
		`,"preset":"new-vocabulary"`:            "WWWWWWW\nW.GB..W\nW.@CB.W\nWWWWW.W\nWWWWWWW",
		`,"glyphs":"new-vocabulary","pool":3`:   "WWWWWWW\nW.GB..W\nW.@CB.W\nWWWWW.W\nWWWWWWW",
		`,"preset":"large","glyphs":"standard"`: layout,
	} {
		e := inRoom(t, layout, rest).Reset(instance(1), draw.Address{})
		require.Equal(t, want, e.Observation())
		require.Equal(t, strings.Split(layout, "\n"), e.(envs.Gridded).Grid())
	}
}

func TestRewards(t *testing.T) {
	e := inRoom(t, "########\n#PXO_OX#\n########", "").Reset(instance(1), draw.Address{})
	require.Equal(t, envs.Outcome{Reward: 0.9, Effective: true}, e.Step("Right"), "onto a target")
	require.Equal(t, envs.Outcome{Reward: -1.1, Effective: true}, e.Step("Right"), "off it")
	require.Equal(t, envs.Outcome{Reward: 0.9, Effective: true}, e.Step("Right"), "onto the next")
	require.Equal(t, envs.Outcome{Reward: -0.1}, e.Step("Right"), "against two boxes")
	require.Equal(t, envs.Outcome{Reward: -0.1}, e.Step("Up"), "against a wall")
	require.Panics(t, func() { e.Step("right") })
	last := inRoom(t, "#####\n#PXO#\n#####", "").Reset(instance(1), draw.Address{})
	require.Equal(t, envs.Outcome{Reward: 10.9, Done: true, Effective: true, Success: true}, last.Step("Right"))
	require.Panics(t, func() { last.Step("Right") })
}

// The environment ends an episode after 100 actions.
func TestMaxSteps(t *testing.T) {
	e := inRoom(t, "#####\n#PXO#\n#####", "").Reset(instance(1), draw.Address{})
	for k := 1; k <= MaxSteps; k++ {
		o := e.Step("Up")
		require.Equal(t, k == MaxSteps, o.Done)
		require.False(t, o.Success)
	}
	require.Panics(t, func() { e.Step("Right") })
	require.Empty(t, e.(envs.Advised).Advice(5))
}

func TestAdvice(t *testing.T) {
	e := inRoom(t, "######\n#P_XO#\n######", "").Reset(instance(1), draw.Address{}).(envs.Advised)
	require.Equal(t, []string{"Right", "Right"}, e.Advice(10))
	require.Empty(t, e.Advice(1))
	require.Equal(t, 1.0, e.BestSuccess(2))
	require.Zero(t, e.BestSuccess(1))
	require.Zero(t, e.BestSuccess(0))
}

// A pool's rooms depend on nothing but its number, and groups in a row are all of it.
func TestInstances(t *testing.T) {
	env, other := mustNew(t, `{"instances":5}`), mustNew(t, `{"instances":5,"pool":1}`)
	rooms := func(env envs.Environment, seed uint64, iteration int64) map[string]bool {
		seen := map[string]bool{}
		for group := range int64(5) {
			seen[env.Reset(draw.Address{Seed: seed, Iteration: iteration, Group: group, Member: group}, draw.Address{}).StateKey()] = true
		}
		return seen
	}
	all := rooms(env, 1, 0)
	require.Len(t, all, 5)
	require.Equal(t, all, rooms(env, 2, 7))
	for key := range rooms(other, 1, 0) {
		require.NotContains(t, all, key)
	}
	cases := map[string]bool{}
	for _, e := range env.Cases() {
		cases[e.StateKey()] = true
	}
	require.Equal(t, all, cases)
	unlimited := mustNew(t, "")
	require.Equal(t, unlimited.Reset(instance(3), draw.Address{}).StateKey(), unlimited.Reset(instance(3), draw.Address{Member: 9}).StateKey())
	require.Len(t, unlimited.Cases(), 64)
}

// Cases are fresh each time.
func TestCases(t *testing.T) {
	env := mustNew(t, "")
	first := env.Cases()[0]
	before := first.StateKey()
	for _, action := range first.(envs.Advised).Advice(100) {
		first.Step(action)
	}
	require.NotEqual(t, before, first.StateKey())
	require.Equal(t, before, env.Cases()[0].StateKey())
}

// No state is wider, in the starter's tokens, than what widths are made from.
func TestWidest(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	for _, options := range []string{"", `{"preset":"large"}`, `{"observation":"grid_coord","boxes":2}`, `{"width":12,"height":11,"observation":"coord"}`, `{"preset":"new-vocabulary"}`} {
		env := mustNew(t, options)
		widest := 0
		for _, e := range env.(*Sokoban).Widest() {
			widest = max(widest, len(tok.EncodePlain(e.Observation())))
		}
		r := draw.Address{Seed: 3}.Rand()
		for k := range int64(40) {
			e := env.Reset(instance(k), draw.Address{})
			for range 30 {
				if e.Done() {
					break
				}
				require.LessOrEqual(t, len(tok.EncodePlain(e.Observation())), widest)
				e.Step(moves[r.IntN(4)])
			}
		}
	}
	env := mustNew(t, "")
	widths, err := envs.MaxPromptTokens(env, tok, envs.Protocol{Think: true}, 2, 32)
	require.NoError(t, err)
	t.Log("prompt tokens of a 6×6 room by turn:", widths)
	require.LessOrEqual(t, widths[0], 224)
}

func TestOptions(t *testing.T) {
	for options, problems := range map[string][]string{
		`{"boxs":1}`:                          {`did you mean "boxes"?`},
		`{"preset":"larg","width":2}`:         {`preset: found "larg", want one of simple, large, new-vocabulary (did you mean "large"?)`, `width: found 2, want from 3 to 50`},
		`{"boxes":0,"search_depth":0}`:        {`boxes: found 0, want from 1 to 10`, `search_depth: found 0`},
		`{"width":4,"height":4}`:              {`boxes: found 1, want fewer`},
		`{"observation":"text"}`:              {`one of grid, coord, grid_coord`},
		`{"glyphs":"emoji","instances":-1}`:   {`glyphs: found "emoji"`, `instances: found -1`},
		`{"max_actions":0,"pool":-1}`:         {`max_actions: found 0`, `pool: found -1`},
		`{"layout":"####\n#PX#\n####"}`:       {`layout: found 1 boxes and 0 targets, want as many of both`},
		`{"layout":"#####\n#PXQ#\n#####"}`:    {`layout: found 'Q' in line 2, column 4, want one of the glyphs #_O√XPS`},
		`{"layout":"#####\n#PXO\n#####"}`:     {`layout: found 4 cells in line 2, want 5 as in line 1`},
		`{"layout":"#####\n#PXOP\n#####"}`:    {`layout: found 'P' in line 2, column 5, want a wall, #, all around`},
		`{"layout":"######\n#PXOP#\n######"}`: {`layout: found 'P' in line 2, column 5, want one player; the first is in line 2, column 2`},
		`{"layout":"####\n#P√#\n####"}`:       {`every box on a target`},
		`{"layout":"####\n#__#\n####"}`:       {`no player`},
		`{"layout":"####\n#P_#\n####"}`:       {`no box`},
		`{"layout":"\n"}`:                     {`layout: found no cells in line 1`},
		`{"layout":"#####\n\n#PXO#\n#####"}`:  {`layout: found no cells in line 2`},
		`{"layout":"#####\n#PX\tO\n#####"}`:   {`layout: found '\t' in line 2, column 4, want one of the glyphs`},
		`{"layout":"#####\n#PXO#\n###_#"}`:    {`layout: found '_' in line 3, column 4, want a wall, #, all around`},
		`{"layout":"#####\r#PXO#"}`:           {`layout: found '\r' in line 1, column 6`},
		`{"layout":3,"boxs":1}`:               {`layout: found 3, want a string`, `boxs: found 1`},
		`{"instances":1048577,"preset":""}`:   {`instances: found 1048577, want from 0 to 1048576`, `preset: found ""`},
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

// A recorded episode replays, and the prompt is RAGEN's layout.
func TestProtocol(t *testing.T) {
	env := mustNew(t, "")
	p := envs.Protocol{Think: true, FormatPenalty: -0.1}
	e := env.Reset(instance(2), draw.Address{})
	require.Contains(t, p.First(env, e)[1].Content, "Turn 1:\n"+e.Observation()+"\nActions left: 10\n")
	turn := p.Play(e, p.Parse(" </think><answer>up || LEFT || jump || Down</answer>", 5), 10)
	require.Equal(t, []string{"Up", "Left", "Down"}, turn.Actions)
	require.Equal(t, 1, turn.Invalid)
	again, turns, err := envs.Replay(env, instance(2), draw.Address{Member: 4}, [][]string{turn.Actions})
	require.NoError(t, err)
	require.Equal(t, e.StateKey(), again.StateKey())
	require.Equal(t, turn.Reward, turns[0].Reward)
}

// Whatever a layout holds, it is refused with a place or is a room that keeps its rules.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "#####\n#PXO#\n#####", "####\r\n#S√#\r\n", "######\n#_P_X#\n#O###\n", "\xff", "#\n\n#", "√"} {
		f.Add(s, []byte{0, 1, 2, 3})
	}
	f.Fuzz(func(t *testing.T, text string, actions []byte) {
		room, err := Parse(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		boxes := len(room.places(func(at int) bool { return room.boxes[at] }))
		for _, a := range actions {
			room.move(int(a % 4))
			grid := strings.Join(room.Rows(Standard), "\n")
			require.Equal(t, boxes, strings.Count(grid, "X")+strings.Count(grid, "√"))
			require.Equal(t, 1, strings.Count(grid, "P")+strings.Count(grid, "S"))
			require.Equal(t, room.open, strings.Count(grid, "X"))
			if room.Solved() {
				break
			}
			again, err := Parse(grid)
			require.NoError(t, err)
			require.Equal(t, room, again)
		}
	})
}
