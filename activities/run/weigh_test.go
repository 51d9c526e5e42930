package run

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/loss"
)

// The weights multiply the advantages of sampled tokens, and nothing else of a row.
func TestWeighRows(t *testing.T) {
	l := float32(math.Log(2))
	rows := []BatchRow{
		{Mask: []bool{false, true, true}, Turns: []int32{0, 1, 2}, Old: []float32{9, l - 1, -1}, Rollout: []float32{0, -1, -1}, Advantages: []float32{7, 3, 5}},
		{Mask: []bool{false, true, false}, Turns: []int32{0, 1, 0}, Old: []float32{0, -l, 0}, Rollout: []float32{0, 0, 0}, Advantages: []float32{0, -4, 0}},
	}
	before := slices.Clone(rows)
	kept := slices.Clone(rows[0].Advantages)
	w, err := WeighRows(rows, loss.Mismatch{Weight: loss.TurnWeight, Cap: 1.5})
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{0, 4.5, 5}, rows[0].Advantages, 1e-6)
	require.InDeltaSlice(t, []float32{0, -2, 0}, rows[1].Advantages, 1e-6)
	require.InDelta(t, 1.5, w.Max, 1e-6)
	require.Equal(t, kept, before[0].Advantages, "the slice is another")
	before[0].Advantages = rows[0].Advantages
	require.Equal(t, before[0], rows[0])

	_, err = WeighRows(rows, loss.Mismatch{})
	require.ErrorIs(t, err, loss.ErrInput)
}

// The sampler's log-probs are in a batch if its rows have them.
func TestBatchWithRollout(t *testing.T) {
	rows := someBatch()
	for i := range rows {
		rows[i].Rollout = []float32{0, -float32(i), -2}
	}
	raw, err := EncodeBatch(rows, 2)
	require.NoError(t, err)
	got, err := DecodeBatch(raw, 2, 3, 0, false)
	require.NoError(t, err)
	for i := range got {
		require.Equal(t, rows[i].Rollout, got[i].Rollout)
	}
}
