package loss

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// logsOf are log-probs whose w are the given ones, with a rollout of log-probs −1.
func logsOf(w [][]float64) (old, rollout [][]float64, mask [][]bool) {
	for _, row := range w {
		var o, r []float64
		var m []bool
		for _, x := range row {
			o, r, m = append(o, math.Log(x)-1), append(r, -1), append(m, x > 0)
		}
		old, rollout, mask = append(old, o), append(rollout, r), append(mask, m)
	}
	return old, rollout, mask
}

func TestMismatchWorked(t *testing.T) {
	// w of 0 is a token that was not sampled.
	old, rollout, mask := logsOf([][]float64{{1.5, 0, 0.8}, {2, 2, 0.25, 0.5}})
	turns := [][]int{{1, 0, 1}, {1, 1, 2, 2}}
	for name, c := range map[string]struct {
		m       Mismatch
		want    [][]float64
		dropped float64
	}{
		"no weight":         {Mismatch{Weight: NoWeight}, [][]float64{{1, 0, 1}, {1, 1, 1, 1}}, 0},
		"token":             {Mismatch{Weight: TokenWeight, Cap: 1.25}, [][]float64{{1.25, 0, 0.8}, {1.25, 1.25, 0.25, 0.5}}, 0},
		"turn":              {Mismatch{Weight: TurnWeight, Cap: 3}, [][]float64{{1.2, 0, 1.2}, {3, 3, 0.125, 0.125}}, 0},
		"sequence":          {Mismatch{Weight: SequenceWeight, Cap: 1.25}, [][]float64{{1.2, 0, 1.2}, {0.5, 0.5, 0.5, 0.5}}, 0},
		"mask, token":       {Mismatch{Weight: NoWeight, Mask: TokenWeight, Low: 0.4, High: 1.6}, [][]float64{{1, 0, 1}, {0, 0, 0, 1}}, 3.0 / 6},
		"mask, turn":        {Mismatch{Weight: NoWeight, Mask: TurnWeight, Low: 0.1, High: 3}, [][]float64{{1, 0, 1}, {0, 0, 1, 1}}, 2.0 / 6},
		"mask, sequence":    {Mismatch{Weight: TokenWeight, Cap: 9, Mask: SequenceWeight, Low: 0.6, High: 3}, [][]float64{{1.5, 0, 0.8}, {0, 0, 0, 0}}, 4.0 / 6},
		"mask, geometric":   {Mismatch{Weight: NoWeight, Mask: Geometric, Low: 0.99, High: 1.5}, [][]float64{{1, 0, 1}, {0, 0, 0, 0}}, 4.0 / 6},
		"veto":              {Mismatch{Weight: NoWeight, Veto: 0.3}, [][]float64{{1, 0, 1}, {0, 0, 0, 0}}, 4.0 / 6},
		"normalized":        {Mismatch{Weight: SequenceWeight, Cap: 9, Mask: SequenceWeight, High: 1, Normalize: true}, [][]float64{{0, 0, 0}, {1.5, 1.5, 1.5, 1.5}}, 2.0 / 6},
		"nothing is kept":   {Mismatch{Weight: TokenWeight, Cap: 9, Mask: SequenceWeight, High: 0.1, Normalize: true}, [][]float64{{0, 0, 0}, {0, 0, 0, 0}}, 1},
		"icepop, unbounded": {Mismatch{Weight: TokenWeight, Cap: 9, Mask: TokenWeight, High: 9}, [][]float64{{1.5, 0, 0.8}, {2, 2, 0.25, 0.5}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.m.Weigh(old, rollout, turns, mask)
			require.NoError(t, err)
			near(t, c.want, got.Weights)
			require.InDelta(t, c.dropped, got.Dropped, 1e-12)
			require.InDelta(t, (0.5-math.Log(1.5)+-0.2-math.Log(0.8)+2*(1-math.Log(2))+-0.75-math.Log(0.25)+-0.5-math.Log(0.5))/6, got.K3, 1e-9)
		})
	}
}

// The policy that sampled has the weight 1, exactly, in every form.
func TestMismatchOfTheSampler(t *testing.T) {
	old, _, mask := logsOf([][]float64{{0.3, 1}, {0.7, 0.1, 0.2}})
	turns := [][]int{{1, 2}, {1, 1, 2}}
	for _, w := range []Unit{TokenWeight, TurnWeight, SequenceWeight} {
		for _, m := range []Unit{"", TokenWeight, TurnWeight, SequenceWeight, Geometric} {
			got, err := Mismatch{Weight: w, Cap: 2, Mask: m, Low: 1, High: 1, Veto: 0.5, Normalize: true}.Weigh(old, old, turns, mask)
			require.NoError(t, err)
			require.Equal(t, Weighed{Weights: [][]float64{{1, 1}, {1, 1, 1}}, EffectiveSamples: 1, Mean: 1, Max: 1}, got)
		}
	}
}

func TestMismatchNotFinite(t *testing.T) {
	got, err := Mismatch{Weight: TokenWeight, Cap: 2, Mask: TokenWeight, High: 5}.Weigh([][]float64{{math.NaN(), -1e9, 1e9}}, [][]float64{{0, 0, 0}}, nil, [][]bool{{true, true, true}})
	require.NoError(t, err)
	require.True(t, math.IsNaN(got.Weights[0][0]))
	require.Equal(t, []float64{math.Exp(-maxLogWeight), 0}, got.Weights[0][1:])
}

func TestMismatchErrors(t *testing.T) {
	one, mask := [][]float64{{0}}, [][]bool{{true}}
	good := Mismatch{Weight: TokenWeight, Cap: 2}
	for name, m := range map[string]Mismatch{
		"a weight": {Weight: Geometric, Cap: 2}, "no weight": {}, "a cap": {Weight: TokenWeight}, "a mask": {Weight: NoWeight, Mask: "row"},
		"bounds": {Weight: NoWeight, Mask: TokenWeight, Low: 2, High: 1}, "a veto": {Weight: NoWeight, Veto: 1},
		"no turns": {Weight: TurnWeight, Cap: 2}, "no turns for a mask": {Weight: NoWeight, Mask: TurnWeight, High: 2},
	} {
		_, err := m.Weigh(one, one, nil, mask)
		require.ErrorIs(t, err, ErrInput, name)
	}
	for _, x := range [][2][][]float64{{nil, one}, {one, nil}} {
		_, err := good.Weigh(x[0], x[1], nil, mask)
		require.ErrorIs(t, err, ErrInput)
	}
	_, err := good.Weigh(one, one, [][]int{{1, 1}}, mask)
	require.ErrorIs(t, err, ErrInput)
}
