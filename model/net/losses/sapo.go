package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Surrogate, string(loss.SAPO), surrogate(sapo))

// sapo is loss.SAPO.
func sapo(x Tokens) (value, slope, bound *graph.Node) {
	advantage := x.Column(batch.Advantages)
	tau := graph.Where(graph.GreaterThan(advantage, x.Zero), x.Knob(terms.TauPositive), x.Knob(terms.TauNegative))
	gate := graph.Sigmoid(graph.Mul(tau, graph.Sub(x.Ratio, x.One)))
	four := graph.Mul(scalar(x.Ratio, -4), advantage)
	slope = graph.Mul(graph.Mul(four, x.Ratio), graph.Mul(gate, graph.Sub(x.One, gate)))
	return graph.Div(graph.Mul(four, gate), tau), graph.Where(x.Inside, slope, x.Zero), graph.LessThan(tau, x.Zero)
}
