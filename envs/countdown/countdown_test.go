package countdown

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/arithmetic"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

func at(group int64) draw.Address {
	return draw.Address{Seed: 1, Purpose: draw.Instance, Group: group}
}

func mustNew(t testing.TB, options string) *Countdown {
	t.Helper()
	env, err := envs.New(Name, json.RawMessage(options))
	require.NoError(t, err)
	return env.(*Countdown)
}

func TestRewards(t *testing.T) {
	for action, want := range map[string]struct {
		reward  float64
		success bool
	}{
		"25+3-7":        {1, true},
		"( 25 − 7 ) +3": {1, true},
		"3-7+25":        {1, true},
		"-(7-25-3)":     {1, true},
		"25-3-7":        {0.1, false},
		"25*3/7":        {0.1, false},
		"25/(3*7)":      {0.1, false},
		"7/(25-25)+3":   {0, false},
		"21":            {0, false},
		"25+3-7+0":      {0, false},
		"25+3":          {0, false},
		"7+7+7":         {0, false},
		"3*7":           {0, false},
		"1/0":           {0, false},
	} {
		e := &episode{instance: instance{numbers: []int64{25, 7, 3}, target: 21}, operators: "+-", attempts: 1}
		require.Equal(t, "Numbers: 25, 7, 3\nTarget: 21", e.Observation())
		canonical, ok := e.Legal(action)
		require.True(t, ok, action)
		again, ok := e.Legal(canonical)
		require.True(t, ok)
		require.Equal(t, canonical, again)
		o := e.Step(canonical)
		require.Equal(t, want.reward, o.Reward, action)
		require.Equal(t, want.success, o.Success, action)
		require.Equal(t, want.success, e.Success(), action)
		require.True(t, o.Done && e.Done() && o.Effective)
		require.NotEmpty(t, o.Text)
		require.Panics(t, func() { e.Step(canonical) })
		require.Empty(t, e.Advice(1))
	}
	e := &episode{instance: instance{numbers: []int64{2, 2, 4}, target: 4}, operators: "+-", attempts: 1}
	o := e.Step("4/(2-2)")
	require.Equal(t, RightNumbers, o.Reward, "a division by zero has no value, but the right numbers")
	for _, action := range []string{"", "x", "2+2=4", "two"} {
		_, ok := e.Legal(action)
		require.False(t, ok, action)
	}
	require.Panics(t, func() { (&episode{}).Step("x") })
}

// A duplicate counts as often as it is given.
func TestMultiset(t *testing.T) {
	for action, reward := range map[string]float64{"5+5-3": 1, "5-3+3": 0, "5-3": 0, "5+3-5": 0.1} {
		e := &episode{instance: instance{numbers: []int64{5, 3, 5}, target: 7}, attempts: 1}
		require.Equal(t, reward, e.Step(action).Reward, action)
	}
}

// solvable tries all signs.
func solvable(numbers []int64, target int64) bool {
	if len(numbers) == 0 {
		return target == 0
	}
	n, rest := numbers[0], numbers[1:]
	return solvable(rest, target-n) || solvable(rest, target+n)
}

// key is a task, whatever the order of its numbers.
func key(in instance) string {
	return fmt.Sprint(slices.Sorted(slices.Values(in.numbers)), in.target)
}

// 10,000 instances of each split: within the limits, solvable, the same again,
// and none of one in the other.
func TestInstances(t *testing.T) {
	const n = 10_000
	seen := map[string]map[string]bool{Train: {}, Test: {}, All: {}}
	for _, split := range []string{Train, Test, All} {
		env := mustNew(t, fmt.Sprintf(`{"split":%q}`, split))
		lengths := map[int]int{}
		for g := range int64(n) {
			in := env.Reset(at(g), draw.Address{}).(*episode).instance
			if g%100 == 0 {
				require.Equal(t, in, env.Reset(draw.Address{Seed: 1, Purpose: draw.Instance, Group: g, Member: 5}, draw.Address{Seed: 9}).(*episode).instance)
			}
			lengths[len(in.numbers)]++
			if slices.Min(in.numbers) < 1 || slices.Max(in.numbers) > 99 || in.target < 1 || in.target > 99 {
				t.Fatalf("out of the limits: %+v", in)
			}
			if !solvable(in.numbers, in.target) {
				t.Fatalf("not solvable: %+v", in)
			}
			e := &episode{instance: in, attempts: 1}
			canonical, ok := e.Legal(in.solution)
			if !ok || e.Step(canonical).Reward != Right {
				t.Fatalf("the solution is wrong: %+v", in)
			}
			seen[split][key(in)] = true
		}
		require.Len(t, lengths, 2)
		require.Greater(t, min(lengths[3], lengths[4]), n/4)
		require.Greater(t, len(seen[split]), n*9/10)
	}
	for k := range seen[Test] {
		require.False(t, seen[Train][k], k)
	}
	both := 0
	for k := range seen[All] {
		if seen[Test][k] {
			both++
		}
	}
	require.Positive(t, both)
}

