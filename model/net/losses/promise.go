package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Value, terms.Promise, value(promise))

// promise is the loss of a critic whose values f are logits of chances (AgentPRM, arXiv 2502.10325, soft cross-entropy):
//
//	−[G·log σ(f) + (1 − G)·log(1 − σ(f))] = max(f, 0) − G·f + log(1 + e^−|f|)
//
// of Returns G, from 0 to 1. Its reference on plain numbers is golden.SoftCrossEntropy. Nothing is clipped, and the
// mean value is that of σ(f).
func promise(x Values) Estimate {
	target, chance := x.Column(batch.Returns), graph.Sigmoid(x.Of)
	entropy := graph.Add(graph.Sub(graph.Max(x.Of, x.Zero), graph.Mul(target, x.Of)), graph.Log1P(graph.Exp(graph.Neg(graph.Abs(x.Of)))))
	return Estimate{Loss: entropy, Slope: func() *graph.Node { return graph.Sub(chance, target) }, Said: chance}
}
