package bandit

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

func instance(group int64) draw.Address {
	return draw.Address{Seed: 1, Purpose: draw.Instance, Group: group}
}

func chance(group, member int64) draw.Address {
	return draw.Address{Seed: 1, Purpose: draw.Chance, Group: group, Member: member}
}

func mustNew(t *testing.T, options string) envs.Environment {
	t.Helper()
	env, err := envs.New(Name, json.RawMessage(options))
	require.NoError(t, err)
	return env
}

func TestRewards(t *testing.T) {
	env := mustNew(t, "")
	const groups, members = 200, 20
	paid, highFirst := 0, 0
	for g := range int64(groups) {
		var first string
		for m := range int64(members) {
			e := env.Reset(instance(g), chance(g, m))
			require.False(t, e.Done())
			require.Equal(t, "Arms: "+e.Choices()[0]+", "+e.Choices()[1], e.Observation())
			if m == 0 {
				first = e.Choices()[0]
			}
			require.Equal(t, first, e.Choices()[0], "members of a group see the same order")
			o := e.Step("Dragon")
			require.True(t, o.Done && o.Success && e.Done() && e.Success())
			require.Contains(t, []float64{0, 1}, o.Reward)
			paid += int(o.Reward)
		}
		if first == "Dragon" {
			highFirst++
		}
		low := env.Reset(instance(g), chance(g, 0))
		o := low.Step("Phoenix")
		require.Equal(t, envs.Outcome{Reward: 0.15, Done: true, Effective: true, Text: "Phoenix: 0.15 points"}, o)
	}
	// Four standard errors.
	require.InDelta(t, 0.25, float64(paid)/(groups*members), 4*0.4330/63.2)
	require.InDelta(t, 0.5, float64(highFirst)/groups, 4*0.5/14.1)
}

func TestSharedChance(t *testing.T) {
	shared := mustNew(t, `{"shared_chance":true}`)
	own := mustNew(t, `{}`)
	differs := false
	for g := range int64(50) {
		a, b := shared.Reset(instance(g), chance(g, 0)), shared.Reset(instance(g), chance(g, 7))
		require.Equal(t, a.Step("Dragon"), b.Step("Dragon"))
		c, d := own.Reset(instance(g), chance(g, 0)), own.Reset(instance(g), chance(g, 7))
		differs = differs || c.Step("Dragon") != d.Step("Dragon")
	}
	require.True(t, differs)
}

// The first payouts are pinned: a change here changes every recorded run.
func TestPinned(t *testing.T) {
	env := mustNew(t, `{"names":"ragen-v2-train"}`)
	var got []string
	for g := range int64(4) {
		e := env.Reset(instance(g), chance(g, 1))
		e.Step(e.Choices()[0])
		got = append(got, e.StateKey())
	}
	require.Equal(t, pinned, got)
}

// A pool is so many different instances, whatever the seed, in which groups in a
// row have their turn.
func TestInstances(t *testing.T) {
	met := func(options string, seed uint64, groups int64) map[string]int {
		env := mustNew(t, options)
		seen := map[string]int{}
		for g := range groups {
			e := env.Reset(draw.Address{Seed: seed, Purpose: draw.Instance, Iteration: int64(seed), Group: g, Member: g}, draw.Address{})
			seen[e.StateKey()]++
		}
		return seen
	}
	require.Equal(t, map[string]int{
		"low=Phoenix high=Dragon first=Phoenix chosen=": 4, "low=Phoenix high=Dragon first=Dragon chosen=": 4,
	}, met(`{"instances":2}`, 3, 8), "both orders, each as often")
	pools := map[string]bool{}
	for pool := range 8 {
		options := fmt.Sprintf(`{"names":"ragen-v2-train","instances":5,"pool":%d}`, pool)
		five := met(options, 1, 10)
		require.Len(t, five, 5)
		require.Equal(t, five, met(options, 2, 10))
		pools[fmt.Sprint(five)] = true
	}
	require.Greater(t, len(pools), 4, "pools differ")
	require.Len(t, met(`{"names":"ragen-v2-train","instances":24}`, 1, 24), 24)
	require.Equal(t, met(``, 1, 50), met(`{"pool":3}`, 1, 50), "without a limit there is no pool")
	require.Len(t, mustNew(t, `{"names":"ragen-v2-test","instances":1}`).Cases(), 16, "balanced all the same")
}

// Advice is about success, the best reward about what pays.
func TestAdvice(t *testing.T) {
	for options, best := range map[string]float64{
		``: 0.25, `{"high_probability":0.1}`: 0.15, `{"high_probability":1,"high_reward":20}`: 20,
		`{"low_reward":-1,"high_reward":-2}`: 0,
	} {
		env := mustNew(t, options)
		e := env.Reset(instance(1), chance(1, 0))
		advised, valued := e.(envs.Advised), e.(envs.Valued)
		require.Equal(t, []string{"Dragon"}, advised.Advice(1))
		require.Empty(t, advised.Advice(0))
		require.Equal(t, 1.0, advised.BestSuccess(1))
		require.Zero(t, advised.BestSuccess(0))
		require.Equal(t, best, valued.BestReward(1), options)
		require.Zero(t, valued.BestReward(0))
		e.Step("Dragon")
		require.Empty(t, advised.Advice(1))
		require.Equal(t, 1.0, advised.BestSuccess(0))
		require.Zero(t, valued.BestReward(1), "nothing more is to be had")
		low := env.Reset(instance(1), chance(1, 0))
		low.Step("Phoenix")
		require.Zero(t, low.(envs.Advised).BestSuccess(1))
	}
	require.Equal(t, []string{"Phoenix"}, mustNew(t, `{"reversed":true}`).Cases()[0].(envs.Advised).Advice(1))
}

