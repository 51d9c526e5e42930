package model

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
	"github.com/reprise-rl/reprise/model/net/losses"
)

// CriticSettings are the knobs of a critic's update, all inputs of the programs.
type CriticSettings struct {
	Optimizer
	// Clip bounds how far a value moves from the old one; 0 turns it off (verl and
	// RAGEN: 0.5).
	Clip float32
}

// CriticMetrics are the results of a critic's update, at the parameters before it.
type CriticMetrics struct {
	// Loss is the sum over the minibatch by batch.Weights (verl's vf_loss).
	Loss float64
	// ClipFraction is the fraction of tokens whose clipped error is strictly the
	// greater (verl's vf_clipfrac). ValueMean is the mean of the values (vpred_mean).
	// Both are means over tokens, weighted by row.
	ClipFraction, ValueMean float64
	// GradNorm is the gradient's global norm before clipping.
	GradNorm float64
	// Skipped is set if the loss or the gradient's norm was not finite: no number changed.
	Skipped bool
	// Tokens is the number of tokens that were trained on.
	Tokens int
}

// CriticUpdate applies one AdamW step to a critic on a minibatch, given as
// micro-batches in order, with the clipped value loss (terms.Squared):
//
//	L = ½·Σ w·max((V − G)², (clip(V, V_old − ε, V_old + ε) − G)²)
//
// of Returns G and OldValues V_old. With terms.Promise the loss is the cross-entropy
// of chances, and Clip must be 0. Otherwise it behaves like Update.
func (l *Learner) CriticUpdate(ctx context.Context, s *State, batches []batch.MicroBatch, k CriticSettings) (*State, CriticMetrics, error) {
	g, err := l.criticGradient(batches, k)
	st, m, err := train(ctx, s, g, err)
	if err != nil {
		return nil, CriticMetrics{}, fmt.Errorf("critic update: %w", err)
	}
	return st, m, nil
}

// CriticGradient begins a step of CriticUpdate, whose micro-batches are then added one by one.
func (l *Learner) CriticGradient(batches []batch.MicroBatch, k CriticSettings) (*Gradient[CriticMetrics], error) {
	g, err := l.criticGradient(batches, k)
	if err != nil {
		return nil, fmt.Errorf("critic gradient: %w", err)
	}
	return g, nil
}

func (l *Learner) criticGradient(batches []batch.MicroBatch, k CriticSettings) (*Gradient[CriticMetrics], error) {
	if err := l.checkCritic(true); err != nil {
		return nil, err
	}
	if err := k.check(); err != nil {
		return nil, err
	}
	if l.sh.Loss.Value == terms.Promise && k.Clip != 0 {
		return nil, fmt.Errorf("%w: a Clip of values that are logits", ErrInput)
	}
	all, tokens, err := l.packAll(batches, k.reads(l.sh.Loss))
	if err != nil {
		return nil, err
	}
	return newGradient(l, all, pass{knobs: k.knobs(l.sh.Loss)}, k.Optimizer, func(r report) CriticMetrics {
		return CriticMetrics{
			Loss: r.metrics[terms.Loss], ClipFraction: r.metrics[terms.ValueClipFraction], ValueMean: r.metrics[terms.ValueMean],
			GradNorm: r.norm, Skipped: r.skipped, Tokens: tokens,
		}
	}), nil
}

func (k CriticSettings) check() error {
	if err := k.Optimizer.check(); err != nil {
		return err
	}
	return checkKnobs(knob{"Clip", k.Clip, 0, math.MaxFloat32})
}

// reads are the columns that a critic's loss reads.
func (k CriticSettings) reads(o LossOptions) []read {
	out := readsOf(o.CriticLayout())
	for i := range out {
		out[i].required = out[i].of != batch.OldValues || k.Clip != 0
	}
	return out
}

// knobs are the inputs of the loss: the clip, +Inf if it is off.
func (k CriticSettings) knobs(o LossOptions) []float32 {
	clip := k.Clip
	if clip == 0 {
		clip = float32(math.Inf(1))
	}
	return o.CriticLayout().Pack(terms.Knobs{terms.ValueClip: clip})
}

// buildCriticBackward is buildBackward for the critic.
func (l *Learner) buildCriticBackward(in *inputs) []*graph.Node {
	n := l.sh.MicroBatch * l.sh.Sequence * l.c.values()
	w := l.net.weights(in)
	b := l.scorer.batchInputs(in)
	values, saved := in.next(l.net.wide, n), l.savedInputs(in)
	byValue, metrics := l.valueLoss(in, values)
	return l.addUp(in, l.pullValues(w, saved, b, byValue), metrics)
}

// valueLoss is the loss of the critic, whose columns and knobs are declared as inputs.
func (l *Learner) valueLoss(in *inputs, values *graph.Node) (byValue, metrics *graph.Node) {
	of := l.layout
	columns := in.columns(l.net.wide, of.Columns, values.Shape().Size())
	return losses.Critic(l.sh.Loss, values, columns, in.next(l.net.wide, len(of.Knobs)))
}

// pullValues is pullScores for the critic.
func (l *Learner) pullValues(w weights, saved saved, b batchNodes, byValue *graph.Node) []*graph.Node {
	grads := newGradientNodes(w)
	dx := l.net.pullValues(grads, w.norm, w.value, saved.last, byValue)
	l.pullLayers(grads, saved, dx, b)
	return grads.by
}
