package foreign_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
)

// byTurns are episodes of 1, 2, 3 … turns; turn k of episode i pays 10i + k.
func byTurns(n int) []foreign.Scored {
	out := make([]foreign.Scored, n)
	for i := range out {
		for k := range i + 1 {
			out[i].Turns = append(out[i].Turns, foreign.ScoredTurn{Reply: "1", Actions: []string{"1"}, Reward: float64(10*i + k)})
		}
		out[i].Identify()
	}
	return out
}

// A judge by turn says a number for each turn of each component, one component after the other.
func TestJudgeByTurn(t *testing.T) {
	var asked []byte
	by := func(call foreign.Call) foreign.Judge {
		return foreign.Judge{Name: "judge", Components: []string{"correct", "polite"}, ByTurn: true, Call: func(ctx context.Context, name string, input []byte) ([]byte, error) {
			asked = input
			return call(ctx, name, input)
		}}
	}
	verdicts, err := by(standin.Call(standin.None)).Score(t.Context(), byTurns(3))
	require.NoError(t, err)
	require.Contains(t, string(asked), `"components":["correct","polite"],"level":"turn","episodes":[`)
	for i, want := range [][]float64{{0, 0}, {10, 11, 10, 11}, {20, 21, 22, 20, 21, 22}} {
		require.Equal(t, want, verdicts[i].Values)
		require.Equal(t, "by the reward", verdicts[i].Text)
	}
	verdicts, err = by(standin.Call(standin.Broken)).Score(t.Context(), byTurns(2))
	require.NoError(t, err)
	require.ErrorIs(t, verdicts[1].Err, foreign.ErrBroken)
	require.Empty(t, verdicts[1].Values)

	// A judge of episodes is asked as before.
	episodes := by(standin.Call(standin.None))
	episodes.ByTurn = false
	_, err = episodes.Score(t.Context(), byTurns(3))
	require.NoError(t, err)
	require.Contains(t, string(asked), `{"options":{},"components":["correct","polite"],"episodes":[`)
}

// Of a judge by turn, an answer of another form is no answer.
func TestAnswersByTurn(t *testing.T) {
	const whole = `[10,11]`
	answer := func(components string) foreign.Call {
		return func(_ context.Context, _ string, input []byte) ([]byte, error) {
			var asked struct{ Episodes []foreign.Scored }
			require.NoError(t, json.Unmarshal(input, &asked))
			return fmt.Appendf(nil, `{"model":"m","prompt":"","episodes":[{"id":%q,"components":%s,"verdict":"","raw":""}]}`, asked.Episodes[0].ID, components), nil
		}
	}
	ask := func(components string, byTurn bool) ([]foreign.Verdict, error) {
		return foreign.Judge{Name: "judge", Components: []string{"a", "b"}, ByTurn: byTurn, Call: answer(components)}.Score(t.Context(), byTurns(2)[1:])
	}
	verdicts, err := ask(`{"b":[2,-3.5],"a":[0,1e6]}`, true)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1e6, 2, -3.5}, verdicts[0].Values)
	for b, want := range map[string]string{
		`[1]`:                                   "components.b: found an array of 1; allowed: an array of 2, a number for each turn of the episode",
		`[1,2,3]`:                               "components.b: found an array of 3",
		`[]`:                                    "components.b: found an array of 0",
		`7`:                                     "components.b: found 7; allowed: an array of 2",
		`null`:                                  "components.b: found null",
		`{"0":1,"1":2}`:                         "components.b: found an object",
		`[1,null]`:                              "components.b[1]: found null; allowed: a number",
		`[1,"2"]`:                               "components.b[1]: found \"2\"",
		`[1e7,2]`:                               "components.b[0]: found 1e7",
		`[NaN,2]`:                               "is not valid",
		`[1,[2]]`:                               "components.b[1]: found an array",
		`[1,0.` + strings.Repeat("1", 50) + `]`: "components.b[1]",
	} {
		_, err := ask(`{"a":`+whole+`,"b":`+b+`}`, true)
		require.ErrorIs(t, err, foreign.ErrAnswer, b)
		require.ErrorContains(t, err, want, b)
	}
	for components, want := range map[string]string{
		`{"a":[1,2]}`:                     "components.b: found nothing",
		`{"a":[1,2],"b":[1,2],"c":[1,2]}`: "components.c",
	} {
		_, err := ask(components, true)
		require.ErrorIs(t, err, foreign.ErrAnswer)
		require.ErrorContains(t, err, want)
	}
	_, err = ask(`{"a":[1,2],"b":[1,2]}`, false)
	require.ErrorContains(t, err, "components.a: found an array", "a judge of episodes gives one number")
}

