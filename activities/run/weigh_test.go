package run

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

// The weights multiply the advantages of sampled tokens, and nothing else of a row.
func TestWeighRows(t *testing.T) {
	l := float32(math.Log(2))
	rows := []batch.Row{
		{Mask: []bool{false, true, true}, Turns: []int32{0, 1, 2}, Columns: batch.RowColumns{batch.OldLogProbs: []float32{9, l - 1, -1}, batch.RolloutLogProbs: []float32{0, -1, -1}, batch.Advantages: []float32{7, 3, 5}}},
		{Mask: []bool{false, true, false}, Turns: []int32{0, 1, 0}, Columns: batch.RowColumns{batch.OldLogProbs: []float32{0, -l, 0}, batch.RolloutLogProbs: []float32{0, 0, 0}, batch.Advantages: []float32{0, -4, 0}}},
	}
	before := slices.Clone(rows)
	kept := slices.Clone(rows[0].Columns[batch.Advantages])
	w, err := WeighRows(rows, loss.Mismatch{Weight: loss.TurnWeight, Cap: 1.5})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{0, 4.5, 5}, rows[0].Columns[batch.Advantages], 1e-6)
	require.InDeltaSlice(t, []float32{0, -2, 0}, rows[1].Columns[batch.Advantages], 1e-6)
	require.InDelta(t, 1.5, w.Max, 1e-6)
	require.Equal(t, kept, before[0].Columns[batch.Advantages], "the slice is another")
	before[0].Columns[batch.Advantages] = rows[0].Columns[batch.Advantages]
	require.Equal(t, before[0], rows[0])

	_, err = WeighRows(rows, loss.Mismatch{})
	require.ErrorIs(t, err, loss.ErrInput)
}

// Weights by turn are products over the turn's own tokens, in every row: a turn of the same number in another row is
// another turn.
func TestWeighRowsByTurn(t *testing.T) {
	l := float32(math.Log(2))
	row := func(first, second, third float32) batch.Row {
		return batch.Row{
			Mask: []bool{false, true, true, true}, Turns: []int32{0, 1, 1, 2}, Columns: batch.RowColumns{batch.OldLogProbs: []float32{0, first, second, third}, batch.RolloutLogProbs: make([]float32, 4), batch.Advantages: []float32{9, 1, 10, 100}},
		}
	}
	rows := []batch.Row{row(-l, -l, 0), row(0, -l, -3*l)}
	_, err := WeighRows(rows, loss.Mismatch{Weight: loss.TurnWeight, Cap: 8})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{0, .25, 2.5, 100}, rows[0].Columns[batch.Advantages], 1e-5)
	require.InDeltaSlice(t, []float32{0, .5, 5, 12.5}, rows[1].Columns[batch.Advantages], 1e-5)
	require.Equal(t, []float64{1, -2}, wider([]float32{1, -2}))
}
