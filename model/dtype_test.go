package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

func TestBFloat16(t *testing.T) {
	c := tiny()
	p, s := tinyPrograms(t, c)
	q, err := testDevice(t).Programs(c, nil, Shapes{GenerateRows: 4, PromptTokens: 6, MaxNewTokens: 8, MicroBatch: 3, Sequence: 7, ComputeDtype: "bfloat16"})
	require.NoError(t, err)
	defer q.Free()
	b := scoredBatch(t, q, s, 1, 1)
	lp, _, err := p.Scorer.Score(bg, s, b, 1)
	require.NoError(t, err)
	for i := range lp {
		require.InDeltaSlice(t, lp[i], b.Columns[batch.OldLogProbs][i], 0.15)
	}
	next, m, err := q.Learner.Update(bg, twin(t, q, s), []batch.MicroBatch{b}, testSettings())
	require.NoError(t, err)
	defer next.Free()
	require.Equal(t, 0.0, m.RatioMax)
	half, _ := gradients(t, q, s, []batch.MicroBatch{b}, testSettings(), true)
	full, _ := gradients(t, p, s, []batch.MicroBatch{b}, testSettings(), true)
	for i, ts := range c.Tensors() {
		var dot, hh, ff float64
		for j := range full.Values[i] {
			x, y := float64(half.Values[i][j]), float64(full.Values[i][j])
			dot, hh, ff = dot+x*y, hh+x*x, ff+y*y
		}
		if ff > 1e-8 {
			require.Greater(t, dot/math.Sqrt(hh*ff), 0.98, ts.Name)
		}
	}
	out, err := q.Sampler.Generate(bg, s, GenerateInput{Prompts: randomRows(1, c, 2, 5)})
	require.NoError(t, err)
	require.Len(t, out.Tokens[0], 8)
}
