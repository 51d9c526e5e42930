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
