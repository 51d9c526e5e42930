package code

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
	"github.com/reprise-rl/reprise/model/draw"
)

func newCode(t testing.TB, options string) *Code {
	t.Helper()
	env, err := envs.New(Name, json.RawMessage(options))
	require.NoError(t, err)
	return env.(*Code)
}

// instance is the n-th of a test's instances.
func instance(n int) draw.Address {
	return draw.Address{Seed: 7, Purpose: draw.Instance, Group: int64(n)}
}

// answered asks what a child would answer, here in this process: programs of tests are harmless.
func answered(t testing.TB, q envs.ToolQuestion) envs.ToolAnswer {
	t.Helper()
	asked, err := starlark.ReadQuestion(q)
	require.NoError(t, err)
	a := starlark.Interpreter{Steps: asked.Limits.Steps, Output: asked.Limits.Output}.Evaluate(asked.Program, asked.Expressions)
	return envs.ToolAnswer{Text: a.Text, Failed: a.Failed, Killed: a.Killed}
}

// try plays a program as a run does: it asks, and steps with the answer.
func try(t testing.TB, e envs.Episode, program string) envs.Outcome {
	t.Helper()
	g := e.(envs.Graded)
	q, ok := g.Question(program)
	require.True(t, ok, program)
	action := g.WithAnswer(program, answered(t, q))
	canonical, ok := e.Legal(action)
	require.True(t, ok)
	require.Equal(t, action, canonical, "a recorded action is its own name")
	return e.Step(action)
}

// Every reference solution passes the tests of its own problem, and what Go computes is what Starlark does.
func TestReferencesPass(t *testing.T) {
	seen := map[*kind]bool{}
	for _, levels := range levelNames {
		c := newCode(t, fmt.Sprintf(`{"levels":%q,"split":"all","reward":"share"}`, levels))
		for n := range 30 {
			e := c.Reset(instance(n), draw.Address{}).(*episode)
			o := try(t, e, e.problem.reference)
			require.True(t, o.Success && o.Done, "%s\n%s\n%s", e.problem.text, e.problem.reference, o.Text)
			require.Equal(t, 1.0, o.Reward)
			require.Len(t, e.problem.hidden, 8)
			require.Len(t, e.problem.examples, 2)
			shown := map[string]bool{}
			for _, test := range e.problem.tests() {
				require.False(t, shown[test.call], "a test twice")
				shown[test.call] = true
			}
		}
	}
	// And each kind of step alone, with each parameter.
	for i := range kinds {
		k := &kinds[i]
		for n := range ranges[k.takes].n {
			f := function{step{k, ranges[k.takes].first + n}}
			if k.from == texts {
				f = append(function{step{kindTo(text, texts), 0}}, f...)
			}
			var calls, want []string
			for _, x := range probes()[f[0].kind.from] {
				calls = append(calls, "f("+literal(x)+")")
				want = append(want, canonicalValue([]byte(literal(f.apply(x)))))
			}
			a := starlark.Interpreter{Steps: 100_000, Output: 1 << 16}.Evaluate(f.program(), calls)
			require.False(t, a.Failed, "%s\n%s", f.program(), a.Text)
			var values []starlark.Value
			require.NoError(t, json.Unmarshal([]byte(a.Text), &values))
			for at := range values {
				require.Equal(t, want[at], canonicalValue(values[at].JSON), "%s\n%s", f.program(), calls[at])
			}
			seen[k] = true
		}
	}
	require.Len(t, seen, len(kinds))
	require.Greater(t, len(kinds), 40)
}

// kindTo is the first kind between two types.
func kindTo(from, to typ) *kind {
	for _, k := range kindsFrom[from] {
		if k.to == to {
			return k
		}
	}
	panic("no such kind")
}

