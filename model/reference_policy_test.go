package model

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/loss"
)

// Bounds on the logarithm of the ratio, as in verl, so that it stays finite. The
// gradient is 0 beyond them.
const (
	tokenLogRatioBound    = 20 // of a token, on either side
	sequenceLogRatioBound = 10 // of a sequence, above
)

// Clip bounds the ratio to [1 − Low, 1 + High].
type Clip struct {
	Low  float64 // in [0, 1] (RAGEN: 0.2)
	High float64 // at least 0 (RAGEN: 0.28, DAPO's clip-higher; vanilla: 0.2)
}

// PolicyOptions are the knobs of the policy's loss.
type PolicyOptions struct {
	// Surrogate is loss.Clip if empty.
	Surrogate loss.Surrogate
	// TauPositive and TauNegative are loss.SAPO's, RatioCap is that of loss.DPPOTV and
	// loss.DPPOKL.
	TauPositive, TauNegative, RatioCap float64
	// OffPolicyMask drops the tokens with a negative advantage of rows whose mean of old −
	// new log-prob is above OffPolicyLimit (OPSM).
	OffPolicyMask  bool
	OffPolicyLimit float64
	// Ratio is loss.TokenRatio if empty. loss.TurnRatio reads PolicyBatch.Turns.
	Ratio loss.Ratio
	// Clips holds the bounds, at least one: entry k applies to the tokens of turn k,
	// and the last entry also to all later turns. A single entry applies to all.
	Clips []Clip
	// DualClip bounds the loss of a token with a negative advantage to −DualClip·A
	// (arXiv 1912.09729). Above 1; 0 turns it off (verl and RAGEN: 3).
	DualClip float64
	// Aggregation is how tokens are averaged, in every term; Divisor is loss.Constant's.
	Aggregation loss.Aggregation
	Divisor     float64
	// EntropyCoefficient rewards entropy (RAGEN: 0.001).
	EntropyCoefficient float64
	// KLCoefficient penalises distance from the reference policy. It is at least 0;
	// 0 turns the term off (vanilla StarPO: 0.001; StarPO-S: off).
	KLCoefficient float64
	// KLEstimator is read if KLCoefficient is not 0.
	KLEstimator loss.KLEstimator
}

// PolicyBatch is a minibatch, [rows][tokens].
type PolicyBatch struct {
	// LogProbs and Entropies are computed with the current parameters, at the
	// temperature of sampling. Entropies are in nats and may be nil if
	// EntropyCoefficient is 0.
	LogProbs, Entropies [][]float64
	// OldLogProbs come from the policy that the batch was scored with.
	OldLogProbs [][]float64
	// RefLogProbs come from the reference policy; they may be nil if KLCoefficient is 0.
	RefLogProbs [][]float64
	Advantages  [][]float64
	Mask        [][]bool
	// Turns is each token's turn, from 0; it may be nil if Clips has one entry.
	Turns [][]int
	// RowWeights: [rows], see loss.Weights.
	RowWeights []float64
}

// PolicyLoss is the policy's loss with its parts and its gradient.
type PolicyLoss struct {
	// Loss is Policy − EntropyCoefficient·Entropy + KLCoefficient·KL, all three with
	// the same aggregation. Entropy is 0 without Entropies, and KL is 0 without its
	// coefficient.
	Loss, Policy, Entropy, KL float64
	// ClipFraction is the fraction of tokens whose clipped term is strictly worse
	// than the unclipped one (verl's pg_clipfrac). DualClipFraction is the fraction
	// of tokens whose loss the dual clip bounded (pg_clipfrac_lower). These and the
	// next two KLs are means over sampled tokens, weighted by row, for every aggregation.
	ClipFraction, DualClipFraction float64
	// DroppedFraction is the fraction of tokens that the off-policy mask dropped.
	DroppedFraction float64
	// BehaviourKL is the mean of log π_old − log π_new (k1; verl's ppo_kl), and
	// ApproxKL the mean of (ρ − 1) − log ρ, never negative (k3). Both are by token, even
	// if the ratio is the sequence's.
	BehaviourKL, ApproxKL float64
	// RatioMax is the largest |ρ − 1| of a token; exactly 0 at the parameters that
	// scored the batch.
	RatioMax float64
	// ByLogProb and ByEntropy are the derivatives of Loss: [rows][tokens].
	ByLogProb, ByEntropy [][]float64
}

