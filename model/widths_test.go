package model

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// A row in a narrower micro-batch has the figures that it has in a wide one, but for rounding, and
// an update at the parameters that scored it has ratios of exactly 1: of policy and critic. An
// update of several widths is that of one, but for rounding.
func TestNarrowerMicroBatches(t *testing.T) {
	d := testDevice(t)
	sh := Shapes{MicroBatch: 3, Sequence: 12, Narrower: [2]int{7, 5}}
	p, err := d.Programs(tiny(), nil, sh)
	require.NoError(t, err)
	defer p.Free()
	q, err := d.Programs(tiny().Critic(), nil, sh)
	require.NoError(t, err)
	defer q.Free()
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer func() { s.Free() }()
	v, err := q.NewState(trainedCritic())
	require.NoError(t, err)
	defer func() { v.Free() }()

	var wide, narrow []batch.MicroBatch
	for i, width := range []int{12, 7, 5} {
		b := batchOf(randomRows(uint64(i), p.c, 3, width), float32(i)-0.7)
		b.Columns[batch.Returns], b.Columns[batch.OldValues] = b.Columns[batch.Advantages], b.Columns[batch.OldLogProbs]
		wide = append(wide, b)
		b.Width = width
		narrow = append(narrow, b)
	}
	same := func(want, got []float32, length int32, what string) {
		require.InDeltaSlice(t, want[:length], got[:length], 1e-5, what)
	}
	for i := range narrow {
		want, _, err := p.Scorer.Score(t.Context(), s, wide[i], 1)
		require.NoError(t, err)
		got, entropy, err := p.Scorer.Score(t.Context(), s, narrow[i], 1)
		require.NoError(t, err)
		values, err := q.Scorer.ValuesAll(t.Context(), v, []batch.MicroBatch{wide[i], narrow[i]})
		require.NoError(t, err)
		for r := range got {
			require.Len(t, entropy[r], narrow[i].Width)
			same(want[r], got[r], narrow[i].Lengths[r], "log-probs")
			same(values[0][r], values[1][r], narrow[i].Lengths[r], "values")
		}
		narrow[i].Columns[batch.OldLogProbs], wide[i].Columns[batch.OldLogProbs] = got, got
	}
	update := func(batches []batch.MicroBatch) (UpdateMetrics, CriticMetrics) {
		own, err := p.NewState(tinyParams(tiny()))
		require.NoError(t, err)
		own, m, err := p.Learner.Update(t.Context(), own, batches, testSettings())
		require.NoError(t, err)
		own.Free()
		critic, err := q.NewState(trainedCritic())
		require.NoError(t, err)
		critic, c, err := q.Learner.CriticUpdate(t.Context(), critic, batches, criticSettings())
		require.NoError(t, err)
		critic.Free()
		return m, c
	}
	of, values := update(wide)
	got, critic := update(narrow)
	require.Zero(t, got.RatioMax)
	require.InDelta(t, 0, of.RatioMax, 1e-5, "the other program may round otherwise; with the kernels that are pinned on a CPU it does not")
	require.InDelta(t, of.Loss, got.Loss, 1e-5)
	require.InDelta(t, of.GradNorm, got.GradNorm, 1e-4*of.GradNorm)
	require.InDelta(t, values.Loss, critic.Loss, 1e-5*values.Loss)
	require.Equal(t, of.Tokens, got.Tokens)

	_, _, err = p.Scorer.Score(t.Context(), s, batch.MicroBatch{Width: 6, IDs: wide[2].IDs, Lengths: wide[2].Lengths}, 1)
	require.ErrorIs(t, err, ErrInput)
	require.ErrorContains(t, err, "width 6")
	_, _, err = p.Scorer.Score(t.Context(), s, batch.MicroBatch{Width: 5, IDs: wide[0].IDs, Lengths: wide[0].Lengths}, 1)
	require.ErrorIs(t, err, ErrInput)
	hashes, err := p.Hashes()
	require.NoError(t, err)
	n := 0
	for name := range hashes {
		if strings.HasSuffix(name, "-7") || strings.HasSuffix(name, "-5") {
			n++
		}
	}
	require.Equal(t, 4, n, "forward and backward of each width")
	for _, bad := range [][2]int{{12}, {5, 7}, {0, 5}, {1}} {
		_, err := d.Programs(tiny(), nil, Shapes{MicroBatch: 3, Sequence: 12, Narrower: bad})
		require.ErrorIs(t, err, ErrInput, "%v", bad)
	}
}