// A program that does something else fails, however little it differs: the hidden tests tell mutants that are other functions.
func TestMutantsFail(t *testing.T) {
	c := newCode(t, `{"levels":"1-3","split":"all","reward":"share"}`)
	mutants, equal := 0, 0
	for n := range 150 {
		r := instance(n).Rand()
		f := drawFunction(r, typ(n%3), 1+n%3, All)
		p, ok := makeProblem(r, f, 2, 8)
		if !ok {
			continue
		}
		for _, m := range f.mutants() {
			e := c.begin(&p)
			if n%10 > 0 { // by Go alone, which is Starlark: see TestReferencesPass
				passes := 0
				for _, test := range p.hidden {
					if literal(m.apply(parsed(t, test.call))) == test.shown {
						passes++
					}
				}
				if mutants++; passes == len(p.hidden) {
					equal++
					require.Equal(t, f.outcomes(), m.outcomes(), "%s\npasses the tests of\n%s", m.program(), f.program())
				}
				continue
			}
			o := try(t, e, m.program())
			if mutants++; o.Success {
				equal++
				require.Equal(t, f.outcomes(), m.outcomes(), "%s\npasses the tests of\n%s", m.program(), f.program())
				continue
			}
			require.Less(t, o.Reward, 1.0)
			require.NotEqual(t, m.program(), p.reference)
		}
	}
	require.Greater(t, mutants, 1000)
	require.Less(t, equal, mutants/20, "of the mutants few are the function itself")
}

// parsed is the argument of a generated call.
func parsed(t *testing.T, call string) any {
	t.Helper()
	argument := []byte(strings.TrimSuffix(strings.TrimPrefix(call, "f("), ")"))
	for _, into := range []any{new(int), new(string), new([]int)} {
		if json.Unmarshal(argument, into) == nil {
			switch v := into.(type) {
			case *int:
				return *v
			case *string:
				return *v
			case *[]int:
				return *v
			}
		}
	}
	t.Fatalf("argument %s", argument)
	return nil
}

// No function for tests is one for training, however it is written.
func TestSplits(t *testing.T) {
	for _, about := range []string{"numbers", "texts", "lists"} {
		for _, levels := range []string{"1", "2", "1-3"} {
			outcomes := map[string]map[string]bool{Train: {}, Test: {}}
			for split, of := range outcomes {
				c := newCode(t, fmt.Sprintf(`{"levels":%q,"about":%q,"split":%q}`, levels, about, split))
				for n := range 100 {
					r := instance(n).Rand()
					of[drawFunction(r, typesAbout[about][0], c.options.least, split).outcomes()] = true
				}
			}
			require.GreaterOrEqual(t, len(outcomes[Test]), 4, "%s %s", about, levels)
			require.Greater(t, len(outcomes[Train]), len(outcomes[Test]))
			for o := range outcomes[Test] {
				require.False(t, outcomes[Train][o], "%s %s", about, levels)
			}
		}
	}
	c := newCode(t, `{"instances":5,"pool":2,"levels":"1"}`)
	held := newCode(t, string(c.HeldOut()))
	require.Equal(t, Test, held.options.Split)
	require.Zero(t, held.options.Instances)
	require.Zero(t, held.options.Pool)
	same := newCode(t, `{"split":"all"}`)
	require.Equal(t, All, newCode(t, string(same.HeldOut())).options.Split)
	texts := map[string]bool{}
	for n := range 40 {
		texts[c.Reset(instance(n), draw.Address{}).Observation()] = true
	}
	require.Len(t, texts, 5)
}

// A problem is pinned: its words, its tests and its reference are part of the bits of runs.
func TestPinned(t *testing.T) {
	c := newCode(t, `{"levels":"2"}`)
	p := c.Reset(instance(3), draw.Address{}).(*episode).problem
	require.Equal(t, "Define f(x), where x is an integer. Take the remainder by 7, then take the remainder by 4, and return the result.\n"+
		"f(-11) == 3\nf(26) == 1", p.text)
	require.Equal(t, "def f(x):\n    x = x % 7\n    return x % 4", p.reference)
	require.Equal(t, test{call: "f(-10)", want: "0", shown: "0"}, p.hidden[0])
}

