package model

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/compute"
)

// Settings are an update's knobs. All are inputs of the programs: changing one
// never compiles anything again.
type Settings struct {
	LearningRate float32
	Beta1, Beta2 float32 // AdamW's decay rates, in [0, 1)
	AdamEpsilon  float32
	// WeightDecay is decoupled (AdamW) and applies to matrices, the embedding
	// among them, not to norms and biases.
	WeightDecay float32
	// MaxGradNorm scales the gradient down to this global norm; 0 turns it off.
	MaxGradNorm float32
	// ClipLow and ClipHigh bound the ratio to [1 − ClipLow, 1 + ClipHigh].
	ClipLow, ClipHigh float32
	// EntropyCoefficient rewards entropy.
	EntropyCoefficient float32
	// Temperature is the one the tokens were sampled and scored at; 0 is taken as 1.
	Temperature float32
}

// UpdateMetrics say what an update did. Means are over the tokens of the whole
// minibatch, weighted by mask and row weight, at the parameters before it.
type UpdateMetrics struct {
	// Loss is PolicyLoss − EntropyCoefficient · Entropy.
	Loss float64
	// PolicyLoss is the clipped surrogate's; of SupervisedUpdate the mean negative
	// log-likelihood in nats.
	PolicyLoss float64
	Entropy    float64 // nats
	// GradNorm is the gradient's global norm before clipping.
	GradNorm float64
	// ClipFraction is the fraction of tokens whose clipped term is strictly worse
	// than the unclipped one, and so taken (verl's pg_clipfrac).
	ClipFraction float64
	// RatioMax is the largest |ratio − 1|; exactly 0 at the parameters that scored
	// the batch.
	RatioMax float64
	// ApproxKL is the mean of (ratio − 1) − log ratio, never negative
	// (http://joschu.net/blog/kl-approx.html, k3).
	ApproxKL float64
	// Skipped: the loss or the gradient's norm was not finite, and nothing changed.
	Skipped bool
	// Tokens is how many tokens had a weight.
	Tokens int
}

// Update applies one AdamW step on a minibatch, given as micro-batches in order,
// with the clipped policy-gradient loss of PPO and GRPO, averaged over tokens:
//
//	−Σ w·min(ρA, clip(ρ, 1−low, 1+high)·A)/N − c·Σ w·entropy/N,  N = Σ w
//
// where w is mask times row weight, ρ = exp(log-prob − old log-prob), and the sums
// are over the whole minibatch. Where the loss or the gradient's norm is not
// finite the new state equals the old one bit for bit and Skipped is set; that is
// no error. The old state stays as it is until it is freed. The context is looked
// at between programs; what the device has begun it finishes.
func (p *Programs) Update(ctx context.Context, s *State, batches []MicroBatch, k Settings) (*State, UpdateMetrics, error) {
	st, m, err := p.update(ctx, s, batches, k, false)
	if err != nil {
		return nil, UpdateMetrics{}, fmt.Errorf("update: %w", err)
	}
	return st, m, nil
}

// SupervisedUpdate is Update with the mean negative log-likelihood of the masked
// tokens as the loss (and the same entropy term): old log-probs, advantages and
// the clip are not read.
func (p *Programs) SupervisedUpdate(ctx context.Context, s *State, batches []MicroBatch, k Settings) (*State, UpdateMetrics, error) {
	st, m, err := p.update(ctx, s, batches, k, true)
	if err != nil {
		return nil, UpdateMetrics{}, fmt.Errorf("supervised update: %w", err)
	}
	return st, m, nil
}

func (k *Settings) check() error {
	if k.Temperature == 0 {
		k.Temperature = 1
	}
	for _, x := range []struct {
		name   string
		v      float32
		lo, hi float64
	}{
		{"LearningRate", k.LearningRate, 0, math.MaxFloat32}, {"Beta1", k.Beta1, 0, 1}, {"Beta2", k.Beta2, 0, 1},
		{"AdamEpsilon", k.AdamEpsilon, 0, math.MaxFloat32}, {"WeightDecay", k.WeightDecay, 0, math.MaxFloat32},
		{"MaxGradNorm", k.MaxGradNorm, 0, math.MaxFloat32}, {"ClipLow", k.ClipLow, 0, 1},
		{"ClipHigh", k.ClipHigh, 0, math.MaxFloat32}, {"Temperature", k.Temperature, 0, math.MaxFloat32},
		{"EntropyCoefficient", k.EntropyCoefficient, -math.MaxFloat32, math.MaxFloat32},
	} {
		if v := float64(x.v); !(v >= x.lo && v <= x.hi) {
			return fmt.Errorf("%w: %s is %v, must be from %v to %v", ErrInput, x.name, v, x.lo, x.hi)
		}
	}
	if k.Beta1 == 1 || k.Beta2 == 1 || k.Temperature == 0 {
		return fmt.Errorf("%w: a Beta of 1 or a Temperature of 0", ErrInput)
	}
	return nil
}

