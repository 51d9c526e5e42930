package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	refs "github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

// weigh computes the weights of a golden batch.
func (in lossesIn) weigh(t *testing.T, m loss.Mismatch) loss.Weighed {
	t.Helper()
	got, err := m.Weigh(in.OldLogProb, in.RolloutLogProb, nil, everywhere(in.LogProb))
	require.NoError(t, err)
	return got
}

// perRow repeats a row's number at its tokens.
func perRow(of []float64, shape [][]float64) [][]float64 {
	out := make([][]float64, len(shape))
	for row := range shape {
		for range shape[row] {
			out[row] = append(out[row], of[row])
		}
	}
	return out
}

func TestMismatchGolden(t *testing.T) {
	g := refs.ReadMethod[lossesIn, lossesOut](t, "losses")
	for i, c := range g.Cases {
		in, out := c.In, c.Out
		const uncapped = 1e9
		for name, x := range map[string]struct {
			m    loss.Mismatch
			want [][]float64
		}{
			"tis, token":             {loss.Mismatch{Weight: loss.TokenWeight, Cap: in.ISCap}, out.TISToken},
			"tis, token, normalized": {loss.Mismatch{Weight: loss.TokenWeight, Cap: in.ISCap, Normalize: true}, out.TISTokenNormalized},
			"tis, sequence":          {loss.Mismatch{Weight: loss.SequenceWeight, Cap: in.ISCap}, perRow(out.TISSequence, in.LogProb)},
			"icepop":                 {loss.Mismatch{Weight: loss.TokenWeight, Cap: uncapped, Mask: loss.TokenWeight, Low: in.ISLow, High: in.ISCap}, out.IcePop},
			"mis, token":             {loss.Mismatch{Weight: loss.NoWeight, Mask: loss.TokenWeight, Low: in.ISLow, High: in.ISCap}, out.MISTokenMask},
			"geometric mask":         {loss.Mismatch{Weight: loss.NoWeight, Mask: loss.Geometric, Low: in.GeometricLow, High: in.GeometricHigh}, perRow(out.GeometricMask, in.LogProb)},
		} {
			got := in.weigh(t, x.m)
			require.Len(t, x.want, len(got.Weights))
			for row := range x.want {
				require.InDeltaSlice(t, x.want[row], got.Weights[row], g.Tolerance, "case %d, %s, row %d", i, name, row)
			}
		}
		// The ratio itself is the bound at which the mask keeps the row.
		for row, ratio := range out.GeometricRatio {
			for _, by := range []float64{-1, 1} {
				bound := ratio + by*g.Tolerance
				got := in.weigh(t, loss.Mismatch{Weight: loss.NoWeight, Mask: loss.Geometric, High: bound})
				require.Equal(t, by > 0, got.Weights[row][0] == 1, "case %d, row %d", i, row)
			}
		}
		got := in.weigh(t, loss.Mismatch{Weight: loss.TokenWeight, Cap: in.ISCap})
		require.InDelta(t, out.EffectiveSamples, got.EffectiveSamples, g.Tolerance, "case %d", i)
		require.InDelta(t, out.MismatchK3, got.K3, g.Tolerance, "case %d", i)
	}
}