func TestLegal(t *testing.T) {
	env := mustNew(t, `{"low_name":"Engineer","high_name":"Teacher"}`)
	e := env.Cases()[1]
	require.Equal(t, []string{"Teacher", "Engineer"}, e.Choices())
	for action, want := range map[string]string{"teacher": "Teacher", "ENGINEER": "Engineer", "1": "Teacher", "2": "Engineer", "": "", "3": "", "Phoenix": "", "Teacher.": ""} {
		got, ok := e.Legal(action)
		require.Equal(t, want != "", ok, action)
		require.Equal(t, want, got)
	}
	require.Panics(t, func() { e.Step("Phoenix") })
	e.Step("Teacher")
	require.Panics(t, func() { e.Step("Teacher") })
}

func TestCases(t *testing.T) {
	require.Len(t, mustNew(t, "").Cases(), 2)
	require.Len(t, mustNew(t, `{"names":"ragen-v2-test"}`).Cases(), 16)
	reversed := mustNew(t, `{"reversed":true}`).Cases()[0]
	reversed.Step("Phoenix")
	require.True(t, reversed.Success())
}

func TestOptions(t *testing.T) {
	for options, problems := range map[string][]string{
		`{"low_rewrd":1}`:  {`low_rewrd: found 1, want one of the options names, low_name, high_name, reversed, low_reward, high_reward, high_probability, shared_chance, instances, pool (did you mean "low_reward"?)`},
		`{"Low_reward":1}`: {`did you mean "low_reward"?`},
		`{"low_reward":"1","reversed":1,"high_probability":2}`: {`low_reward: found "1", want a number`, `reversed: found 1, want true or false`, `high_probability: found 2, want from 0 to 1`},
		`{"low_reward":1,"low_reward":2}`:                      {`each option once`},
		`{"low_name":null}`:                                    {`low_name: found null, want a string`},
		`[]`:                                                   {`found [], want a JSON object`},
		`{} {}`:                                                {`nothing after the object`},
		`{"low_name":"a"`:                                      {`valid JSON`},
		`{"low_name":"a","high_name":"A"}`:                     {`another name than low_name's`},
		`{"low_name":"a\nb"}`:                                  {`no line breaks`},
		`{"names":"train"}`:                                    {`names: found "train", want one of pair, ragen-v1-train`},
		`{"names":"ragen-v2-test","low_name":"x"}`:             {`"pair" where low_name`},
		`{"instances":3,"pool":-1}`:                            {`instances: found 3, want from 0 to 2`, `pool: found -1, want from 0 to`},
		`{"names":"ragen-v2-test","instances":17}`:             {`instances: found 17, want from 0 to 16`},
		`{"names":"ragen","instances":17}`:                     {`names: found "ragen"`},
		`{"instances":1e300}`:                                  {`instances: found 1e300, want an integer`},
		`{"low_reward":1e300}`:                                 {`from -1000 to 1000`},
	} {
		_, err := envs.New(Name, json.RawMessage(options))
		var wrong *envs.OptionsError
		require.ErrorAs(t, err, &wrong, options)
		for _, p := range problems {
			require.ErrorContains(t, err, p)
		}
	}
	_, err := envs.New("bandi", nil)
	require.ErrorIs(t, err, envs.ErrUnknown)
	require.ErrorContains(t, err, `did you mean "bandit"?`)
}

// The same addresses and actions give the same episode, and a recorded one replays.
func TestReplay(t *testing.T) {
	env := mustNew(t, "")
	p := envs.Protocol{Think: true, FormatPenalty: -0.1}
	for g := range int64(20) {
		for _, text := range []string{" hm </think><answer> dragon </answer>", "</think><answer>2||1</answer>", "nothing", " </think><answer> Griffin </answer>"} {
			e := env.Reset(instance(g), chance(g, 3))
			turn := p.Play(e, p.Parse(text, env.MaxActionsPerTurn()), env.MaxActions())
			again, turns, err := envs.Replay(env, instance(g), chance(g, 3), [][]string{turn.Actions})
			require.NoError(t, err)
			require.Equal(t, e.StateKey(), again.StateKey())
			require.Equal(t, turn.Reward, turns[0].Reward)
			require.Equal(t, turn.Ended(), turns[0].Ended())
			if len(turn.Actions) == 0 {
				require.Equal(t, -0.1, turn.Penalty)
				require.False(t, turn.Ended())
			} else {
				require.Zero(t, turn.Penalty)
			}
		}
	}
	for _, turns := range [][][]string{{{"dragon"}}, {{"Griffin"}}, {{"Dragon", "Dragon"}}, {{"Dragon"}, {"Phoenix"}}} {
		_, _, err := envs.Replay(env, instance(0), chance(0, 0), turns)
		require.ErrorIs(t, err, envs.ErrReplay)
	}
}

var pinned = []string{
	"low=Librarian high=Investor first=Investor chosen=Investor",
	"low=Engineer high=RealEstateAgent first=Engineer chosen=Engineer",
	"low=Teacher high=Trader first=Trader chosen=Trader",
	"low=Pharmacist high=Musician first=Musician chosen=Musician",
}
