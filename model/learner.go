package model

import (
	"context"
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/batch"
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
	// For loss.CISPO and loss.DPPOTV ClipFraction is the fraction of tokens whose weight the
	// bound caps, or that are not learned from; for loss.SAPO it is 0.
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

// Learner makes optimizer steps of a policy or a critic. It has the programs of Shapes.MicroBatch that
// sum up gradients and apply them.
type Learner struct {
	*core
	scorer *Scorer      // the loss reads its log-probs or values
	layout terms.Layout // what the programs of the loss read and report
	// widths are the learners of micro-batches, by width: it itself, and those of Shapes.Narrower.
	widths []*Learner
}

func newLearner(scorer *Scorer) *Learner {
	p := &Learner{core: scorer.core, scorer: scorer, layout: scorer.sh.Loss.PolicyLayout()}
	if p.c.ValueHead {
		p.layout = p.sh.Loss.CriticLayout()
	}
	p.widths = []*Learner{p}
	return p
}

// prepare adds the learner's programs. The caller holds run.
func (p *Learner) prepare() {
	if p.sh.MicroBatch == 0 {
		return
	}
	p.addBundled(kindSquare, p.bundles, programKey{}, buildSquare)
	p.addBundled(kindApply, p.bundles, programKey{}, buildApply)
	if p.device.bundled > 1 {
		p.addBundled(kindZeros, p.bundles, programKey{}, buildZeros)
	}
	if p.sh.Sharded {
		p.addEach(kindAdd, buildAdd)
	}
	key, backward := p.microBatchKey(), p.buildBackward
	key.loss = p.sh.Loss
	if p.c.ValueHead {
		backward = p.buildCriticBackward
	}
	p.add(kindBackward, key, backward)
}

// of is the learner of micro-batches of the width that b has.
func (p *Learner) of(b batch.MicroBatch) (*Learner, error) {
	i, err := p.scorer.place(b)
	if err != nil {
		return nil, err
	}
	return p.widths[i], nil
}

// at is the learner as it runs on device k, on which spread has been.
func (p *Learner) at(k int) *Learner {
	q := *p
	q.scorer = p.scorer.at(k)
	q.core = q.scorer.core
	return &q
}

// Update applies one AdamW step on a minibatch, given as micro-batches in order,
// with the policy-gradient loss (losses.Policy). PPO's and GRPO's, by default, is
//
//	L = Σ w·max(−ρA, −clip(ρ, 1−low, 1+high)·A) − c·Σ w·entropy + β·Σ w·kl
//
// where w is the token's weight (batch.Weights) and ρ, by default, exp(log-prob
// − old log-prob) with the difference clamped to ±20. LossOptions select the parts of the
// loss. Each minibatch of each epoch is one call.
//
// With LossOptions.Supervised the tokens that MicroBatch.Supervised marks have the term
// −w·log-prob instead, and no other.
//
// The update consumes the state: the new one is made in its memory. If the loss or the
// gradient's norm is not finite, the new state equals the old one bit for bit and Skipped is
// set; that is not an error. An error leaves the old state as it was, unless it is an
// ErrConsumed: then the update failed while it wrote, and there is no state any more. The
// context is checked before each micro-batch; a running program is not interrupted.
func (p *Learner) Update(ctx context.Context, s *State, batches []batch.MicroBatch, k Settings) (*State, UpdateMetrics, error) {
	st, m, err := p.update(ctx, s, batches, k, false)
	if err != nil {
		return nil, UpdateMetrics{}, fmt.Errorf("update: %w", err)
	}
	return st, m, nil
}

// Gradient begins a step of Update, whose micro-batches are then added one by one.
func (p *Learner) Gradient(batches []batch.MicroBatch, k Settings) (*Gradient[UpdateMetrics], error) {
	g, err := p.gradient(batches, k, false)
	if err != nil {
		return nil, fmt.Errorf("gradient: %w", err)
	}
	return g, nil
}

// SupervisedUpdate is Update with the negative log-likelihood of the masked tokens
// instead of the surrogate, and with the same entropy term. It does not read old
// log-probs, advantages, reference log-probs or clips.
func (p *Learner) SupervisedUpdate(ctx context.Context, s *State, batches []batch.MicroBatch, k Settings) (*State, UpdateMetrics, error) {
	st, m, err := p.update(ctx, s, batches, k, true)
	if err != nil {
		return nil, UpdateMetrics{}, fmt.Errorf("supervised update: %w", err)
	}
	return st, m, nil
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

func (p *Learner) update(ctx context.Context, s *State, batches []batch.MicroBatch, k Settings, supervised bool) (*State, UpdateMetrics, error) {
	g, err := p.gradient(batches, k, supervised)
	return train(ctx, s, g, err)
}

func (p *Learner) gradient(batches []batch.MicroBatch, k Settings, supervised bool) (*Gradient[UpdateMetrics], error) {
	if err := p.checkRole(false); err != nil {
		return nil, err
	}
	if supervised {
		k = k.forSupervised(p.sh.Loss)
	}
	if err := k.check(p.sh.Loss); err != nil {
		return nil, err
	}
	all, tokens, err := p.packAll(batches, k.reads(p.sh.Loss, supervised))
	if err != nil {
		return nil, err
	}
	return newGradient(p, all, pass{temperature: k.Temperature, knobs: k.knobs(p.sh.Loss, supervised)}, k.Optimizer,
		func(r report) UpdateMetrics {
			m := UpdateMetrics{
				Loss: r.metrics[terms.Loss], PolicyLoss: r.metrics[terms.PolicyLoss], Entropy: r.metrics[terms.Entropy], KL: r.metrics[terms.KL],
				ClipFraction: r.metrics[terms.ClipFraction], DualClipFraction: r.metrics[terms.DualClipFraction], RatioMax: r.metrics[terms.RatioMax],
				BehaviourKL: r.metrics[terms.BehaviourKL], ApproxKL: r.metrics[terms.ApproxKL],
				GradNorm: r.norm, Skipped: r.skipped, Tokens: tokens,
			}
			for _, own := range p.layout.Own() {
				if m.Own == nil {
					m.Own = map[string]float64{}
				}
				m.Own[own.Name] = r.metrics[own.Name]
			}
			return m
		}), nil
}