// The solutions of instances with more operators are right too, parentheses and all.
func TestOperators(t *testing.T) {
	for _, operators := range operatorNames {
		env := mustNew(t, fmt.Sprintf(`{"operators":%q,"min_numbers":2,"max_numbers":6,"max_number":20,"max_target":500}`, operators))
		used := map[rune]bool{}
		for g := range int64(1500) {
			in := env.Reset(at(g), draw.Address{}).(*episode).instance
			e := &episode{instance: in, attempts: 1}
			if e.Step(in.solution).Reward != Right {
				t.Fatalf("the solution is wrong: %+v", in)
			}
			for _, c := range in.solution {
				used[c] = true
			}
		}
		for _, c := range "+-*/" {
			require.Equal(t, slices.Contains([]rune(operators), c), used[c], string(c))
		}
	}
}

// The first instances are pinned: a change here changes every recorded run.
func TestPinned(t *testing.T) {
	var got []string
	for _, options := range []string{"", `{"split":"test","operators":"+-*/"}`} {
		env := mustNew(t, options)
		for g := range int64(2) {
			e := env.Reset(at(g), draw.Address{})
			got = append(got, e.StateKey()+e.(envs.Advised).Advice(1)[0])
		}
	}
	require.Equal(t, pinned, got)
}

var pinned = []string{
	"numbers=52, 9, 84 target=41 answer=9-(52-84)",
	"numbers=20, 10, 44 target=34 answer=10-20+44",
	"numbers=26, 49, 49, 62 target=88 answer=26+49/49*62",
	"numbers=55, 44, 36, 38 target=97 answer=55-(38-44-36)",
}

// A pool has its instances whatever the run's seed.
func TestPool(t *testing.T) {
	env := mustNew(t, `{"instances":5}`)
	seen := map[string]int{}
	for seed := range uint64(3) {
		for g := range int64(10) {
			seen[env.Reset(draw.Address{Seed: seed, Purpose: draw.Instance, Group: g}, draw.Address{}).StateKey()]++
		}
	}
	require.Len(t, seen, 5)
	for _, times := range seen {
		require.Equal(t, 6, times)
	}
	require.Len(t, env.Cases(), 5)
	for _, e := range env.Cases() {
		require.Contains(t, seen, e.StateKey())
	}
}

// The test split is held out of training, whatever the pool. If nothing is held out,
// evaluation uses the options themselves.
func TestHeldOut(t *testing.T) {
	for options, want := range map[string]string{
		``: `"split":"test","instances":0,"pool":0`,
		`{"instances":8,"pool":3,"max_number":50}`: `"split":"test","instances":0,"pool":0`,
		`{"split":"test","instances":8,"pool":3}`:  `"split":"test","instances":8,"pool":3`,
		`{"split":"all","instances":8}`:            `"split":"all","instances":8,"pool":0`,
	} {
		env := mustNew(t, options)
		held := env.HeldOut()
		require.Contains(t, string(held), want)
		other := mustNew(t, string(held))
		require.JSONEq(t, string(held), string(other.HeldOut()))
		require.Equal(t, env.options.MaxNumber, other.options.MaxNumber)
	}
	env := mustNew(t, `{"max_number":4,"max_target":9}`)
	held := mustNew(t, string(env.HeldOut()))
	train := map[string]bool{}
	for g := range int64(3000) {
		train[key(env.Reset(at(g), draw.Address{}).(*episode).instance)] = true
	}
	for g := range int64(500) {
		require.NotContains(t, train, key(held.Reset(at(g), draw.Address{}).(*episode).instance))
	}
}

