package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
)

// agreeWithDifferences compares the gradient of a loss at base with finite
// differences, along a random direction of each tensor: all its elements count.
func agreeWithDifferences(t *testing.T, p *Programs, base, grads Params, loss func(*State) float64) {
	t.Helper()
	for i, ts := range p.c.Tensors() {
		d := draw.Address{Seed: 5, Step: int64(i)}.Rand()
		direction := make([]float64, ts.Elements())
		var want float64
		for j := range direction {
			direction[j] = d.NormFloat64()
			want += direction[j] * float64(grads.Values[i][j])
		}
		const h = 4e-4
		lossAt := func(by float64) float64 {
			ps := Params{Config: base.Config, Values: append([][]float32{}, base.Values...)}
			ps.Values[i] = append([]float32{}, base.Values[i]...)
			for j := range ps.Values[i] {
				ps.Values[i][j] += float32(by * direction[j])
			}
			s, err := p.NewState(ps)
			require.NoError(t, err)
			defer s.Free()
			return loss(s)
		}
		got := (lossAt(h) - lossAt(-h)) / (2 * h)
		require.InDelta(t, want, got, 2e-3+0.02*math.Abs(want), ts.Name)
	}
}
