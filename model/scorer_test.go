package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

func TestChunksGiveTheSameScores(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	q, err := testDevice(t).programsWith(tiny(), nil, p.sh, limits{queries: 3, logits: 37 * 4, prefill: 12})
	require.NoError(t, err)
	defer q.Free()
	b := batchOf(randomRows(3, p.c, 3, 7), 1)
	lp, ent, err := p.Scorer.Score(bg, s, b, 1)
	require.NoError(t, err)
	lp2, ent2, err := q.Scorer.Score(bg, s, b, 1)
	require.NoError(t, err)
	for i := range lp {
		require.InDeltaSlice(t, lp[i], lp2[i], 1e-5)
		require.InDeltaSlice(t, ent[i], ent2[i], 1e-5)
	}
	in := GenerateInput{Prompts: randomRows(1, p.c, 4, 5)}
	x, err := p.Sampler.Generate(bg, s, in)
	require.NoError(t, err)
	y, err := q.Sampler.Generate(bg, s, in)
	require.NoError(t, err)
	require.Equal(t, x.Tokens, y.Tokens)
}

func TestAFreshCriticExpectsNothing(t *testing.T) {
	p, s, fresh := tinyCritic(t)
	b := batchOf(randomRows(1, p.c, 3, 7), 1)
	b.Lengths[2] = 5
	values, err := p.Scorer.Values(bg, fresh, b)
	require.NoError(t, err)
	for _, row := range values {
		require.Equal(t, make([]float32, 7), row)
	}
	values, err = p.Scorer.Values(bg, s, b)
	require.NoError(t, err)
	for r, row := range values {
		require.Len(t, row, 7)
		for at, v := range row {
			require.Equal(t, at == 0 || at >= int(b.Lengths[r]), v == 0, "row %d, token %d", r, at)
		}
	}
	// A value is of what came before its token, in its own row.
	again := batchOf(randomRows(2, p.c, 3, 7), 1)
	again.Lengths[2] = 5
	copy(again.IDs[0][:3], b.IDs[0])
	other, err := p.Scorer.Values(bg, s, again)
	require.NoError(t, err)
	require.Equal(t, values[0][:4], other[0][:4])
	require.NotEqual(t, values[0][4], other[0][4])
	alone, err := p.Scorer.Values(bg, s, batch.MicroBatch{IDs: b.IDs[:1], Lengths: b.Lengths[:1]})
	require.NoError(t, err)
	require.Equal(t, values[:1], alone)
}

func TestScorersOfWidths(t *testing.T) {
	p, err := testDevice(t).Programs(tiny(), nil, Shapes{MicroBatch: 3, Sequence: 12, Narrower: [2]int{7, 5}})
	require.NoError(t, err)
	defer p.Free()
	require.Empty(t, p.Sampler.rope.first)
	require.Same(t, p.Scorer, p.Scorer.widths[0])
	for i, width := range []int{12, 7, 5} {
		require.Equal(t, width, p.Scorer.widths[i].sh.Sequence)
		at, err := p.Scorer.place(batch.MicroBatch{Width: width})
		require.NoError(t, err)
		require.Equal(t, i, at)
	}
	at, err := p.Scorer.place(batch.MicroBatch{}) // as wide as Sequence
	require.NoError(t, err)
	require.Zero(t, at)
	_, err = p.Scorer.place(batch.MicroBatch{Width: 6})
	require.ErrorIs(t, err, ErrInput)
	require.EqualError(t, err, ErrInput.Error()+": a micro-batch of width 6, the programs are for 12 and [7 5]")
}
