package losses

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

var _ = add(terms.Ratio, string(loss.TurnRatio), ratio(turnRatio))

// turnRatio is loss.TurnRatio: the ratio of each token's turn, which is the exponential of the
// mean of the log-ratios of the turn's tokens. It marks where that mean was within its
// bound. Turns are from 1.
func turnRatio(x Tokens) (ratio, inside *graph.Node) {
	rows, width, turns := x.Rows, x.Width, x.Turns
	dims := []int{rows, width, turns}
	spread := func(v *graph.Node, shape ...int) *graph.Node {
		return graph.BroadcastToDims(graph.Reshape(v, shape...), dims...)
	}
	cube := spread(x.LogRatio, rows, width, 1)
	zero, one := graph.ZerosLike(cube), scalar(x.LogRatio, 1)
	own := graph.Equal(spread(x.Column(batch.Turns), rows, width, 1), graph.Add(graph.Iota(cube.Graph(), cube.Shape(), 2), one))
	own = graph.LogicalAnd(own, spread(x.Used, rows, width, 1))
	count := graph.Max(graph.ReduceSum(graph.ConvertDType(own, x.Wide), 1), one)
	mean := graph.Div(graph.ReduceSum(graph.Where(own, cube, zero), 1), count) // [rows, turns]
	over := graph.GreaterThan(mean, scalar(mean, maxMeanLogRatio))
	// pick gives each token the number of its turn, and 0 to unused tokens.
	pick := func(v *graph.Node) *graph.Node {
		return graph.Reshape(graph.ReduceSum(graph.Where(own, spread(v, rows, 1, turns), zero), 2), rows*width)
	}
	ratio = pick(graph.Exp(graph.Where(over, scalar(mean, maxMeanLogRatio), mean)))
	return ratio, graph.LessThan(pick(graph.ConvertDType(over, x.Wide)), one)
}
