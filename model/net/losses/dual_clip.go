package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Guard, terms.DualClip, guard(dualClip))

// dualClip bounds the loss of a token with a negative advantage A to −dual_clip · A.
func dualClip(x Tokens, value *graph.Node) (acts, instead *graph.Node) {
	advantage := x.Column(batch.Advantages)
	bound := graph.Neg(graph.Mul(advantage, x.Knob(terms.DualClip)))
	return graph.LogicalAnd(graph.LessThan(advantage, x.Zero), graph.GreaterThan(value, bound)), bound
}
