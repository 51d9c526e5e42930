package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// blockOf is the width of the sampler's blocks for a vocabulary: a power of two near its
// square root, so that both the blocks and their number are small.
func blockOf(vocab int) int {
	b := 1
	for b*b < vocab {
		b *= 2
	}
	return b
}

// sample draws a token for each row of logits [R, V] by inverting the distribution
// function at u [R], or selects the likeliest token if greedy, a bool scalar, is true. It
// returns the tokens [R] int32 and their log-probs [R].
//
// The token is the first i with cs[i] > u·cs[last], where cs is the running sum of the
// probabilities: a float32 sum over a large vocabulary does not reach 1. Rounding never
// selects a token of probability 0. The sum runs over blocks first and then inside the
// chosen block. The function uses no scalar that GoMLX caches, because it is built inside
// a loop's body.
func sample(logits, u, greedy *graph.Node) (token, logProb *graph.Node) {
	g := logits.Graph()
	rows, vocab := logits.Shape().Dimensions[0], logits.Shape().Dimensions[1]
	width := blockOf(vocab)
	count := (vocab + width - 1) / width

	top := graph.ReduceMax(logits, -1)
	e := graph.Exp(graph.Sub(logits, graph.Reshape(top, rows, 1)))
	if pad := count*width - vocab; pad > 0 {
		zeros := graph.BroadcastToShape(scalar(e, 0), shapes.Make(dtypes.Float32, rows, pad))
		e = graph.Concatenate([]*graph.Node{e, zeros}, 1)
	}
	blocks := graph.ReduceSum(graph.Reshape(e, rows, count, width), -1)
	sums := runningSum(blocks)
	total := graph.Reshape(graph.Slice(sums, graph.AxisRange(), graph.AxisRange(count-1, count)), rows)
	target := graph.Mul(u, total)
	block := firstAbove(sums, blocks, target)

	// Subtract the sum of the blocks before the chosen one from the target.
	place := graph.Iota(g, shapes.Make(dtypes.Int32, rows, count), 1)
	column := func(v *graph.Node, like *graph.Node) *graph.Node {
		return graph.BroadcastToShape(graph.Reshape(v, rows, 1), like.Shape())
	}
	earlier := graph.Equal(graph.Add(place, graph.Const(g, int32(1))), column(block, place))
	rest := graph.Sub(target, graph.ReduceSum(graph.Where(earlier, sums, scalar(sums, 0)), -1))
	row := graph.Iota(g, shapes.Make(dtypes.Int32, rows), 0)
	at := graph.Add(graph.Mul(row, graph.Const(g, int32(count))), block)
	inside := graph.Gather(graph.Reshape(e, rows*count, width), graph.Reshape(at, rows, 1))
	drawn := graph.Add(graph.Mul(block, graph.Const(g, int32(width))), firstAbove(runningSum(inside), inside, rest))

	ids := graph.Iota(g, shapes.Make(dtypes.Int32, rows, vocab), 1)
	isTop := graph.Equal(logits, column(top, logits))
	likeliest := graph.ReduceMin(graph.Where(isTop, ids, graph.Const(g, int32(vocab-1))), -1)
	token = graph.Where(graph.BroadcastToShape(greedy, likeliest.Shape()), likeliest, drawn)
	// Without this, NaN logits could give an id outside the vocabulary.
	token = graph.Max(graph.Min(token, graph.Const(g, int32(vocab-1))), graph.Const(g, int32(0)))

	chosen := graph.ReduceSum(graph.Where(graph.Equal(ids, column(token, ids)), logits, scalar(logits, 0)), -1)
	sum := graph.ReduceSum(blocks, -1)
	return token, graph.Sub(graph.Sub(chosen, top), graph.Log(sum))
}

// runningSum computes the running sum of p [R, n] over the last axis, as a product with a
// triangular matrix of ones.
func runningSum(p *graph.Node) *graph.Node {
	n := p.Shape().Dimensions[1]
	g, square := p.Graph(), shapes.Make(dtypes.Int32, n, n)
	ones := graph.ConvertDType(graph.LessOrEqual(graph.Iota(g, square, 0), graph.Iota(g, square, 1)), dtypes.Float32)
	return graph.Dot(p, ones).General([]int{1}, nil, []int{0}, nil)
}

// firstAbove returns, for each row, the first i with sums[i] > target and p[i] > 0. If
// rounding leaves no such i, it returns the last i with p[i] > 0.
func firstAbove(sums, p, target *graph.Node) *graph.Node {
	g := p.Graph()
	rows, n := p.Shape().Dimensions[0], p.Shape().Dimensions[1]
	place := graph.Iota(g, shapes.Make(dtypes.Int32, rows, n), 1)
	possible := graph.GreaterThan(p, scalar(p, 0))
	above := graph.GreaterThan(sums, graph.BroadcastToShape(graph.Reshape(target, rows, 1), sums.Shape()))
	first := graph.ReduceMin(graph.Where(graph.LogicalAnd(above, possible), place, graph.Const(g, int32(n))), -1)
	last := graph.ReduceMax(graph.Where(possible, place, graph.Const(g, int32(0))), -1)
	return graph.Where(graph.LessThan(first, graph.Const(g, int32(n))), first, last)
}
