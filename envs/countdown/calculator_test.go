package countdown

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

func TestCalculator(t *testing.T) {
	for text, want := range map[string]struct {
		canonical, result string
		valid             bool
	}{
		"calculate 1 + 2":                        {"calculate 1+2", "3", true},
		"Calculate(1+2) / 2":                     {"calculate (1+2)/2", "3/2", true},
		"calculate 1-2":                          {"calculate 1-2", "-1", true},
		"calculate 1/(2-2)":                      {"calculate 1/(2-2)", zeroDivision, false},
		"calculate":                              {unread, noExpression, false},
		"calculate two":                          {unread, noExpression, false},
		"calculate 99999*99999":                  {"calculate 99999*99999", tooLong, false},
		"calculate 1/99999/99999":                {"calculate 1/99999/99999", tooLong, false},
		"calculate 999999999":                    {"calculate 999999999", "999999999", true},
		"calculate " + strings.Repeat("1+", 300): {unread, noExpression, false},
	} {
		env := mustNew(t, `{"calculator":2}`)
		e := env.begin(instance{numbers: []int64{1, 2}, target: 3, solution: "1+2"})
		canonical, ok := e.Legal(text)
		require.True(t, ok, text)
		require.Equal(t, want.canonical, canonical)
		again, ok := e.Legal(canonical)
		require.True(t, ok)
		require.Equal(t, canonical, again)
		tool, valid := env.Call(canonical)
		require.Equal(t, Calculator, tool)
		require.Equal(t, want.valid, valid, text)
		before := e.StateKey()
		o := e.Step(canonical)
		require.Equal(t, envs.Outcome{Effective: true, Text: "Result: " + want.result}, o)
		require.Equal(t, "Numbers: 1, 2\nTarget: 3\nResult: "+want.result, e.Observation())
		require.NotEqual(t, before, e.StateKey())
		require.False(t, e.Step("calculate "+canonical[len("calculate "):]).Effective, "the same result")
		_, ok = e.Legal(canonical)
		require.False(t, ok, "no calls are left")
		require.Len(t, e.Choices(), choices)
		require.Equal(t, Right, e.Step("1+2").Reward)
		require.True(t, e.Done())
		require.Panics(t, func() { e.Step(canonical) })
	}
}

// Without the option the environment is what it was, its options as JSON too.
func TestNoCalculator(t *testing.T) {
	env := mustNew(t, `{"calculator":0}`)
	require.Empty(t, env.Tools())
	require.Equal(t, 1, env.MaxActions())
	require.NotContains(t, string(env.HeldOut()), "calculator")
	require.NotContains(t, env.Instructions(), Calculator)
	tool, _ := env.Call("calculate 1")
	require.Empty(t, tool)
	_, ok := env.Cases()[0].Legal("calculate 1")
	require.False(t, ok)
	require.Equal(t, `"calculator":2}`, string(mustNew(t, `{"calculator":2}`).HeldOut()[len(mustNew(t, "").HeldOut()):]))
	_, err := envs.New(Name, json.RawMessage(`{"calculator":21}`))
	require.ErrorContains(t, err, "from 0 to 20")
	_, err = envs.New(Name, json.RawMessage(`{"calculator":1,"attempts":2}`))
	require.ErrorContains(t, err, "two attempts")
}

// Instances are the same with and without a calculator, best play checks its answer, and
// starter transcripts have calls.
func TestCalculatorPlay(t *testing.T) {
	env := mustNew(t, `{"calculator":2}`)
	e := env.Reset(at(3), draw.Address{}).(*episode)
	require.Equal(t, mustNew(t, "").Reset(at(3), draw.Address{}).(*episode).instance, e.instance)
	require.Equal(t, []string{e.instance.solution}, e.Advice(1), "no time for a call")
	advice := e.Advice(3)
	require.Equal(t, []string{Calculator + " " + e.instance.solution, e.instance.solution}, advice)
	e.Step(advice[0])
	require.Equal(t, advice[1:], e.Advice(2))
	require.True(t, e.Step(advice[1]).Success)

	tok, err := starter.Second.Tokenizer()
	require.NoError(t, err)
	for demonstrations, most := range map[float64]int{0: 3, 1: 2} {
		rows, err := starter.Transcripts(tok, env, envs.Protocol{}, starter.Options{Turns: 3, Demonstrations: demonstrations}, 24, draw.Address{Seed: 1})
		require.NoError(t, err)
		calls := 0
		for _, row := range rows {
			text := tok.Decode(row.IDs)
			require.Contains(t, text, "<answer>")
			n := strings.Count(text, "\nResult: ")
			require.Less(t, n, most)
			calls += n
		}
		require.Positive(t, calls)
	}
}
