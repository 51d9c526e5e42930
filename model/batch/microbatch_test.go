package batch

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/loss"
)

func TestWeigh(t *testing.T) {
	batches := []MicroBatch{
		{IDs: [][]int32{{1, 2, 3}, {1, 2}}, Lengths: []int32{3, 2}, Mask: [][]bool{{false, true, true}, {false, true}}, RowWeights: []float32{1, 0}},
		{},
		{IDs: [][]int32{{1, 2}}, Lengths: []int32{2}, Mask: [][]bool{{false, true}}},
	}
	require.NoError(t, Weigh(batches, loss.SeqMeanTokenMean, 0))
	require.Equal(t, [][]float32{{0, 0.25, 0.25}, {0, 0}}, batches[0].Columns[Weights])
	require.Equal(t, [][]float32{{0, 0.5}}, batches[2].Columns[Weights])
	for name, spoil := range map[string]func(*MicroBatch){
		"no lengths":   func(b *MicroBatch) { b.Lengths = nil },
		"two masks":    func(b *MicroBatch) { b.Mask = append(b.Mask, nil) },
		"at the start": func(b *MicroBatch) { b.Mask = [][]bool{{true}} },
		"row weights":  func(b *MicroBatch) { b.RowWeights = []float32{1, 1} },
		"negative":     func(b *MicroBatch) { b.RowWeights = []float32{-1} },
		"not finite":   func(b *MicroBatch) { b.RowWeights = []float32{float32(math.Inf(1))} },
	} {
		b := batches[2]
		spoil(&b)
		require.ErrorIs(t, Weigh([]MicroBatch{b}, loss.TokenMean, 0), ErrInput, name)
	}
	require.ErrorIs(t, Weigh(batches, "mean", 0), ErrInput)
	require.ErrorIs(t, Weigh(batches, loss.Constant, 0), ErrInput)
}
