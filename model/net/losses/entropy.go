package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/loss/terms"
)

// reward adds the entropy of the tokens to the loss, which it lowers.
func (p *objective) reward() {
	entropy := p.sum(p.entropy, p.Weight)
	p.metrics[terms.Entropy] = entropy
	p.total = graph.Sub(p.metrics[terms.PolicyLoss], graph.Mul(p.Knob(terms.EntropyCoefficient), entropy))
}

// byEntropy is the derivative of the loss by the entropies.
func (p *objective) byEntropy() *graph.Node {
	by := graph.Neg(graph.Mul(p.Weight, p.Knob(terms.EntropyCoefficient)))
	if p.marked != nil {
		by = graph.Where(p.marked, p.Zero, by)
	}
	return by
}
