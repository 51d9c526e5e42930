package model

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/loss/terms"
)

// Optimizer are AdamW's knobs. All are inputs of the programs: a change does not
// recompile anything, so a schedule can set them for each update.
type Optimizer struct {
	LearningRate float32
	Beta1, Beta2 float32 // decay rates, in [0, 1)
	AdamEpsilon  float32
	// WeightDecay is decoupled (AdamW) and applies to matrices, the embedding
	// among them, not to norms and biases.
	WeightDecay float32
	// MaxGradNorm scales the gradient down to this global norm; 0 turns it off.
	MaxGradNorm float32
}

// Settings are an update's knobs, all inputs of the programs.
type Settings struct {
	Optimizer
	// ClipLow and ClipHigh bound the ratio to [1 − ClipLow, 1 + ClipHigh], unless
	// the micro-batch has bounds.
	ClipLow, ClipHigh float32
	// Knobs are those of the selected terms, by name (package model/loss/terms): each of theirs, and no other.
	Knobs terms.Knobs
	// EntropyCoefficient rewards entropy.
	EntropyCoefficient float32
	// KLCoefficient penalises distance from the reference policy; 0 without
	// LossOptions.KL.
	KLCoefficient float32
	// Temperature is the temperature of sampling and scoring the tokens; 0 means 1.
	Temperature float32
}

// UpdateMetrics are the results of an update, at the parameters before it. The parts of
// the loss are sums over the minibatch by batch.Weights; fractions and the
// last two KLs are means over its tokens, weighted by row. The fields of
// reference.PolicyLoss have the same names.
type UpdateMetrics struct {
	// Loss is PolicyLoss − EntropyCoefficient · Entropy + KLCoefficient · KL + SupervisedLoss.
	Loss float64
	// PolicyLoss is the clipped surrogate or, in SupervisedUpdate, the mean negative
	// log-likelihood in nats.
	PolicyLoss float64
	Entropy    float64 // nats
	// KL is the estimated distance from the reference; 0 without LossOptions.KL.
	KL float64
	// GradNorm is the gradient's global norm before clipping.
	GradNorm float64
	// ClipFraction is the fraction of tokens whose clipped term is strictly worse
	// than the unclipped one, so that the loss uses it (verl's pg_clipfrac).
	// DualClipFraction is the fraction of tokens whose loss the dual clip bounded
	// (pg_clipfrac_lower).
	// For loss.CISPO, loss.DPPOTV and loss.DPPOKL ClipFraction is the fraction of tokens whose weight the
	// bound caps, or that are not learned from, and for loss.GMPO of those whose log-ratio is bounded; for loss.SAPO it is 0.
	ClipFraction, DualClipFraction float64
	// Own are the metrics of single terms, by name. SupervisedLoss of package terms is the sum over the tokens of
	// batch.Supervised of weight times negative log-likelihood in nats, a part of Loss.
	Own map[string]float64
	// RatioMax is the largest |ratio − 1| of a token; exactly 0 at the parameters
	// that scored the batch.
	RatioMax float64
	// BehaviourKL is the mean of old log-prob − log-prob (k1; verl's ppo_kl).
	BehaviourKL float64
	// ApproxKL is the mean of (ratio − 1) − log ratio, never negative
	// (http://joschu.net/blog/kl-approx.html, k3).
	ApproxKL float64
	// Skipped is set if the loss or the gradient's norm was not finite: no number changed.
	Skipped bool
	// Tokens is the number of tokens that were trained on.
	Tokens int
}

// knob is a number with its bounds.
type knob struct {
	name   string
	v      float32
	lo, hi float64
}

func checkKnobs(knobs ...knob) error {
	for _, x := range knobs {
		if v := float64(x.v); !(v >= x.lo && v <= x.hi) {
			return fmt.Errorf("%w: %s is %v, must be from %v to %v", ErrInput, x.name, v, x.lo, x.hi)
		}
	}
	return nil
}

func (o Optimizer) check() error {
	const most = math.MaxFloat32
	if o.Beta1 == 1 || o.Beta2 == 1 {
		return fmt.Errorf("%w: a Beta of 1", ErrInput)
	}
	return checkKnobs(
		knob{"LearningRate", o.LearningRate, 0, most},
		knob{"Beta1", o.Beta1, 0, 1},
		knob{"Beta2", o.Beta2, 0, 1},
		knob{"AdamEpsilon", o.AdamEpsilon, 0, most},
		knob{"WeightDecay", o.WeightDecay, 0, most},
		knob{"MaxGradNorm", o.MaxGradNorm, 0, most},
	)
}

func (k *Settings) check(l LossOptions) error {
	const most = math.MaxFloat32
	if k.Temperature == 0 {
		k.Temperature = 1
	}
	if err := k.Optimizer.check(); err != nil {
		return err
	}
	if err := checkKnobs(knob{"ClipLow", k.ClipLow, 0, 1}, knob{"ClipHigh", k.ClipHigh, 0, most}, knob{"Temperature", k.Temperature, 0, most},
		knob{"EntropyCoefficient", k.EntropyCoefficient, -most, most}, knob{"KLCoefficient", k.KLCoefficient, 0, most}); err != nil {
		return err
	}
	if k.Temperature == 0 {
		return fmt.Errorf("%w: a Temperature of 0", ErrInput)
	}
	return k.checkTerms(l)
}