// The check knows the level: values are those of turns.
func TestCheckJudgeByTurn(t *testing.T) {
	judge := foreign.Judge{Name: "judge", Components: []string{"correct", "polite"}, ByTurn: true, Call: standin.Call(standin.None)}
	check := func(j foreign.Judge) (problems, notes map[string]string) {
		problems, notes = map[string]string{}, map[string]string{}
		findings, err := foreign.CheckJudge(t.Context(), j, j, foreign.JudgeCheck{Episodes: foreign.MadeUp(), PerCall: 8, FailedShare: 0.05})
		require.NoError(t, err)
		for _, f := range findings {
			problems[f.Part], notes[f.Part] = f.Problem, f.Note
		}
		return problems, notes
	}
	problems, notes := check(judge)
	for part, problem := range problems {
		require.Empty(t, problem, part)
	}
	require.Equal(t, "-0.1 to 1, mean 0.15 of 10 turns", notes["component correct"])

	judge.Call = standin.Call(standin.Random)
	_, notes = check(judge)
	require.Contains(t, notes["component polite"], "the same for every turn")
	require.Contains(t, notes["the same verdicts twice"], "as episode 0 (reward 1, last reply")

	// One that answers otherwise alone: its second turn differs.
	alone := standin.Call(standin.None)
	judge.Call = func(ctx context.Context, name string, input []byte) ([]byte, error) {
		out, err := alone(ctx, name, input)
		if bytes.Count(input, []byte(`"id":`)) == 1 {
			out = bytes.Replace(out, []byte(`"polite":[-0.1,1]`), []byte(`"polite":[-0.1,0.5]`), 1)
		}
		return out, err
	}
	problems, _ = check(judge)
	require.Contains(t, problems["the same verdicts one by one"], "1 of 8 differ, as episode 1 (")
	require.Contains(t, problems["the same verdicts one by one"], "correct -0.1 1, polite -0.1 1, then correct -0.1 1, polite -0.1 0.5")

	// One that knows episodes alone.
	judge.Call = func(ctx context.Context, name string, input []byte) ([]byte, error) {
		return standin.Call(standin.None)(ctx, name, bytes.Replace(input, []byte(`"level":"turn",`), nil, 1))
	}
	problems, _ = check(judge)
	require.Contains(t, problems["verdicts"], "episodes[0].components.correct: found 1; allowed: an array of 1, a number for each turn")
}

// Whatever a judge answers, a verdict is whole or it is an error.
func FuzzReadVerdicts(f *testing.F) {
	episodes := byTurns(2)
	for _, components := range []string{`{"a":[1],"b":[2]}`, `{"a":1,"b":2}`, `{"a":[],"b":[1,2,3]}`, `{"a":[[1]],"b":[null]}`} {
		f.Add(fmt.Appendf(nil, `{"model":"m","prompt":"","episodes":[{"id":%q,"components":%s,"verdict":"v","raw":"r"},`+
			`{"id":%q,"error":{"kind":"broken","message":"none"}}]}`, episodes[0].ID, components, episodes[1].ID))
	}
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, byTurn := range []bool{false, true} {
			verdicts, err := foreign.Judge{Name: "judge", Components: []string{"a", "b"}, ByTurn: byTurn, Call: func(context.Context, string, []byte) ([]byte, error) {
				return answer, nil
			}}.Score(t.Context(), episodes)
			if err != nil {
				continue
			}
			require.Len(t, verdicts, 2)
			for i, v := range verdicts {
				want := 2
				if byTurn {
					want = 2 * len(episodes[i].Turns)
				}
				if v.Err != nil {
					want = 0
				}
				require.Len(t, v.Values, want)
			}
		}
	})
}
