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

// distribution is the softmax of logits, of which the sampler and the scorer compute the same bits.
type distribution struct {
	logits *graph.Node // [R, V]
	top    *graph.Node // [R], the largest logit
	e      *graph.Node // [R, blocks, width], exp(logits − top), with zeros after the vocabulary
	blocks *graph.Node // [R, blocks], the sums of e
	sum    *graph.Node // [R], of all
}

func distributionOf(logits *graph.Node) distribution {
	rows, vocab := logits.Shape().Dimensions[0], logits.Shape().Dimensions[1]
	d := distribution{logits: logits, top: graph.ReduceMax(logits, -1)}
	d.e = inBlocks(graph.Exp(graph.Sub(logits, graph.Reshape(d.top, rows, 1))), vocab)
	d.blocks = graph.ReduceSum(d.e, -1)
	d.sum = graph.ReduceSum(d.blocks, -1)
	return d
}

// inBlocks divides x [R, V] into blocks: [R, blocks, width].
func inBlocks(x *graph.Node, vocab int) *graph.Node {
	width := blockOf(vocab)
	count := (vocab + width - 1) / width
	return graph.Reshape(padded(x, 1, count*width), x.Shape().Dimensions[0], count, width)
}

// logProb is the logarithm of the probability of an id with this logit, [R].
func (d distribution) logProb(logit *graph.Node) *graph.Node {
	return graph.Sub(graph.Sub(logit, d.top), d.log())
}

// logSum is the logarithm of the softmax's denominator, [R].
func (d distribution) logSum() *graph.Node { return graph.Add(d.top, d.log()) }

// log is log Σe, by way of float64: the float32 logarithm of several numbers at once is another than that of one.
func (d distribution) log() *graph.Node {
	return graph.ConvertDType(graph.Log(graph.ConvertDType(d.sum, dtypes.Float64)), d.sum.DType())
}

// entropy is in nats, [R]: log Σe + Σ e·(top − logit) / Σe. The maximum keeps a product and the sum that it is added to two operations,
// which they might be in one program and not in another.
func (d distribution) entropy() *graph.Node {
	rows, vocab := d.logits.Shape().Dimensions[0], d.logits.Shape().Dimensions[1]
	below := graph.Sub(graph.Reshape(d.top, rows, 1), d.logits)
	below = inBlocks(graph.Min(below, scalar(below, -floor)), vocab)
	mean := graph.ReduceSum(notNegative(graph.ReduceSum(notNegative(graph.Mul(d.e, below)), -1)), -1)
	return graph.Add(d.log(), graph.Div(mean, d.sum))
}

// sumSquares is Σp² of the probabilities, [R]: the chance that two draws are the same id. The maximum is for what entropy says.
func (d distribution) sumSquares() *graph.Node {
	sum := graph.ReduceSum(notNegative(graph.ReduceSum(notNegative(graph.Mul(d.e, d.e)), -1)), -1)
	return graph.Div(sum, graph.Mul(d.sum, d.sum))
}

// sample draws a token for each row of logits [R, V] by inverting the distribution
// function at u [R], or selects the likeliest token if greedy, a bool scalar, is true. It
// returns the tokens [R] int32, their log-probs [R] and the entropies [R].
//
// The token is the first i with cs[i] > u·cs[last], where cs is the running sum of the
// probabilities: a float32 sum over a large vocabulary does not reach 1. Rounding never
// selects a token of probability 0. The sum runs over blocks first and then inside the
// chosen block. The function uses no scalar that GoMLX caches, because it is built inside
// a loop's body.
func sample(logits, u, greedy *graph.Node) (token, logProb, entropy *graph.Node) {
	g := logits.Graph()
	rows, vocab := logits.Shape().Dimensions[0], logits.Shape().Dimensions[1]
	d := distributionOf(logits)
	e, blocks := d.e, d.blocks
	count, width := e.Shape().Dimensions[1], e.Shape().Dimensions[2]
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
	isTop := graph.Equal(logits, column(d.top, logits))
	likeliest := graph.ReduceMin(graph.Where(isTop, ids, graph.Const(g, int32(vocab-1))), -1)
	token = graph.Where(graph.BroadcastToShape(greedy, likeliest.Shape()), likeliest, drawn)
	// Without this, NaN logits could give an id outside the vocabulary.
	token = graph.Max(graph.Min(token, graph.Const(g, int32(vocab-1))), graph.Const(g, int32(0)))

	chosen := graph.ReduceSum(graph.Where(graph.Equal(ids, column(token, ids)), logits, scalar(logits, 0)), -1)
	return token, d.logProb(chosen), d.entropy()
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
