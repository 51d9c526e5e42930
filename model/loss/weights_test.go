package loss

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every weighting but the constant one averages: of equal losses, the loss.
func TestWeightsSum(t *testing.T) {
	b := randomBatch(7, 9, 0)
	for a, want := range map[Aggregation]float64{TokenMean: 1, SeqMeanTokenMean: 1} {
		weights, err := Weights(b.Mask, b.RowWeights, a, 0)
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
		require.Equal(t, zeros(mask), weights)
	}
	l, err := Policy(PolicyBatch{LogProbs: [][]float64{{0}}, OldLogProbs: [][]float64{{0}}, Advantages: [][]float64{{0}}, Mask: [][]bool{{false}}},
		PolicyOptions{Clips: []Clip{{}}, Aggregation: TokenMean})
	require.NoError(t, err)
	require.Zero(t, l.Loss)
}
