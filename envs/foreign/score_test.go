package foreign_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
)

// scored are episodes with rewards 0, 1, 2 ….
func scored(n int) []foreign.Scored {
	out := make([]foreign.Scored, n)
	for i := range out {
		out[i] = foreign.Scored{Environment: "guess", Reward: float64(i), Turns: []foreign.ScoredTurn{{Reply: "1", Actions: []string{"1"}, Reward: float64(i)}}}
		out[i].Identify()
	}
	return out
}

func TestJudge(t *testing.T) {
	ask := func(call foreign.Call, n int) ([]foreign.Verdict, error) {
		return foreign.Judge{Name: "judge", Components: []string{"correct", "polite"}, Call: call}.Score(t.Context(), scored(n))
	}
	verdicts, err := ask(standin.Call(standin.None), 2)
	require.NoError(t, err)
	require.Equal(t, foreign.Verdict{
		Model: "standin", Prompt: foreign.Begin("What was the reward?"), Values: []float64{1, 1}, Text: "by the reward", Raw: "Reward 1 in 1 turns.",
	}, verdicts[1])
	verdicts, err = ask(standin.Call(standin.Broken), 2)
	require.NoError(t, err)
	require.NoError(t, verdicts[0].Err)
	require.ErrorIs(t, verdicts[1].Err, foreign.ErrBroken)
	require.ErrorContains(t, verdicts[1].Err, "not JSON")
	for fault, want := range map[string]error{standin.Episode: foreign.ErrOther, standin.Lie: foreign.ErrAnswer, standin.Noise: foreign.ErrAnswer} {
		_, err = ask(standin.Call(fault), 2)
		require.ErrorIs(t, err, want, fault)
	}
	_, err = ask(standin.Call(standin.None), foreign.MaxEpisodes+1)
	require.Error(t, err)

	// What is too long for the transport is asked about in halves.
	calls := 0
	verdicts, err = ask(func(ctx context.Context, name string, input []byte) ([]byte, error) {
		calls++
		var asked struct{ Episodes []json.RawMessage }
		require.NoError(t, json.Unmarshal(input, &asked))
		if len(asked.Episodes) > 2 {
			return nil, foreign.ErrFlood
		}
		return standin.Call(standin.None)(ctx, name, input)
	}, 5)
	require.NoError(t, err)
	require.Equal(t, 5, calls, "5 episodes, of these 2 and 3, of these 1 and 2")
	for i, v := range verdicts {
		require.Equal(t, []float64{float64(i), float64(i)}, v.Values)
	}

	// A model may write anything; what the judge says of itself has a form.
	written := func(old, new string) foreign.Call {
		return func(ctx context.Context, name string, input []byte) ([]byte, error) {
			out, err := standin.Call(standin.None)(ctx, name, input)
			return []byte(strings.Replace(string(out), old, new, 1)), err
		}
	}
	verdicts, err = ask(written("by the reward", `a\u0000b\ufffd`), 1)
	require.NoError(t, err)
	require.Equal(t, "a\uFFFDb\uFFFD", verdicts[0].Text)
	for old, new := range map[string]string{`"standin"`: `""`, foreign.Begin("What was the reward?"): "v1", `"polite":0`: `"polite":1e9`, `"by the reward"`: `7`} {
		_, err = ask(written(old, new), 1)
		require.ErrorIs(t, err, foreign.ErrAnswer, new)
	}
}
