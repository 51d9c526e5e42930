package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// maxLogRatio bounds the logarithm of a token's ratio, the same as in the tests' reference.
const maxLogRatio = 20

// Derivatives are the derivatives of a policy's loss by log-prob and entropy, [n], and its metrics, in the order
// of the layout.
type Derivatives struct {
	ByLogProb, ByEntropy *graph.Node
	Metrics              *graph.Node
}

// Policy is the loss that trains a policy: the surrogate with its entropy and KL
// terms or, if the knob terms.AllSupervised is 1, the negative log-likelihood. Its
// reference on plain numbers is referencePolicy in the tests of package model. Log-probs, entropies and
// columns are [n] each. Tokens that are not trained on have no effect on the
// results, even if their numbers are not finite.
func Policy(of terms.Selection, sizes Sizes, logProb, entropy *graph.Node, columns Columns, knobs *graph.Node) Derivatives {
	p := &objective{of: of, layout: of.PolicyLayout(), metrics: map[string]*graph.Node{}, entropy: entropy}
	p.Tokens = Tokens{Sizes: sizes, Columns: columns, Numbers: Numbers{p.layout, knobs}, LogProb: logProb}
	for _, step := range []func(){p.begin, p.compare, p.surrogate, p.guard, p.imitate, p.reward, p.addLikelihood, p.distance} {
		step()
	}
	return p.end()
}

// objective is a policy's loss on the way.
type objective struct {
	Tokens
	of      terms.Selection
	layout  terms.Layout
	entropy *graph.Node
	metrics map[string]*graph.Node // [1]

	all    *graph.Node // whether the step imitates all tokens
	marked *graph.Node // the tokens that are imitated beside the others; nil without Supervised
	apart  *graph.Node // both: these tokens have no surrogate, as the metrics see it

	value, slope *graph.Node // of each token, without the KL's
	bounded      *graph.Node // where the surrogate's bound acted
	total        *graph.Node // [1]
	// Of the ratios of tokens: what the metrics say.
	behaviour, approximate, most *graph.Node
}

// whereUsed is x with zeros at tokens that are not trained on.
func (p *objective) whereUsed(x *graph.Node) *graph.Node { return graph.Where(p.Used, x, p.Zero) }

// unlessImitated is x with zeros at the tokens that are imitated.
func (p *objective) unlessImitated(x *graph.Node) *graph.Node {
	apart := p.apart
	if apart == nil {
		apart = graph.BroadcastToShape(p.all, x.Shape())
	}
	return graph.Where(apart, p.Zero, x)
}

// sum adds a number of each token up, by weights, [1].
func (p *objective) sum(x, weights *graph.Node) *graph.Node {
	return graph.Reshape(graph.ReduceAllSum(graph.Mul(p.whereUsed(x), weights)), 1)
}

// fraction is the share of the tokens that are marked.
func (p *objective) fraction(marked *graph.Node) *graph.Node {
	return p.sum(p.unlessImitated(graph.ConvertDType(marked, p.Wide)), p.Share)
}

// begin tells the tokens apart.
func (p *objective) begin() {
	p.Zero, p.One = scalar(p.LogProb, 0), scalar(p.LogProb, 1)
	p.Used = graph.GreaterThan(p.Share, p.Zero)
	p.all = graph.GreaterThan(p.Knob(terms.AllSupervised), p.Zero)
	if p.of.Supervised {
		p.mark()
	}
	p.LogProb, p.entropy = p.whereUsed(p.LogProb), p.whereUsed(p.entropy)
}

// compare computes the ratios.
func (p *objective) compare() {
	p.LogRatio = p.unlessImitated(p.whereUsed(graph.Sub(p.LogProb, p.Column(batch.OldLogProbs))))
	var logRatio *graph.Node
	logRatio, p.Inside = within(p.LogRatio, -maxLogRatio, maxLogRatio)
	p.Ratio = graph.Exp(logRatio)
	off := graph.Sub(p.Ratio, p.One)
	p.behaviour, p.approximate, p.most = graph.Neg(logRatio), graph.Sub(off, logRatio), graph.ReduceAllMax(graph.Abs(off))
	for _, t := range p.selected(terms.Ratio) {
		p.Ratio, p.Inside = find[ratio](t)(p.Tokens)
	}
}

// selected are the selected terms of a kind.
func (p *objective) selected(kind terms.Kind) []terms.Term {
	var out []terms.Term
	for _, t := range p.of.Terms() {
		if t.Kind == kind {
			out = append(out, t)
		}
	}
	return out
}

func (p *objective) surrogate() {
	for _, t := range p.selected(terms.Surrogate) {
		p.value, p.slope, p.bounded = find[surrogate](t)(p.Tokens)
	}
	if p.slope == nil {
		p.slope = graph.Gradient(graph.ReduceAllSum(p.value), p.LogProb)[0]
	}
}

// guard lets the guards act, one after the other. The first metric of a guard is the share of tokens at which it does.
func (p *objective) guard() {
	p.metrics[terms.DualClipFraction] = graph.Reshape(p.Zero, 1) // which every policy has
	for _, t := range p.selected(terms.Guard) {
		acts, instead := find[guard](t)(p.Tokens, p.value)
		p.value, p.slope = graph.Where(acts, instead, p.value), graph.Where(acts, p.Zero, p.slope)
		p.metrics[t.Metrics[0].Name] = p.fraction(acts)
	}
}

// distance adds the distance from the reference.
func (p *objective) distance() {
	p.metrics[terms.KL] = graph.Reshape(p.Zero, 1)
	for _, t := range p.selected(terms.Distance) {
		d := p.whereUsed(graph.Sub(p.LogProb, p.Column(batch.RefLogProbs)))
		kl, by := find[distance](t)(difference{d: d, zero: scalar(d, 0), one: scalar(d, 1)})
		sum := p.sum(p.unlessImitated(kl), p.Weight)
		p.metrics[terms.KL] = sum
		if p.of.KLByToken {
			own := p.Column(batch.KLCoefficients)
			p.total = graph.Add(p.total, p.sum(graph.Mul(own, p.unlessImitated(kl)), p.Weight))
			p.slope = graph.Add(p.slope, graph.Mul(own, p.unlessImitated(by)))
			continue
		}
		p.total = graph.Add(p.total, graph.Mul(p.Knob(terms.KLCoefficient), sum))
		p.slope = graph.Add(p.slope, graph.Mul(p.Knob(terms.KLCoefficient), p.unlessImitated(by)))
	}
}

// end weighs the derivatives and puts the metrics in their order.
func (p *objective) end() Derivatives {
	out := Derivatives{ByLogProb: graph.Mul(p.whereUsed(p.slope), p.Weight), ByEntropy: p.byEntropy()}
	p.metrics[terms.Loss] = p.total
	p.metrics[terms.ClipFraction] = p.fraction(p.bounded)
	p.metrics[terms.BehaviourKL], p.metrics[terms.ApproxKL] = p.sum(p.behaviour, p.Share), p.sum(p.approximate, p.Share)
	p.metrics[terms.RatioMax] = graph.Reshape(p.most, 1)
	out.Metrics = inOrder(p.layout, p.metrics)
	return out
}

// inOrder are metrics in the order of a layout.
func inOrder(l terms.Layout, of map[string]*graph.Node) *graph.Node {
	var out []*graph.Node
	for _, m := range l.Metrics {
		out = append(out, of[m.Name])
	}
	return graph.Concatenate(out, 0)
}
