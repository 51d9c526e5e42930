package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Surrogate, string(loss.GMPO), surrogate(gmpo))

// gmpo is loss.GMPO. The derivative by a token's log-prob counts the whole row's loss: the mean divides it by the
// row's tokens, and as many tokens have that loss.
func gmpo(x Tokens) (value, slope, bound *graph.Node) {
	advantage, low, high := x.Column(batch.Advantages), graph.Neg(x.Column(batch.ClipLow)), x.Column(batch.ClipHigh)
	up, down := graph.GreaterThan(advantage, x.Zero), graph.LessThan(advantage, x.Zero)
	above := graph.LogicalAnd(up, graph.GreaterThan(x.LogRatio, high))
	below := graph.LogicalAnd(down, graph.LessThan(x.LogRatio, low))
	clipped := graph.Where(above, high, graph.Where(below, low, graph.Where(graph.LogicalOr(up, down), x.LogRatio, x.Zero)))
	mean := x.mean(graph.Where(x.Used, clipped, x.Zero))
	over := graph.GreaterThan(mean, scalar(mean, maxMeanLogRatio))
	ratio := x.spread(graph.Exp(graph.Where(over, scalar(mean, maxMeanLogRatio), mean)))
	value = graph.Neg(graph.Mul(ratio, advantage))
	bound = graph.LogicalOr(above, below)
	return value, graph.Where(graph.LogicalOr(bound, x.spread(over)), x.Zero, value), bound
}