// referencePolicy is the reference of losses.Policy, which trains. It computes the
// policy's loss on a minibatch (arXiv 1707.06347, equation 7; verl's
// compute_policy_loss_vanilla and compute_policy_loss_gspo):
//
//	L = Σ w·max(−ρA, −clip(ρ, 1−low, 1+high)·A) − c·Σ w·H + β·Σ w·kl
//
// where ρ is the ratio, w the weight of the token (loss.Weights), and, with a dual clip
// d and A < 0, the first term is at most −d·A. If both sides of the max are equal, the
// gradient is the unclipped side's.
//
// The other surrogates are package loss's. With loss.SequenceRatio the gradient flows as in GSPO-token (arXiv 2507.18071,
// section 4.3; verl): each token's ratio has the value of the sequence's ratio. Its
// derivative by the token's own log-prob is the ratio, and by the other log-probs 0. If
// all tokens of a row have the same advantage and weight, this is the derivative of L;
// otherwise it is not. The same is true of loss.TurnRatio for the tokens of a turn.
//
// The derivative of the KL term is that of the estimate itself. Errors are of kind
// loss.ErrInput.
func referencePolicy(b PolicyBatch, o PolicyOptions) (PolicyLoss, error) {
	if o.Ratio == "" {
		o.Ratio = loss.TokenRatio
	}
	if err := o.check(); err != nil {
		return PolicyLoss{}, err
	}
	if err := b.check(o); err != nil {
		return PolicyLoss{}, err
	}
	weights, err := loss.Weights(b.Mask, b.RowWeights, o.Aggregation, o.Divisor)
	if err != nil {
		return PolicyLoss{}, err
	}
	means, err := loss.Weights(b.Mask, b.RowWeights, loss.TokenMean, 0)
	if err != nil {
		return PolicyLoss{}, err
	}
	l := PolicyLoss{ByLogProb: loss.Zeros(b.Mask), ByEntropy: loss.Zeros(b.Mask)}
	for row, sampled := range b.Mask {
		sequence := b.logRatio(row, func(int) bool { return true })
		for t, yes := range sampled {
			w, mean := weights[row][t], means[row][t]
			if !yes || mean == 0 {
				continue
			}
			lp := b.LogProbs[row][t]
			logRatio := lp - b.OldLogProbs[row][t]
			bounded, slope := bound(logRatio, -tokenLogRatioBound, tokenLogRatioBound)
			l.BehaviourKL -= mean * bounded
			l.ApproxKL += mean * (math.Exp(bounded) - 1 - bounded)
			l.RatioMax = math.Max(l.RatioMax, math.Abs(math.Exp(bounded)-1))
			switch o.Ratio {
			case loss.SequenceRatio:
				bounded, slope = bound(sequence, math.Inf(-1), sequenceLogRatioBound)
			case loss.TurnRatio:
				bounded, slope = bound(b.logRatio(row, func(at int) bool { return b.turn(row, at) == b.turn(row, t) }), math.Inf(-1), sequenceLogRatioBound)
			}

			s := o.surrogate(tokenNumbers{
				ratio: math.Exp(bounded), inside: slope, logProb: lp, old: b.OldLogProbs[row][t], advantage: b.Advantages[row][t],
				geometric: b.geometricMean(row, o),
			}, o.clip(b.turn(row, t)))
			if o.OffPolicyMask && -sequence > o.OffPolicyLimit && b.Advantages[row][t] < 0 {
				s.loss, s.byLogProb = 0, 0
				l.DroppedFraction += mean
			}
			l.Policy += w * s.loss
			l.ByLogProb[row][t] = w * s.byLogProb
			if s.clipped {
				l.ClipFraction += mean
			}
			if s.dual {
				l.DualClipFraction += mean
			}
			if b.Entropies != nil {
				l.Entropy += w * b.Entropies[row][t]
				l.ByEntropy[row][t] = -o.EntropyCoefficient * w
			}
			if o.KLCoefficient != 0 {
				kl, by := o.KLEstimator.Estimate(lp, b.RefLogProbs[row][t])
				l.KL += w * kl
				l.ByLogProb[row][t] += o.KLCoefficient * w * by
			}
		}
	}
	l.Loss = l.Policy - o.EntropyCoefficient*l.Entropy + o.KLCoefficient*l.KL
	return l, nil
}