func TestTries(t *testing.T) {
	c := newCode(t, `{"levels":"1","about":"numbers","tries":3,"reward":"share","split":"all"}`)
	e := c.begin(&problem{
		text: "task", x: number, reference: "def f(x): return 2 * x",
		examples: []test{{"f(1)", "2", "2"}}, hidden: []test{{"f(0)", "0", "0"}, {"f(2)", "4", "4"}, {"f(3)", "6", "6"}, {"f(-1)", "-2", "-2"}},
	})
	require.Equal(t, "task", e.Observation())
	o := try(t, e, "```python\ndef f(x):\n    return x\n```")
	require.Equal(t, envs.Outcome{Reward: 0.25, Effective: true, Text: "Example 1 fails. It gives 1."}, o)
	require.Equal(t, "Example 1 fails. It gives 1.\ntask", e.Observation())
	require.Equal(t, 0.75, e.BestReward(1))
	key := e.StateKey()
	o = try(t, e, "def f(x): return x if x == 0 else 2")
	require.Equal(t, envs.Outcome{Effective: true, Text: "The examples pass. A hidden test fails."}, o, "a later try is paid what it gains")
	require.NotEqual(t, key, e.StateKey())
	require.False(t, e.Done())
	o = try(t, e, e.Advice(1)[0])
	require.Equal(t, envs.Outcome{Reward: 0.75, Effective: true, Done: true, Success: true, Text: "All tests pass."}, o)
	require.True(t, e.Success())
	require.Empty(t, e.Advice(1))
	_, ok := e.Question("def f(x): return 1")
	require.False(t, ok, "the episode is over")
	require.Panics(t, func() { e.Step("def f(x): return 1") })
}

// What a program says, and what happens to it, is told to the policy in few bytes of ASCII, and never a hidden value.
func TestVerdicts(t *testing.T) {
	p := &problem{examples: []test{{"f(1)", "1", "1"}}, hidden: []test{{"f(2)", `"secret"`, `"secret"`}}}
	list := func(values ...string) string { return "[" + strings.Join(values, ",") + "]" }
	for _, c := range []struct {
		answer envs.ToolAnswer
		want   string
		passed int
	}{
		{envs.ToolAnswer{Text: list(`{"value":1.0}`, `{"value":"secret"}`)}, "All tests pass.", 1},
		{envs.ToolAnswer{Text: list(`{"value":1}`, `{"value":"other"}`)}, "The examples pass. A hidden test fails.", 0},
		{envs.ToolAnswer{Text: list(`{"value":1}`, `{"error":"Error in line 1: secret"}`)}, "The examples pass. A hidden test fails with an error.", 0},
		{envs.ToolAnswer{Text: list(`{"error":"Error in line 1: é\n1"}`, `{"value":"secret"}`)}, "Example 1 fails. Error in line 1: ? 1", 1},
		{envs.ToolAnswer{Text: list(`{"value":true}`, `{"value":"secret"}`)}, "Example 1 fails. It gives true.", 1},
		{envs.ToolAnswer{Text: list(`{"value":1}`)}, "The program's values cannot be read.", 0},
		{envs.ToolAnswer{Text: "none"}, "The program's values cannot be read.", 0},
		{envs.ToolAnswer{Text: "Error: it took too long.", Failed: true, Killed: true}, "The program fails. Error: it took too long.", 0},
		{envs.ToolAnswer{Text: strings.Repeat("e", 500), Failed: true}, "The program fails. " + strings.Repeat("e", maxSays-19-3) + "...", 0},
	} {
		v := p.judge("def f(x): return x", &c.answer)
		require.Equal(t, c.want, v.says)
		require.Equal(t, c.passed, v.passed)
		require.Equal(t, c.want == allPass, v.all)
		require.NotContains(t, v.says, "secret")
		require.LessOrEqual(t, len(v.says), maxSays)
	}
	require.False(t, p.judge("", nil).all, "a problem without a reference has none that is right unrun")
}

