package model

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

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
func (l *Learner) Update(ctx context.Context, s *State, batches []batch.MicroBatch, k Settings) (*State, UpdateMetrics, error) {
	st, m, err := l.update(ctx, s, batches, k, false)
	if err != nil {
		return nil, UpdateMetrics{}, fmt.Errorf("update: %w", err)
	}
	return st, m, nil
}

// Gradient begins a step of Update, whose micro-batches are then added one by one.
func (l *Learner) Gradient(batches []batch.MicroBatch, k Settings) (*Gradient[UpdateMetrics], error) {
	g, err := l.gradient(batches, k, false)
	if err != nil {
		return nil, fmt.Errorf("gradient: %w", err)
	}
	return g, nil
}

// SupervisedUpdate is Update with the negative log-likelihood of the masked tokens
// instead of the surrogate, and with the same entropy term. It does not read old
// log-probs, advantages, reference log-probs or clips.
func (l *Learner) SupervisedUpdate(ctx context.Context, s *State, batches []batch.MicroBatch, k Settings) (*State, UpdateMetrics, error) {
	st, m, err := l.update(ctx, s, batches, k, true)
	if err != nil {
		return nil, UpdateMetrics{}, fmt.Errorf("supervised update: %w", err)
	}
	return st, m, nil
}

func (l *Learner) update(
	ctx context.Context, s *State, batches []batch.MicroBatch, k Settings, supervised bool,
) (*State, UpdateMetrics, error) {
	g, err := l.gradient(batches, k, supervised)
	return train(ctx, s, g, err)
}

func (l *Learner) gradient(batches []batch.MicroBatch, k Settings, supervised bool) (*Gradient[UpdateMetrics], error) {
	if err := l.checkCritic(false); err != nil {
		return nil, err
	}
	if supervised {
		k = k.forSupervised(l.sh.Loss)
	}
	if err := k.check(l.sh.Loss); err != nil {
		return nil, err
	}
	all, tokens, err := l.packAll(batches, k.reads(l.sh.Loss, supervised))
	if err != nil {
		return nil, err
	}
	return newGradient(l, all, pass{temperature: k.Temperature, knobs: k.knobs(l.sh.Loss, supervised)}, k.Optimizer,
		func(r report) UpdateMetrics {
			m := UpdateMetrics{
				Loss: r.metrics[terms.Loss], PolicyLoss: r.metrics[terms.PolicyLoss], Entropy: r.metrics[terms.Entropy], KL: r.metrics[terms.KL],
				ClipFraction: r.metrics[terms.ClipFraction], DualClipFraction: r.metrics[terms.DualClipFraction], RatioMax: r.metrics[terms.RatioMax],
				BehaviourKL: r.metrics[terms.BehaviourKL], ApproxKL: r.metrics[terms.ApproxKL],
				GradNorm: r.norm, Skipped: r.skipped, Tokens: tokens,
			}
			for _, own := range l.layout.Own() {
				if m.Own == nil {
					m.Own = map[string]float64{}
				}
				m.Own[own.Name] = r.metrics[own.Name]
			}
			return m
		}), nil
}
