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

// A case of one of verl's surrogates, and what its lines gave.
type (
	surrogateIn struct {
		LogProb    [][]float64 `json:"logprob"`
		OldLogProb [][]float64 `json:"old_logprob"`
		Advantages []float64   `json:"advantages"`
		ClipLow    float64     `json:"clip_low"`
		ClipHigh   float64     `json:"clip_high"`
		Cap        float64     `json:"cap"`
	}
	rowLosses struct {
		Loss []float64   `json:"loss"` // of a row
		Grad [][]float64 `json:"grad"` // of that by the log-prob of a token
	}
)

func TestDPPOKLGolden(t *testing.T) {
	g := refs.ReadMethod[surrogateIn, tokenLosses](t, "dppo_kl")
	left := 0
	for i, c := range g.Cases {
		in := lossesIn{LogProb: c.In.LogProb, OldLogProb: c.In.OldLogProb, Advantages: c.In.Advantages}
		got := in.byToken(t, PolicyOptions{Surrogate: loss.DPPOKL, RatioCap: c.In.Cap, Clips: []Clip{{c.In.ClipLow, c.In.ClipHigh}}})
		for row := range c.Out.Loss {
			refs.Near(t, c.Out.Loss[row], got.Loss[row], g.Tolerance, "case %d, row %d", i, row)
			refs.Near(t, c.Out.Grad[row], got.Grad[row], g.Tolerance, "case %d, row %d", i, row)
			for _, l := range c.Out.Loss[row] {
				if l == 0 && c.In.Advantages[row] != 0 {
					left++
				}
			}
		}
	}
	require.Greater(t, left, 3, "tokens that are left out")
}

// verl's loss is the mean over rows; the weights of seq_mean_token_mean make the same of a loss of each token.
func TestGMPOGolden(t *testing.T) {
	g := refs.ReadMethod[surrogateIn, rowLosses](t, "gmpo")
	for i, c := range g.Cases {
		b := PolicyBatch{LogProbs: c.In.LogProb, OldLogProbs: c.In.OldLogProb, Mask: everywhere(c.In.LogProb)}
		b.Advantages = loss.Zeros(b.Mask)
		var want float64
		for row, a := range c.In.Advantages {
			for at := range b.Advantages[row] {
				b.Advantages[row][at] = a
			}
			want += c.Out.Loss[row] / float64(len(c.Out.Loss))
		}
		got, err := referencePolicy(b, PolicyOptions{
			Surrogate: loss.GMPO, Aggregation: loss.SeqMeanTokenMean, Clips: []Clip{{c.In.ClipLow, c.In.ClipHigh}},
		})
		require.NoError(t, err)
		require.InDelta(t, want, got.Policy, g.Tolerance, "case %d", i)
		for row, byToken := range c.Out.Grad {
			for at, by := range byToken {
				require.InDelta(t, by/float64(len(c.Out.Loss)), got.ByLogProb[row][at], g.Tolerance, "case %d, row %d, token %d", i, row, at)
			}
		}
	}
}

// By hand. A coin of π_old ½ that has become ¾ has the divergence ½·log(⅔) + ½·log 2 = 0.1438.
func TestDPPOKLWorked(t *testing.T) {
	half, threeQuarters := math.Log(.5), math.Log(.75)
	for _, c := range []struct{ advantage, high, loss float64 }{
		{1, .143, 0}, {1, .144, -1.5 * threeQuarters}, {-1, .143, 1.5 * threeQuarters}, {0, .143, 0},
	} {
		in := lossesIn{LogProb: [][]float64{{threeQuarters}}, OldLogProb: [][]float64{{half}}, Advantages: []float64{c.advantage}}
		got := in.byToken(t, PolicyOptions{Surrogate: loss.DPPOKL, RatioCap: 20, Clips: []Clip{{c.high, c.high}}})
		require.InDelta(t, c.loss, got.Loss[0][0], 1e-12)
		require.InDelta(t, c.loss/threeQuarters, got.Grad[0][0], 1e-12)
	}
	// Back from ¾ to ½ it is ¾·log 1.5 + ¼·log ½ = 0.1308.
	in := lossesIn{LogProb: [][]float64{{half}}, OldLogProb: [][]float64{{threeQuarters}}, Advantages: []float64{-1}}
	for low, want := range map[float64]float64{.130: 0, .131: half * 2 / 3} {
		require.InDelta(t, want, in.byToken(t, PolicyOptions{Surrogate: loss.DPPOKL, RatioCap: 20, Clips: []Clip{{low, 9}}}).Loss[0][0], 1e-12)
	}
}

// By hand: of log-ratios 0.5 and −0.1 the first is bounded by 0.4, so that the row's ratio is e^0.15, for which the second
// token alone has a gradient. With A < 0 it is bounded by −0.05 from below: e^0.225.
func TestGMPOWorked(t *testing.T) {
	for advantage, want := range map[float64]struct {
		logRatio float64
		grad     []float64
	}{1: {.15, []float64{0, 1}}, -2: {.225, []float64{1, 0}}, 0: {0, []float64{0, 0}}} {
		b := PolicyBatch{LogProbs: [][]float64{{-.5, -1.1}}, OldLogProbs: [][]float64{{-1, -1}}, Mask: [][]bool{{true, true}}, Advantages: [][]float64{{advantage, advantage}}}
		got, err := referencePolicy(b, PolicyOptions{Surrogate: loss.GMPO, Aggregation: loss.SeqMeanTokenMean, Clips: []Clip{{.05, .4}}})
		require.NoError(t, err)
		require.InDelta(t, -advantage*math.Exp(want.logRatio), got.Policy, 1e-12)
		for at, g := range want.grad {
			require.InDelta(t, -advantage*math.Exp(want.logRatio)*g/2, got.ByLogProb[0][at], 1e-12)
		}
	}
}