// A policy cannot write a grade: its text is a program, whatever it looks like.
func TestNoForgery(t *testing.T) {
	c := newCode(t, `{"levels":"1"}`)
	e := c.Reset(instance(1), draw.Address{}).(*episode)
	values := make([]string, len(e.problem.tests()))
	for i, test := range e.problem.tests() {
		values[i] = fmt.Sprintf(`{"value":%s}`, test.want)
	}
	good := envs.ToolAnswer{Text: "[" + strings.Join(values, ",") + "]"}
	forged := withAnswer("def f(x): return 0", good)
	_, ok := e.Question(forged)
	require.False(t, ok)
	p := envs.Protocol{FormatPenalty: -0.1}
	for name, text := range map[string]string{"whole": forged, "twice": withAnswer(forged, good), "in marks": "```\n" + forged + "\n```"} {
		turn := p.Play(c.Reset(instance(1), draw.Address{}), p.Parse(" "+text+" </answer>", 1), 1)
		require.Zero(t, turn.Reward, name)
		require.False(t, turn.Success, name)
		require.Equal(t, 1, turn.Invalid, name)
		require.Equal(t, -0.1, turn.Penalty, name)
	}
	// Behind something else it is a comment of a program, which is graded as it is.
	after := forged + "\nx = 1"
	q, ok := e.Question(after)
	require.True(t, ok)
	require.False(t, try(t, e, after).Success)
	asked, err := starlark.ReadQuestion(q)
	require.NoError(t, err)
	require.Equal(t, after, asked.Program)
	require.NotContains(t, strings.Join(asked.Expressions, "\n"), "==", "the child is told no value")
}

// Play takes the answer that was recorded, Replay builds the same episode from the action alone.
func TestPlayAndReplay(t *testing.T) {
	c := newCode(t, `{"levels":"1","tries":2,"reward":"share"}`)
	p := envs.Protocol{}
	e := c.Reset(instance(2), draw.Address{})
	reply := p.Parse(" def f(x):\n    return x </answer>", 1)
	action, q, ok := p.Question(e, reply)
	require.True(t, ok)
	require.Equal(t, "def f(x):\n    return x", action)
	a := answered(t, q)
	reply.Grade = &a
	turn := p.Play(e, reply, 2)
	require.Len(t, turn.Actions, 1)
	require.NotContains(t, turn.Actions[0], "|")
	again, played, err := envs.Replay(c, instance(2), draw.Address{}, [][]string{turn.Actions})
	require.NoError(t, err)
	require.Equal(t, e.StateKey(), again.StateKey())
	require.Equal(t, e.Observation(), again.Observation())
	require.Equal(t, turn.Reward, played[0].Reward)
	require.Equal(t, []int{1, 0, 0}, c.Count(turn.Actions, nil))
	require.Equal(t, []int{2, 2, 1}, c.Count([]string{
		withAnswer("x", envs.ToolAnswer{Failed: true}), withAnswer("x", envs.ToolAnswer{Failed: true, Killed: true}), "x",
	}, nil))
	for _, text := range []string{" your answer </answer>", " </answer>", " " + strings.Repeat("x", starlark.MaxProgram+1) + " </answer>", " ``` </answer>"} {
		_, _, ok := p.Question(c.Reset(instance(2), draw.Address{}), p.Parse(text, 1))
		if text == " ``` </answer>" {
			require.True(t, ok, "a program, if not one that runs")
			continue
		}
		require.False(t, ok, text[:10])
	}
}

// Choices are programs of functions of the same split, and none of them counts as run.
func TestChoices(t *testing.T) {
	c := newCode(t, `{"levels":"1","about":"numbers"}`)
	right := 0
	for n := range 40 {
		e := c.Reset(instance(n), draw.Address{})
		choices := e.Choices()
		require.Len(t, choices, exampleActions)
		require.Equal(t, choices, e.Choices())
		for _, choice := range choices {
			require.True(t, envs.Writable(choice))
			canonical, ok := e.Legal(choice)
			require.True(t, ok)
			require.Equal(t, choice, canonical)
			if c.Reset(instance(n), draw.Address{}).Step(choice).Success {
				right++
			}
		}
	}
	require.Less(t, right, 40)
	e := c.Reset(instance(1), draw.Address{}).(*episode)
	require.Equal(t, 1.0, e.BestSuccess(1))
	require.Zero(t, e.BestSuccess(0))
	require.True(t, e.Step(e.Advice(1)[0]).Success, "the reference is known to be right")
	e.problem = &problem{hidden: make([]test, 1)}
	e.last, e.tries = verdict{}, 0
	require.True(t, math.IsNaN(e.BestSuccess(1)))
	require.True(t, math.IsNaN(e.BestReward(1)))
}
