package credit

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// Two rows do the same first, and then part: one succeeds, and has a turn that the other has not.
func TestAgentPRM(t *testing.T) {
	spans := func(turns int) (out []Span, length int) {
		for k := range turns {
			out = append(out, Span{From: 3*k + 1, To: 3*k + 3})
		}
		return out, 3 * turns
	}
	in := Input{
		Groups: []int{0, 0}, Successes: []bool{true, false},
		Keys:    [][]string{{"s0", "s1", "s2"}, {"s0", "s1"}},
		Actions: [][]string{{"a", "b", "c"}, {"a", "other"}},
	}
	for _, turns := range []int{3, 2} {
		s, n := spans(turns)
		in.Turns, in.Lengths = append(in.Turns, s), append(in.Lengths, n)
		values := make([]float64, n)
		for k, of := range s {
			values[of.From], values[of.To-1] = 100, float64(k-turns) // the first is not read
		}
		in.Values = append(in.Values, values)
	}
	in.Mask = [][]bool{make([]bool, 9), make([]bool, 6)}
	q := func(f float64) float64 { return 1 / (1 + math.Exp(-f)) }
	advantages, targets, err := AgentPRM(in, Options{Gamma: 0.95})
	require.NoError(t, err)
	golden.Near(t, []float64{(q(-3) - q(-2)) / 2, (q(-2) - q(-1)) / 2, 0}, advantages[0], 1e-12)
	golden.Near(t, []float64{(q(-2) - q(-3)) / 2, (q(-1) - q(-2)) / 2}, advantages[1], 1e-12)
	golden.Near(t, []float64{0, 0, 0.95 * 0.95 / 2, 0, 0, 0.95, 0, 0, 1}, targets[0], 1e-12)
	golden.Near(t, []float64{0, 0, 0.95 * 0.95 / 2, 0, 0, 0}, targets[1], 1e-12)

	scaled, _, err := AgentPRM(in, Options{Gamma: 0.95, NormalizeByStd: true})
	require.NoError(t, err)
	require.InDelta(t, -1/math.Sqrt2, scaled[0][0], 1e-9)

	_, targets, err = AgentPRM(in, Options{Gamma: 0.95, Own: Own{"code_form": true}})
	require.NoError(t, err)
	require.InDelta(t, 0.5, targets[0][2], 1e-12, "the code discounts from the start")
	require.InDelta(t, (1-0.95)/2, targets[1][5], 1e-12)

	// The same state after other turns is another.
	in.Keys[1][1], in.Actions[1] = "s1", []string{"z", "b"}
	_, targets, err = AgentPRM(in, Options{Gamma: 0.95})
	require.NoError(t, err)
	require.InDelta(t, 0.95, targets[0][5], 1e-12)
	require.Zero(t, targets[1][5])

	in.Values[0][2] = math.NaN()
	_, _, err = AgentPRM(in, Options{Gamma: 0.95})
	require.ErrorIs(t, err, ErrNotFinite)
	in.Actions = nil
	_, _, err = AgentPRM(in, Options{Gamma: 0.95})
	require.ErrorIs(t, err, ErrInput)
}
