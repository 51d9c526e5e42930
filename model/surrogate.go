package model

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

// ratioNodes are the ratio of each token, whether its logarithm was within its bounds, and the
// token's log-prob, [n] each; zero and one are scalars.
type ratioNodes struct{ ratio, inside, logProb, zero, one *graph.Node }

// surrogate computes the loss of each token before its weight, its derivative by the
// token's log-prob, and whether a bound acted, [n] each. A weight in front of the
// log-prob is not differentiated.
func (p *Programs) surrogate(r ratioNodes, columns columnNodes, knobs *graph.Node) (value, slope, bound *graph.Node) {
	zero, one := r.zero, r.one
	advantage := columns.own[batch.Advantages]
	weighted := func(weight *graph.Node) (value, slope *graph.Node) {
		slope = graph.Neg(graph.Mul(weight, advantage))
		return graph.Mul(slope, r.logProb), slope
	}
	switch p.sh.Loss.Surrogate {
	case loss.CISPO:
		high := graph.Add(one, columns.own[batch.ClipHigh])
		value, slope = weighted(graph.Min(r.ratio, high))
		return value, slope, graph.GreaterThan(r.ratio, high)
	case loss.DPPOTV:
		value, slope = weighted(graph.Min(r.ratio, element(knobs, knobRatioCap)))
		moved := graph.Sub(graph.Exp(r.logProb), graph.Exp(columns.own[batch.OldLogProbs]))
		beyond := graph.Where(graph.GreaterThan(advantage, zero),
			graph.GreaterThan(moved, columns.own[batch.ClipHigh]), graph.LessThan(moved, graph.Neg(columns.own[batch.ClipLow])))
		return graph.Where(beyond, zero, value), graph.Where(beyond, zero, slope), beyond
	case loss.SAPO:
		tau := graph.Where(graph.GreaterThan(advantage, zero), element(knobs, knobTauPositive), element(knobs, knobTauNegative))
		gate := graph.Sigmoid(graph.Mul(tau, graph.Sub(r.ratio, one)))
		four := graph.Mul(scalar(r.ratio, -4), advantage)
		slope = graph.Mul(graph.Mul(four, r.ratio), graph.Mul(gate, graph.Sub(one, gate)))
		return graph.Div(graph.Mul(four, gate), tau), graph.Where(r.inside, slope, zero), graph.LessThan(tau, zero)
	default:
		plain := graph.Neg(graph.Mul(r.ratio, advantage))
		bounds := []*graph.Node{graph.Sub(one, columns.own[batch.ClipLow]), graph.Add(one, columns.own[batch.ClipHigh])}
		bounded := graph.Neg(graph.Mul(graph.Min(graph.Max(r.ratio, bounds[0]), bounds[1]), advantage))
		clipped := graph.GreaterThan(bounded, plain)
		value = graph.Where(clipped, bounded, plain)
		return value, graph.Where(graph.LogicalAnd(r.inside, graph.LogicalNot(clipped)), plain, zero), clipped
	}
}

// turnRatio computes the ratio of each token's turn, [n], which is the exponential of the
// mean of the log-ratios of the turn's tokens, and marks where that mean was within its
// bound. logRatio is 0 at unused tokens; turn is from 1, [n].
func (p *Programs) turnRatio(logRatio, used, turn *graph.Node) (ratio, inside *graph.Node) {
	rows, width, turns := p.sh.MicroBatch, p.sh.Sequence, p.sh.Loss.Turns
	dims := []int{rows, width, turns}
	spread := func(x *graph.Node, shape ...int) *graph.Node {
		return graph.BroadcastToDims(graph.Reshape(x, shape...), dims...)
	}
	cube := spread(logRatio, rows, width, 1)
	zero, one := graph.ZerosLike(cube), scalar(logRatio, 1)
	own := graph.Equal(spread(turn, rows, width, 1), graph.Add(graph.Iota(cube.Graph(), cube.Shape(), 2), one))
	own = graph.LogicalAnd(own, spread(used, rows, width, 1))
	count := graph.Max(graph.ReduceSum(graph.ConvertDType(own, p.net.wide), 1), one)
	mean := graph.Div(graph.ReduceSum(graph.Where(own, cube, zero), 1), count) // [rows, turns]
	over := graph.GreaterThan(mean, scalar(mean, maxSequenceLogRatio))
	// pick gives each token the number of its turn, and 0 to unused tokens.
	pick := func(x *graph.Node) *graph.Node {
		return graph.Reshape(graph.ReduceSum(graph.Where(own, spread(x, rows, 1, turns), zero), 2), rows*width)
	}
	ratio = pick(graph.Exp(graph.Where(over, scalar(mean, maxSequenceLogRatio), mean)))
	return ratio, graph.LessThan(pick(graph.ConvertDType(over, p.net.wide)), one)
}

// offPolicy marks the tokens with a negative advantage of the rows whose mean of old log-prob
// − log-prob is above the limit, [n]. logRatio is 0 at unused tokens.
func (p *Programs) offPolicy(logRatio, used, advantage, limit *graph.Node) *graph.Node {
	rows, width := p.sh.MicroBatch, p.sh.Sequence
	perRow := func(x *graph.Node) *graph.Node { return graph.ReduceSum(graph.Reshape(x, rows, width), -1) }
	count := graph.Max(perRow(graph.ConvertDType(used, p.net.wide)), scalar(logRatio, 1))
	far := graph.GreaterThan(graph.Neg(graph.Div(perRow(logRatio), count)), limit)
	far = graph.Reshape(graph.BroadcastToDims(graph.Reshape(far, rows, 1), rows, width), rows*width)
	return graph.LogicalAnd(far, graph.LessThan(advantage, scalar(logRatio, 0)))
}
