package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	refs "github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

// lossesIn is a batch: [rows][tokens], advantages [rows].
type lossesIn struct {
	LogProb         [][]float64 `json:"logprob"`
	OldLogProb      [][]float64 `json:"old_logprob"`
	RolloutLogProb  [][]float64 `json:"rollout_logprob"`
	Advantages      []float64   `json:"advantages"`
	ClipLow         float64     `json:"clip_low"`
	ClipHigh        float64     `json:"clip_high"`
	CISPOHigh       float64     `json:"cispo_high"`
	TauPositive     float64     `json:"tau_positive"`
	TauNegative     float64     `json:"tau_negative"`
	DPPODelta       float64     `json:"dppo_delta"`
	DPPOCap         float64     `json:"dppo_cap"`
	GSPOLow         float64     `json:"gspo_low"`
	GSPOHigh        float64     `json:"gspo_high"`
	ISCap           float64     `json:"is_cap"`
	ISLow           float64     `json:"is_low"`
	GeometricLow    float64     `json:"geometric_low"`
	GeometricHigh   float64     `json:"geometric_high"`
	SequenceKLLimit float64     `json:"sequence_kl_limit"`
}

// tokenLosses are the loss of each token and its derivative by the token's log-prob.
type tokenLosses struct {
	Loss [][]float64 `json:"loss"`
	Grad [][]float64 `json:"grad"`
}

type lossesOut struct {
	PPO                tokenLosses `json:"ppo_clip"`
	CISPO              tokenLosses `json:"cispo_upper"`
	SAPO               tokenLosses `json:"sapo"`
	DPPOTV             tokenLosses `json:"dppo_tv"`
	GSPO               tokenLosses `json:"gspo_token_gradient"`
	TISToken           [][]float64 `json:"tis_token"`
	TISTokenNormalized [][]float64 `json:"tis_token_normalized"`
	TISSequence        []float64   `json:"tis_sequence"`
	IcePop             [][]float64 `json:"icepop"`
	MISTokenMask       [][]float64 `json:"mis_token_mask"`
	GeometricRatio     []float64   `json:"geometric_ratio"`
	GeometricMask      []float64   `json:"geometric_mask"`
	OffPolicyMask      []float64   `json:"off_policy_sequence_mask"`
	EffectiveSamples   float64     `json:"effective_sample_size"`
	MismatchK3         float64     `json:"mismatch_k3"`
}

// byToken computes the losses and gradients of the tokens, before any weight: one batch a
// token, in which the others have no advantage.
func (in lossesIn) byToken(t *testing.T, o PolicyOptions) tokenLosses {
	t.Helper()
	mask := everywhere(in.LogProb)
	o.Aggregation, o.Divisor = loss.Constant, 1/float64(len(mask)) // a sum
	b := PolicyBatch{LogProbs: in.LogProb, OldLogProbs: in.OldLogProb, Mask: mask, Turns: make([][]int, len(mask))}
	for row := range mask {
		b.Turns[row] = make([]int, len(mask[row])) // all of one turn
	}
	out := tokenLosses{Loss: loss.Zeros(mask), Grad: loss.Zeros(mask)}
	for row := range mask {
		for at := range mask[row] {
			b.Advantages = loss.Zeros(mask)
			b.Advantages[row][at] = in.Advantages[row]
			l, err := referencePolicy(b, o)
			require.NoError(t, err)
			out.Loss[row][at], out.Grad[row][at] = l.Loss, l.ByLogProb[row][at]
		}
	}
	return out
}

func TestLossesGolden(t *testing.T) {
	g := refs.ReadMethod[lossesIn, lossesOut](t, "losses")
	for i, c := range g.Cases {
		in := c.In
		gspo := []Clip{{in.GSPOLow, in.GSPOHigh}}
		for name, x := range map[string]struct {
			o    PolicyOptions
			want tokenLosses
		}{
			"ppo":   {PolicyOptions{Clips: []Clip{{in.ClipLow, in.ClipHigh}}}, c.Out.PPO},
			"cispo": {PolicyOptions{Surrogate: loss.CISPO, Clips: []Clip{{in.ClipLow, in.CISPOHigh}}}, c.Out.CISPO},
			"sapo":  {PolicyOptions{Surrogate: loss.SAPO, TauPositive: in.TauPositive, TauNegative: in.TauNegative, Clips: []Clip{{}}}, c.Out.SAPO},
			"dppo":  {PolicyOptions{Surrogate: loss.DPPOTV, RatioCap: in.DPPOCap, Clips: []Clip{{in.DPPODelta, in.DPPODelta}}}, c.Out.DPPOTV},
			"gspo":  {PolicyOptions{Ratio: loss.SequenceRatio, Clips: gspo}, c.Out.GSPO},
			// Of rows of one turn.
			"gspo per turn": {PolicyOptions{Ratio: loss.TurnRatio, Clips: gspo}, c.Out.GSPO},
		} {
			got := in.byToken(t, x.o)
			require.Len(t, x.want.Loss, len(got.Loss))
			require.Len(t, x.want.Grad, len(got.Grad))
			for row := range got.Loss {
				require.InDeltaSlice(t, x.want.Loss[row], got.Loss[row], g.Tolerance, "case %d, %s, row %d", i, name, row)
				require.InDeltaSlice(t, x.want.Grad[row], got.Grad[row], g.Tolerance, "case %d, %s, row %d", i, name, row)
			}
		}
		masked := in.byToken(t, PolicyOptions{OffPolicyMask: true, OffPolicyLimit: in.SequenceKLLimit, Clips: []Clip{{1, 1e9}}})
		require.Len(t, c.Out.OffPolicyMask, len(masked.Loss))
		for row, keep := range c.Out.OffPolicyMask {
			for at, l := range masked.Loss[row] {
				want := 0.0
				if keep != 0 {
					want = -in.Advantages[row] * math.Exp(in.LogProb[row][at]-in.OldLogProb[row][at])
				}
				require.InDelta(t, want, l, g.Tolerance, "case %d, row %d", i, row)
			}
		}
	}
}
