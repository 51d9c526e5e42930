package loss

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPreference(t *testing.T) {
	require.Equal(t, [][2]int{{1, 0}, {1, 3}, {2, 0}, {2, 3}}, Pairs([]bool{false, true, true, false}))
	require.Empty(t, Pairs([]bool{true, true}))
	for scores, want := range map[[2]float64]float64{
		{.1, .1}: math.Ln2, {1, 0}: math.Log1p(math.Exp(-1)), {0, 1}: math.Log1p(math.Exp(1)), {0, 800}: 800, {800, 0}: 0,
	} {
		got, err := Preference(scores[:], [][2]int{{0, 1}})
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-12, "%v", scores)
	}
	got, err := Preference(nil, nil)
	require.NoError(t, err)
	require.Zero(t, got)
	_, err = Preference([]float64{0}, [][2]int{{0, 1}})
	require.ErrorIs(t, err, ErrInput)
	require.ErrorContains(t, err, "pair 0 is of rows 0 and 1 of 1")
	_, err = Preference([]float64{0, math.NaN()}, [][2]int{{0, 1}})
	require.ErrorIs(t, err, ErrInput)
	require.ErrorContains(t, err, "the scores of pair 0 are 0 and NaN")
}

func TestBranchWeights(t *testing.T) {
	mask := [][]bool{{true, false, true}, {false, true}, {true, true}}
	got, err := BranchWeights(mask, []bool{false, true, false}, .5)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{.25, 0, .25}, {0, .5}, {.25, .25}}, got)
	got, err = BranchWeights(mask, make([]bool, 3), 1)
	require.NoError(t, err)
	plain, err := Weights(mask, nil, TokenMean, 0)
	require.NoError(t, err)
	require.Equal(t, plain, got, "without branches it is the token mean")
	_, err = BranchWeights(mask, nil, 1)
	require.ErrorContains(t, err, "3 rows, of which 0 are known")
	_, err = BranchWeights(mask, make([]bool, 3), -1)
	require.ErrorIs(t, err, ErrInput)
	require.ErrorContains(t, err, "lambda is -1")
}