// bound clamps x to [low, high] and returns the derivative of the clamp: 1 inside, 0
// outside. NaN stays NaN.
func bound(x, low, high float64) (bounded, slope float64) {
	switch {
	case x < low:
		return low, 0
	case x > high:
		return high, 0
	default:
		return x, 1
	}
}

// logRatio is the mean over some of a row's sampled tokens of log π_new − log π_old, or 0 if
// none was sampled.
func (b PolicyBatch) logRatio(row int, of func(t int) bool) float64 {
	var sum float64
	n := 0
	for t, yes := range b.Mask[row] {
		if yes && of(t) {
			sum += b.LogProbs[row][t] - b.OldLogProbs[row][t]
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

func (b PolicyBatch) turn(row, t int) int {
	if b.Turns == nil {
		return 0
	}
	return b.Turns[row][t]
}

func (o PolicyOptions) clip(turn int) Clip { return o.Clips[min(turn, len(o.Clips)-1)] }

func (o PolicyOptions) check() error {
	if o.Ratio != loss.TokenRatio && o.Ratio != loss.SequenceRatio && o.Ratio != loss.TurnRatio {
		return fmt.Errorf("%w: ratio %q", loss.ErrInput, o.Ratio)
	}
	if len(o.Clips) == 0 {
		return fmt.Errorf("%w: no clip bounds", loss.ErrInput)
	}
	for k, c := range o.Clips {
		if !(c.Low >= 0 && c.Low <= 1 && c.High >= 0) || !finite(c.High) {
			return fmt.Errorf("%w: the clip of turn %d is %v below and %v above 1", loss.ErrInput, k, c.Low, c.High)
		}
	}
	if o.DualClip != 0 && (!(o.DualClip > 1) || !finite(o.DualClip)) {
		return fmt.Errorf("%w: DualClip is %v, must be above 1, or 0 for none", loss.ErrInput, o.DualClip)
	}
	if !finite(o.EntropyCoefficient) {
		return fmt.Errorf("%w: EntropyCoefficient is %v", loss.ErrInput, o.EntropyCoefficient)
	}
	if err := loss.CheckAtLeast("KLCoefficient", o.KLCoefficient, 0); err != nil {
		return err
	}
	if o.KLCoefficient != 0 && !o.KLEstimator.Valid() {
		return fmt.Errorf("%w: KL estimator %q", loss.ErrInput, o.KLEstimator)
	}
	return nil
}

func (b PolicyBatch) check(o PolicyOptions) error {
	for _, p := range []struct {
		name   string
		values [][]float64
		needed bool
	}{
		{"log-probs", b.LogProbs, true}, {"old log-probs", b.OldLogProbs, true}, {"advantages", b.Advantages, true},
		{"entropies", b.Entropies, o.EntropyCoefficient != 0}, {"reference log-probs", b.RefLogProbs, o.KLCoefficient != 0},
	} {
		if p.values == nil && !p.needed {
			continue
		}
		if err := loss.CheckShape(p.name, p.values, b.Mask); err != nil {
			return err
		}
	}
	if b.Turns == nil {
		if len(o.Clips) > 1 || o.Ratio == loss.TurnRatio {
			return fmt.Errorf("%w: bounds or ratios by turn, but no turns", loss.ErrInput)
		}
		return nil
	}
	if len(b.Turns) != len(b.Mask) {
		return fmt.Errorf("%w: turns of %d rows, %d of the mask", loss.ErrInput, len(b.Turns), len(b.Mask))
	}
	for row, turns := range b.Turns {
		if len(turns) != len(b.Mask[row]) {
			return fmt.Errorf("%w: row %d has %d turns for %d tokens", loss.ErrInput, row, len(turns), len(b.Mask[row]))
		}
		for t, k := range turns {
			if b.Mask[row][t] && k < 0 {
				return fmt.Errorf("%w: row %d, token %d is of turn %d", loss.ErrInput, row, t, k)
			}
		}
	}
	return nil
}
