package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// mark tells the tokens that are learned from by their likelihood from the others.
func (p *objective) mark() {
	p.marked = graph.GreaterThan(p.Column(batch.Supervised), p.Zero)
	p.apart = graph.LogicalOr(p.marked, graph.BroadcastToShape(p.all, p.marked.Shape()))
}

// imitate replaces the surrogate by the negative log-likelihood −log π, at all tokens if the step says so, and takes
// the marked tokens out of the other terms: their likelihood is a part of the loss of its own.
func (p *objective) imitate() {
	pick := func(ifAll, otherwise *graph.Node) *graph.Node {
		return graph.Where(graph.BroadcastToShape(p.all, otherwise.Shape()), ifAll, otherwise)
	}
	p.value = pick(graph.Neg(p.LogProb), p.value)
	if p.marked != nil {
		p.metrics[terms.SupervisedLoss] = p.sum(graph.Where(p.marked, graph.Neg(p.LogProb), p.Zero), p.Weight)
		p.value, p.entropy = graph.Where(p.marked, p.Zero, p.value), graph.Where(p.marked, p.Zero, p.entropy)
	}
	p.metrics[terms.PolicyLoss] = p.sum(p.value, p.Weight)
	p.slope = pick(graph.Neg(p.One), p.slope)
	if p.marked != nil {
		p.slope = graph.Where(p.marked, graph.Neg(p.One), p.slope)
	}
}

// addLikelihood adds the likelihood of the marked tokens to the loss.
func (p *objective) addLikelihood() {
	if p.marked != nil {
		p.total = graph.Add(p.total, p.metrics[terms.SupervisedLoss])
	}
}
