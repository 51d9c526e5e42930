package model

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
)

// Critic returns the configuration of the policy's critic: the same backbone with a value head
// instead of the output head. With LoRA it has adapters of its own over the same base. Programs of
// this configuration support Values and CriticUpdate, and its States and Snapshots are critics.
func (c Config) Critic() Config {
	c.ValueHead, c.TieEmbeddings = true, false
	return c
}

// CriticOf is Critic with a head of so many numbers for each token.
func (c Config) CriticOf(values int) Config {
	c = c.Critic()
	if values > 1 {
		c.Values = values
	}
	return c
}

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
func (p *Programs) Values(ctx context.Context, s *State, b batch.MicroBatch) ([][]float32, error) {
	out, err := p.ValuesAll(ctx, s, []batch.MicroBatch{b})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// ValuesAll is Values for several micro-batches, which are dealt to the devices. The context is
// checked before each.
func (p *Programs) ValuesAll(ctx context.Context, s *State, batches []batch.MicroBatch) ([][][]float32, error) {
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
// micro-batches in order, with the clipped value loss (valueLoss):
//
//	L = ½·Σ w·max((V − G)², (clip(V, V_old − ε, V_old + ε) − G)²)
//
// of Returns G and OldValues V_old. With LossOptions.Promises the loss is the cross-entropy
// (promiseLoss), and Clip must be 0. Otherwise it behaves like Update.
func (p *Programs) CriticUpdate(ctx context.Context, s *State, batches []batch.MicroBatch, k CriticSettings) (*State, CriticMetrics, error) {
	g, err := p.criticGradient(batches, k)
	st, m, err := train(ctx, s, g, err)
	if err != nil {
		return nil, CriticMetrics{}, fmt.Errorf("critic update: %w", err)
	}
	return st, m, nil
}

// CriticGradient begins a step of CriticUpdate, whose micro-batches are then added one by one.
func (p *Programs) CriticGradient(batches []batch.MicroBatch, k CriticSettings) (*Gradient[CriticMetrics], error) {
	g, err := p.criticGradient(batches, k)
	if err != nil {
		return nil, fmt.Errorf("critic gradient: %w", err)
	}
	return g, nil
}

func (p *Programs) criticGradient(batches []batch.MicroBatch, k CriticSettings) (*Gradient[CriticMetrics], error) {
	if err := p.checkRole(true); err != nil {
		return nil, err
	}
	if err := k.check(); err != nil {
		return nil, err
	}
	if p.sh.Loss.Promises && k.Clip != 0 {
		return nil, fmt.Errorf("%w: a Clip of values that are logits", ErrInput)
	}
	all, tokens, err := p.packAll(batches, k.reads())
	if err != nil {
		return nil, err
	}
	return newGradient(p, all, pass{knobs: k.knobs()}, k.Optimizer, func(r report) CriticMetrics {
		return CriticMetrics{
			Loss: r.metrics[metricLoss], ClipFraction: r.metrics[criticMetricClip], ValueMean: r.metrics[criticMetricMean],
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

// row is row k of the weight, [1, in], and number is number k of the bias, [1].
func (l linear) row(k int) *graph.Node    { return graph.Slice(l.weight, graph.AxisRange(k, k+1)) }
func (l linear) number(k int) *graph.Node { return graph.Slice(l.bias, graph.AxisRange(k, k+1)) }

// buildValues is the critic's forward program. Its inputs are the parameters, ids [b, T]
// and rotary tables; its outputs are the values of the tokens that follow, [b·T], and what is
// saved for the backward program.
func (p *Programs) buildValues(in *inputs) []*graph.Node {
	w := p.net.weights(in)
	saved := p.layers(w, p.batchInputs(in))
	v := p.net.values(saved.last, w.norm, w.value)
	return append([]*graph.Node{v}, p.savedOutputs(saved)...)
}

// buildCriticBackward is buildBackward for the critic.
func (p *Programs) buildCriticBackward(in *inputs) []*graph.Node {
	n := p.sh.MicroBatch * p.sh.Sequence * p.c.values()
	w := p.net.weights(in)
	b := p.batchInputs(in)
	values, saved := in.next(p.net.wide, n), p.savedInputs(in)
	columns := in.columns(p.net.wide, CriticSettings{}.reads(), n)
	clip := element(in.next(p.net.wide, 1), 0)
	lossOf := valueLoss
	if p.sh.Loss.Promises {
		lossOf = promiseLoss
	}
	byValue, metrics := lossOf(values, columns, clip)
	const none = -1 // no metric is a maximum
	return p.addUp(in, p.pullValues(w, saved, b, byValue), metrics, none)
}

// pullValues is pullScores for the critic.
func (p *Programs) pullValues(w weights, saved saved, b batchNodes, byValue *graph.Node) []*graph.Node {
	grads := newGradientNodes(w)
	dx := p.net.pullValues(grads, w.norm, w.value, saved.last, byValue)
	p.pullLayers(grads, saved, dx, b)
	return grads.by
}

// knobs are the inputs of the loss: the clip, +Inf if it is off.
func (k CriticSettings) knobs() []float32 {
	if k.Clip == 0 {
		return []float32{float32(math.Inf(1))}
	}
	return []float32{k.Clip}
}

// reads are the columns that a critic's loss reads.
func (k CriticSettings) reads() []read {
	return []read{{of: batch.Returns, required: true}, {of: batch.OldValues, required: k.Clip != 0}}
}

// Places of the critic's own metrics.
const (
	criticMetricClip = metricLoss + 1 + iota
	criticMetricMean
	criticMetricCount
)

// trained are the tokens that a critic's loss is of, with their weights by batch.Weights and
// their shares in the means, [n] each.
type trained struct{ used, zero, weight, share *graph.Node }

func trainedOf(values *graph.Node, columns columnNodes) trained {
	zero, share := scalar(values, 0), columns.share
	return trained{used: graph.GreaterThan(share, zero), zero: zero, weight: columns.weight, share: share}
}

// only is x with zeros at the other tokens, even where x is not finite there.
func (t trained) only(x *graph.Node) *graph.Node { return graph.Where(t.used, x, t.zero) }

// sum adds a number of each token up, by weights.
func (t trained) sum(x, weights *graph.Node) *graph.Node {
	return graph.Reshape(graph.ReduceAllSum(graph.Mul(t.only(x), weights)), 1)
}

// valueLoss is the loss that trains the critic, with its derivative by the values, [n].
// Its reference on plain numbers is referenceValue in the tests. Values and columns
// are [n] each. Tokens that are not trained on have no effect on the results, even if
// their numbers are not finite.
func valueLoss(values *graph.Node, columns columnNodes, clip *graph.Node) (byValue, metrics *graph.Node) {
	t, target, old := trainedOf(values, columns), columns.own[batch.Returns], columns.own[batch.OldValues]
	clamped := graph.Min(graph.Max(values, graph.Sub(old, clip)), graph.Add(old, clip))
	plainError, clampedError := graph.Sub(values, target), graph.Sub(clamped, target)
	plain, bounded := graph.Mul(plainError, plainError), graph.Mul(clampedError, clampedError)
	// bounded is greater only if the value is outside the bounds. There clamped is constant.
	clipped := graph.GreaterThan(bounded, plain)
	square := graph.Mul(graph.Where(clipped, bounded, plain), scalar(values, 0.5))
	metrics = graph.Concatenate([]*graph.Node{
		t.sum(square, t.weight), t.sum(graph.ConvertDType(clipped, values.DType()), t.share), t.sum(values, t.share),
	}, 0)
	return graph.Mul(t.only(graph.Where(clipped, t.zero, plainError)), t.weight), metrics
}

// promiseLoss is the loss of a critic whose values f are logits of chances, with its derivative by
// the values, [n] (AgentPRM, arXiv 2502.10325, soft cross-entropy):
//
//	−[G·log σ(f) + (1 − G)·log(1 − σ(f))] = max(f, 0) − G·f + log(1 + e^−|f|)
//
// of Returns G, from 0 to 1. Its reference on plain numbers is loss.SoftCrossEntropy. Arguments and
// metrics are valueLoss's; nothing is clipped, and the mean value is that of σ(f).
func promiseLoss(values *graph.Node, columns columnNodes, _ *graph.Node) (byValue, metrics *graph.Node) {
	t, target, chance := trainedOf(values, columns), columns.own[batch.Returns], graph.Sigmoid(values)
	entropy := graph.Add(graph.Sub(graph.Max(values, t.zero), graph.Mul(target, values)), graph.Log1P(graph.Exp(graph.Neg(graph.Abs(values)))))
	metrics = graph.Concatenate([]*graph.Node{
		t.sum(entropy, t.weight), t.sum(graph.ZerosLike(values), t.share), t.sum(chance, t.share),
	}, 0)
	return graph.Mul(t.only(graph.Sub(chance, target)), t.weight), metrics
}