func (p *Programs) update(ctx context.Context, s *State, batches []MicroBatch, k Settings, supervised bool) (*State, UpdateMetrics, error) {
	var m UpdateMetrics
	if err := k.check(); err != nil {
		return nil, m, err
	}
	p.device.run.Lock()
	defer p.device.run.Unlock()
	if err := p.check(s); err != nil {
		return nil, m, err
	}
	var next *State
	err := try("train", func() error {
		acc, err := p.accumulate(ctx, s, batches, k, supervised)
		if err != nil {
			return err
		}
		defer acc.free()
		m.Tokens = acc.tokens
		next, err = p.apply(s, acc, k, &m)
		return err
	})
	if err != nil {
		return nil, UpdateMetrics{}, err
	}
	return next, m, nil
}

// accumulated is the gradient of a minibatch on the device.
type accumulated struct {
	grads   []compute.Buffer // in Config.Tensors order
	metrics compute.Buffer   // [metricCount]
	tokens  int
}

func (a *accumulated) free() {
	free(a.grads)
	free([]compute.Buffer{a.metrics})
}

// accumulate sums the gradients of the micro-batches in order. The caller holds run.
func (p *Programs) accumulate(ctx context.Context, s *State, batches []MicroBatch, k Settings, supervised bool) (_ *accumulated, err error) {
	prog, err := p.program(kindBackward)
	if err != nil {
		return nil, err
	}
	all := make([]packed, len(batches))
	acc := &accumulated{}
	var weight float64
	for i, b := range batches {
		if b.LossMask == nil && len(b.IDs) > 0 {
			return nil, fmt.Errorf("micro-batch %d: %w: no loss mask", i, ErrInput)
		}
		if !supervised && len(b.IDs) > 0 && (b.OldLogProbs == nil || b.Advantages == nil) {
			return nil, fmt.Errorf("micro-batch %d: %w: no old log-probs or advantages", i, ErrInput)
		}
		if all[i], err = p.pack(b); err != nil {
			return nil, fmt.Errorf("micro-batch %d: %w", i, err)
		}
		acc.tokens += all[i].tokens
		weight += all[i].weight
	}
	if acc.tokens == 0 {
		return nil, fmt.Errorf("%w: no token has a weight", ErrInput)
	}
	knobs := lossKnobs(k, weight, supervised)
	defer func() {
		if err != nil {
			acc.free()
		}
	}()
	for i, b := range all {
		if b.tokens == 0 {
			continue // adding zeros changes nothing
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.backward(prog, s, b, k, knobs, acc); err != nil {
			return nil, fmt.Errorf("micro-batch %d: %w", i, err)
		}
	}
	return acc, nil
}

// backward adds one micro-batch's gradients to acc.
func (p *Programs) backward(prog *program, s *State, b packed, k Settings, knobs []float32, acc *accumulated) error {
	f, err := p.forward(s, b.ids, k.Temperature)
	if err != nil {
		return err
	}
	defer f.free()
	var extra []compute.Buffer
	defer func() { free(extra) }()
	n := p.sh.MicroBatch * p.sh.Sequence
	for _, v := range [][]float32{b.mask, b.old, b.advantage} {
		buf, err := upload(p.device, v, n)
		if err != nil {
			return err
		}
		extra = append(extra, buf)
	}
	knobBuf, err := upload(p.device, knobs, len(knobs))
	if err != nil {
		return err
	}
	extra = append(extra, knobBuf)
	first := acc.grads == nil
	firstBuf, err := upload(p.device, []bool{first})
	if err != nil {
		return err
	}
	extra = append(extra, firstBuf)
	sums, metrics := acc.grads, acc.metrics
	if first { // any buffers of the right shape: they are not read
		zeros, err := upload(p.device, make([]float32, metricCount), metricCount)
		if err != nil {
			return err
		}
		extra = append(extra, zeros)
		sums, metrics = s.params, zeros
	}
	args := append([]compute.Buffer{}, s.params...)
	args = append(args, f.ids, p.tables[0], p.tables[1], p.legal, f.inverse)
	args = append(args, f.logProb, f.entropy, f.logSum)
	args = append(args, f.saved...)
	args = append(args, extra[:5]...)
	args = append(append(args, sums...), metrics)
	out, err := prog.call(args...)
	if err != nil {
		return err
	}
	acc.free()
	acc.grads, acc.metrics = out[:len(out)-1], out[len(out)-1]
	return nil
}