func TestBestReward(t *testing.T) {
	e := mustNew(t, "").Reset(at(1), draw.Address{}).(*episode)
	require.Equal(t, Right, e.BestReward(1))
	require.Zero(t, e.BestReward(0))
	require.Equal(t, 1.0, e.BestSuccess(1))
	e.Step(e.Advice(1)[0])
	require.Zero(t, e.BestReward(1))
	require.Equal(t, 1.0, e.BestSuccess(0))
}

// Examples are expressions of exactly the numbers; each comes first equally often.
func TestChoices(t *testing.T) {
	for _, operators := range operatorNames {
		for _, e := range mustNew(t, fmt.Sprintf(`{"operators":%q}`, operators)).Cases() {
			in := e.(*episode).instance
			list := e.Choices()
			require.Len(t, list, choices)
			first := map[int64]int{}
			for _, c := range list {
				canonical, ok := e.Legal(c)
				require.True(t, ok, c)
				require.Equal(t, c, canonical)
				expression, err := arithmetic.Parse(c)
				require.NoError(t, err)
				require.True(t, sameNumbers(expression.Numbers(), in.numbers), c)
				first[expression.Numbers()[0]]++
			}
			for n, times := range first {
				duplicates := 0
				for _, other := range in.numbers {
					if other == n {
						duplicates++
					}
				}
				require.Equal(t, choices/len(in.numbers)*duplicates, times)
			}
		}
	}
}

// No prompt is wider than the width, which is hardly wider than needed.
func TestWidths(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	p := envs.Protocol{Think: true}
	for _, options := range []string{"", `{"max_number":999,"max_target":9999,"max_numbers":6}`} {
		env := mustNew(t, options)
		widths, err := envs.MaxPromptTokens(env, tok, p, 1, 32)
		require.NoError(t, err)
		most := 0
		for g := range int64(300) {
			ids, err := p.PromptIDs(tok, env, env.Reset(at(g), draw.Address{}))
			require.NoError(t, err)
			most = max(most, len(ids))
		}
		require.LessOrEqual(t, most, widths[0])
		require.Less(t, widths[0]-most, 2*envs.PromptMultiple)
	}
}

func TestReplay(t *testing.T) {
	env := mustNew(t, "")
	p := envs.Protocol{Think: true, FormatPenalty: -0.1}
	for text, actions := range map[string][]string{
		"so </think><answer> 1 + (2 × 3) </answer>": {"1+(2*3)"},
		"so </think><answer> none </answer>":        nil,
		"so":                                        nil,
	} {
		e := env.Reset(at(3), draw.Address{})
		turn := p.Play(e, p.Parse(text, env.MaxActionsPerTurn()), env.MaxActions())
		require.Equal(t, actions, turn.Actions)
		again, _, err := envs.Replay(env, at(3), draw.Address{}, [][]string{turn.Actions})
		require.NoError(t, err)
		require.Equal(t, e.StateKey(), again.StateKey())
	}
}

func TestOptions(t *testing.T) {
	for options, problem := range map[string]string{
		`{"min_numbers":1}`:             `min_numbers: found 1, want from 2 to 6`,
		`{"min_numbers":5}`:             `max_numbers: found 4, want from 5 to 6`,
		`{"max_numbers":7}`:             `max_numbers: found 7, want from 3 to 6`,
		`{"max_number":0}`:              `from 1 to 999`,
		`{"max_target":0}`:              `from 1 to 9999`,
		`{"operators":"*"}`:             `one of +-, +-*, +-*/`,
		`{"split":"tran"}`:              `(did you mean "train"?)`,
		`{"instances":-1}`:              `instances: found -1`,
		`{"instances":1048577}`:         `instances: found 1048577, want from 0 to 1048576`,
		`{"pool":-1}`:                   `pool: found -1, want from 0 to 1048576`,
		`{"instances":"8"}`:             `instances: found "8", want an integer`,
		`{"instances":8,"instances":9}`: `instances: found 9, want each option once`,
		`{"layout":"SG"}`:               `layout: found "SG", want one of the options`,
		`{"max_number":1,"max_numbers":3,"max_target":1}`: `no instance of the split`,
		`{"min":3}`: `min: found 3, want one of the options`,
	} {
		if options == `{"max_number":1,"max_numbers":3,"max_target":1}` {
			// 1+1-1 is in one of the splits only.
			options = fmt.Sprintf(`{"max_number":1,"max_numbers":3,"max_target":1,"split":%q}`,
				map[string]string{Train: Test, Test: Train}[instance{numbers: []int64{1, 1, 1}, target: 1}.split()])
		}
		_, err := envs.New(Name, json.RawMessage(options))
		var wrong *envs.OptionsError
		require.ErrorAs(t, err, &wrong, options)
		require.ErrorContains(t, err, problem)
	}
}

