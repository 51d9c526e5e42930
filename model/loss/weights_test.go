package loss

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every weighting but the constant one averages: of equal losses, the loss.
func TestWeightsSum(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2))
	var mask [][]bool
	var rowWeights []float64
	for row := range 9 {
		sampled := make([]bool, 3+r.IntN(7))
		for at := range sampled {
			sampled[at] = r.IntN(4) > 0 && row != 1
		}
		mask, rowWeights = append(mask, sampled), append(rowWeights, []float64{1, 0.5, 2, 0}[row%4])
	}
	for a, want := range map[Aggregation]float64{TokenMean: 1, SeqMeanTokenMean: 1} {
		weights, err := Weights(mask, rowWeights, a, 0)
		require.NoError(t, err)
		var sum float64
		for _, row := range weights {
			for _, w := range row {
				sum += w
			}
		}
		require.InDelta(t, want, sum, 1e-12)
	}
	for _, mask := range [][][]bool{nil, {{false}}} {
		weights, err := Weights(mask, nil, TokenMean, 0)
		require.NoError(t, err)
		require.Equal(t, Zeros(mask), weights)
	}
}

func TestBlockWeights(t *testing.T) {
	mask := [][]bool{{false, true, true, false, true}, {true, false, false, false, false}, {false, false, false, false, false}}
	turns := [][]int32{{0, 0, 0, 1, 1}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}}
	got, err := BlockWeights(mask, turns, []float64{1, 3, 1})
	require.NoError(t, err)
	require.Equal(t, [][]float64{{0, .125, .125, 0, .25}, {.75, 0, 0, 0, 0}, {0, 0, 0, 0, 0}}, got)
	_, err = BlockWeights(mask, turns[:1], nil)
	require.ErrorContains(t, err, "turns of 1 rows for 3 rows")
	_, err = BlockWeights(mask[:1], [][]int32{{0}}, nil)
	require.ErrorContains(t, err, "row 0 has turns of 1 tokens, a mask of 5")
}
