package model

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
	"github.com/reprise-rl/reprise/model/net/losses"
)

// NewCritic makes a critic from a policy: the policy's backbone and a value head of zeros,
// so that every value is 0 at first. It shares the slices of the backbone with the policy.
func NewCritic(policy Params) Params {
	c := policy.Config.Critic()
	p := Params{Config: c, Values: slices.Clone(policy.Values[:c.valueHead()])}
	for _, t := range c.Tensors()[c.valueHead():] {
		p.Values = append(p.Values, make([]float32, t.Elements()))
	}
	return p
}

// NewCritic gives the critic that NewCritic makes of the state's parameters, with so many values for
// each token. They are copied while the source is read.
func (s *State) NewCritic(values int) Source {
	c, policy := s.c.CriticOf(values), s.reader()
	shapes := c.Tensors()
	return sourceOf(c, 1, 0, func(p part, i int, into []float32) ([]float32, error) {
		if i < c.valueHead() {
			return policy(p, i, into)
		}
		v := sized(into, shapes[i].Elements())
		clear(v)
		return v, nil
	}).Over(s.base)
}

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

// Values returns, at index t of each row, the critic's value V(ids[<t]): the return it
// expects before token t is chosen. It is 0 at t = 0 and from the row's length on. Rows
// are Sequence long, in the batch's order. Of a head of several numbers they are
// Sequence × Config.Values long, with the numbers of a token one after the other.
//
// CriticUpdate computes its values with the same program, so with the parameters that
// Values ran with, its values equal the old ones exactly.
func (p *Scorer) Values(ctx context.Context, s *State, b batch.MicroBatch) ([][]float32, error) {
	out, err := p.ValuesAll(ctx, s, []batch.MicroBatch{b})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// ValuesAll is Values for several micro-batches, which are dealt to the devices. The context is
// checked before each.
func (p *Scorer) ValuesAll(ctx context.Context, s *State, batches []batch.MicroBatch) ([][][]float32, error) {
	got, err := p.scores(ctx, s, batches, true, 0, 1)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	out := make([][][]float32, len(got))
	for i, of := range got {
		out[i] = of[0]
	}
	return out, nil
}

// CriticUpdate applies one AdamW step to a critic on a minibatch, given as
// micro-batches in order, with the clipped value loss (terms.Squared):
//
//	L = ½·Σ w·max((V − G)², (clip(V, V_old − ε, V_old + ε) − G)²)
//
// of Returns G and OldValues V_old. With terms.Promise the loss is the cross-entropy
// of chances, and Clip must be 0. Otherwise it behaves like Update.
func (p *Learner) CriticUpdate(ctx context.Context, s *State, batches []batch.MicroBatch, k CriticSettings) (*State, CriticMetrics, error) {
	g, err := p.criticGradient(batches, k)
	st, m, err := train(ctx, s, g, err)
	if err != nil {
		return nil, CriticMetrics{}, fmt.Errorf("critic update: %w", err)
	}
	return st, m, nil
}

// CriticGradient begins a step of CriticUpdate, whose micro-batches are then added one by one.
func (p *Learner) CriticGradient(batches []batch.MicroBatch, k CriticSettings) (*Gradient[CriticMetrics], error) {
	g, err := p.criticGradient(batches, k)
	if err != nil {
		return nil, fmt.Errorf("critic gradient: %w", err)
	}
	return g, nil
}

func (p *Learner) criticGradient(batches []batch.MicroBatch, k CriticSettings) (*Gradient[CriticMetrics], error) {
	if err := p.checkRole(true); err != nil {
		return nil, err
	}
	if err := k.check(); err != nil {
		return nil, err
	}
	if p.sh.Loss.Value == terms.Promise && k.Clip != 0 {
		return nil, fmt.Errorf("%w: a Clip of values that are logits", ErrInput)
	}
	all, tokens, err := p.packAll(batches, k.reads(p.sh.Loss))
	if err != nil {
		return nil, err
	}
	return newGradient(p, all, pass{knobs: k.knobs(p.sh.Loss)}, k.Optimizer, func(r report) CriticMetrics {
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

// values computes the values, wide [n · values], of the final hidden states x [n, d] before their
// norm: the numbers of a token one after the other.
func (t network) values(x, norm *graph.Node, head linear) *graph.Node {
	n, d, heads := x.Shape().Dimensions[0], x.Shape().Dimensions[1], t.c.values()
	h := t.widen(t.norm(x, norm))
	if heads == 1 {
		v := graph.ReduceSum(graph.Mul(h, graph.Reshape(head.weight, 1, d)), -1)
		return graph.Add(v, graph.BroadcastToDims(head.bias, n))
	}
	var all []*graph.Node
	for k := range heads {
		v := graph.ReduceSum(graph.Mul(h, head.row(k)), -1)
		all = append(all, graph.Reshape(graph.Add(v, graph.BroadcastToDims(head.number(k), n)), n, 1))
	}
	return graph.Reshape(graph.Concatenate(all, 1), n*heads)
}

// buildValues is the critic's forward program. Its inputs are the parameters, ids [b, T]
// and rotary tables; its outputs are the values of the tokens that follow, [b·T], and what is
// saved for the backward program.
func (p *Scorer) buildValues(in *inputs) []*graph.Node {
	w := p.net.weights(in)
	saved := p.layers(w, p.batchInputs(in))
	v := p.net.values(saved.last, w.norm, w.value)
	return append([]*graph.Node{v}, p.savedOutputs(saved)...)
}

// buildCriticBackward is buildBackward for the critic.
func (p *Learner) buildCriticBackward(in *inputs) []*graph.Node {
	n := p.sh.MicroBatch * p.sh.Sequence * p.c.values()
	w := p.net.weights(in)
	b := p.scorer.batchInputs(in)
	values, saved := in.next(p.net.wide, n), p.savedInputs(in)
	byValue, metrics := p.valueLoss(in, values)
	return p.addUp(in, p.pullValues(w, saved, b, byValue), metrics)
}

// valueLoss is the loss of the critic, whose columns and knobs are declared as inputs.
func (p *Learner) valueLoss(in *inputs, values *graph.Node) (byValue, metrics *graph.Node) {
	of := p.layout
	columns := in.columns(p.net.wide, of.Columns, values.Shape().Size())
	return losses.Critic(p.sh.Loss, values, columns, in.next(p.net.wide, len(of.Knobs)))
}

// pullValues is pullScores for the critic.
func (p *Learner) pullValues(w weights, saved saved, b batchNodes, byValue *graph.Node) []*graph.Node {
	grads := newGradientNodes(w)
	dx := p.net.pullValues(grads, w.norm, w.value, saved.last, byValue)
	p.pullLayers(grads, saved, dx, b)
	return grads.by
}

// knobs are the inputs of the loss: the clip, +Inf if it is off.
func (k CriticSettings) knobs(o LossOptions) []float32 {
	clip := k.Clip
	if clip == 0 {
		clip = float32(math.Inf(1))
	}
	return o.CriticLayout().Pack(terms.Knobs{terms.ValueClip: clip})
}

// reads are the columns that a critic's loss reads.
func (k CriticSettings) reads(o LossOptions) []read {
	out := readsOf(o.CriticLayout())
	for i := range out {
		out[i].required = out[i].of != batch.OldValues || k.Clip != 0
	}
	return out
}