func BenchmarkReset(b *testing.B) {
	env := mustNew(b, "")
	for g := int64(0); b.Loop(); g++ {
		env.Reset(at(g), draw.Address{})
	}
}

func BenchmarkStep(b *testing.B) {
	env := mustNew(b, "")
	for b.Loop() {
		env.Reset(at(1), draw.Address{}).Step("(1+2)*3-4")
	}
}

// The warm start's transcripts: replies of the right form, within the width.
func TestTranscripts(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	env := mustNew(t, `{"instances":8}`)
	p := envs.Protocol{Think: true}
	widths, err := envs.MaxPromptTokens(env, tok, p, 1, 48)
	require.NoError(t, err)
	n := starter.Combinations(env)
	require.Equal(t, 8*choices, n)
	rows, err := starter.Transcripts(tok, env, p, starter.Options{Turns: 1}, n, draw.Address{Purpose: draw.WarmStart})
	require.NoError(t, err)
	given := map[string]bool{}
	for _, row := range rows {
		at := slices.Index(row.Loss, true)
		require.LessOrEqual(t, at, widths[0])
		require.LessOrEqual(t, len(row.IDs)-at, 48)
		reply, truncated := p.ReadReply(tok, env, row.IDs[at:])
		require.False(t, truncated)
		require.Len(t, reply.Actions, 1)
		expression, err := arithmetic.Parse(reply.Actions[0])
		require.NoError(t, err)
		given[expression.String()] = true
	}
	require.Greater(t, len(given), n*9/10, "but for a number given twice, all differ")
}

// Of two attempts each has its own reward, and success is the second's. The second sees neither
// the reward nor the verdict, unless it is asked for. With one attempt nothing is different.
func TestSecondAttempt(t *testing.T) {
	in := instance{numbers: []int64{25, 7, 3}, target: 21}
	p := envs.Protocol{}
	for name, c := range map[string]struct {
		options, answers string
		rewards          []float64
		success          bool
		seen             string
	}{
		"corrected": {`{"attempts":2}`, "25 + 7 + 3|25 - 7 + 3", []float64{RightNumbers, Right}, true, "Target: 21\nSecond attempt: correct the answer, or give it again"},
		"spoiled":   {`{"attempts":2}`, "25 - 7 + 3|25", []float64{Right, 0}, false, "Target: 21\nSecond attempt: correct the answer, or give it again"},
		"told":      {`{"attempts":2,"verdict":true}`, "25|25 - 7 + 3", []float64{0, Right}, true, "Target: 21\nThe answer is wrong\nSecond attempt: correct the answer, or give it again"},
	} {
		t.Run(name, func(t *testing.T) {
			env := mustNew(t, c.options)
			e := env.begin(in)
			require.Equal(t, 2*Right, e.BestReward(5))
			for k, answer := range strings.Split(c.answers, "|") {
				require.False(t, e.Done())
				require.NotEmpty(t, e.Advice(1))
				turn := p.Play(e, envs.Reply{Actions: []string{answer}}, env.MaxActions()-k)
				require.Equal(t, c.rewards[k], turn.Reward)
				require.Equal(t, k == 1, turn.Ended())
				if k == 0 {
					said := p.Next(env, e, envs.NextTurn{Number: 2, Reward: turn.Reward, ActionsLeft: 1})
					require.Contains(t, said, c.seen)
					require.Equal(t, name == "told", strings.Contains(said, "Reward: "))
				}
			}
			require.Equal(t, c.success, e.Success())
			require.Zero(t, e.BestReward(5))
			require.Panics(t, func() { e.Step("25") })
			require.Contains(t, string(env.HeldOut()), `"attempts":2`)
		})
	}
	one := mustNew(t, "")
	require.Equal(t, 1, one.MaxActions())
	require.NotContains(t, string(one.HeldOut()), "attempts")
	require.False(t, one.HidesRewards())
}
