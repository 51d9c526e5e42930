package model

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// The attention of prefill, decode, append and forward is one function. Where the network is exact, what it gives for a query does
// not depend on how many queries and keys there are beside it, so that the sampler and the scorer compute the same bits:
//
//   - products are of float32, of two rows of queries or more, and of a multiple of lane keys and of lane numbers of a value. The
//     CPU plugin's kernels give a row of such a product the same bits for any number of rows and of keys (docs/exact.md);
//   - keys that are not seen are masked and come after those that are: their weights are 0, and add nothing at the end of a sum;
//   - the weights are not normalized: the values' sum is divided by the weights', which is added up in an order that further
//     zeros leave as it is.

// lane is the number that the keys of an exact product, and the numbers of its values, are a multiple of.
const lane = 64

// masked is far below any score. −Inf would give NaN in a row without unmasked keys.
const masked = -1e30

// upToLane is the least multiple of lane that is not less than n.
func upToLane(n int) int { return (n + lane - 1) / lane * lane }

// places is how many places the keys and values of so many tokens have.
func (t network) places(tokens int) int {
	if t.exact {
		return upToLane(tokens)
	}
	return tokens
}

// valueWidth is how many numbers a value has in memory, of which the first HeadDim count.
func (t network) valueWidth() int {
	if t.exact {
		return upToLane(t.c.HeadDim)
	}
	return t.c.HeadDim
}

// keptDims are the dimensions of the keys, for an even i, or the values, for an odd one, of so many rows and tokens.
func (t network) keptDims(i, rows, tokens int) []int {
	width := t.c.HeadDim
	if i%2 == 1 {
		width = t.valueWidth()
	}
	return []int{rows, t.c.KVHeads, t.places(tokens), width}
}

// padded is x with zeros after it on an axis, up to a size.
func padded(x *graph.Node, axis, size int) *graph.Node {
	dims := append([]int{}, x.Shape().Dimensions...)
	if dims[axis] >= size {
		return x
	}
	dims[axis] = size - dims[axis]
	return graph.Concatenate([]*graph.Node{x, zeros(x.Graph(), x.DType(), dims...)}, axis)
}

// placed are keys and values of whole rows, with zeros after those of the tokens.
func (t network) placed(k, v *graph.Node) (keys, values *graph.Node) {
	size := t.places(k.Shape().Dimensions[2])
	return padded(k, 2, size), padded(v, 2, size)
}

// twice is x with its only row of an axis doubled, if it has one: a product with one row is of another kernel. The caller takes the
// first of the result's.
func (t network) twice(x *graph.Node, axis int) *graph.Node {
	if !t.exact || x.Shape().Dimensions[axis] > 1 {
		return x
	}
	return graph.Concatenate([]*graph.Node{x, x}, axis)
}

// onlyFirst is the first n of an axis, of which there may be more because of twice.
func onlyFirst(x *graph.Node, axis, n int) *graph.Node {
	if x.Shape().Dimensions[axis] == n {
		return x
	}
	return graph.SliceAxis(x, axis, graph.AxisRange(0, n))
}

// attend attends queries, q [rows, KVHeads, group, n, HeadDim], to the keys that they see, k [rows, KVHeads, m, HeadDim], of values v
// [rows, KVHeads, m, valueWidth]. seen is bool [rows or 1, 1, 1, n, m]. It returns [rows, KVHeads, group, n, HeadDim].
func (t network) attend(q, k, v, seen *graph.Node) *graph.Node {
	dims, m := q.Shape().Dimensions, k.Shape().Dimensions[2]
	rows, kv, queries := dims[0], dims[1], dims[2]*dims[3]
	s := t.scores(q, k, seen)
	if !t.exact {
		p := graph.Reshape(t.cast(t.softmax(s)), rows, kv, queries, m)
		return graph.Reshape(dot(p, v).General([]int{3}, []int{0, 1}, []int{2}, []int{0, 1}), dims...)
	}
	e := exponentials(s)
	p := t.twice(graph.Reshape(e, rows, kv, queries, m), 2)
	o := t.weighted(p, t.widen(v))
	o = graph.Reshape(onlyFirst(onlyFirst(o, 2, queries), 3, dims[4]), dims...)
	return t.cast(graph.Div(o, column(sumOfPlaces(e))))
}

// weighted is the sum of values, v [rows, KVHeads, m, valueWidth], by weights, p [rows, KVHeads, n, m], so many keys at once that no
// product divides them itself: where it would depends on n.
func (t network) weighted(p, v *graph.Node) (sum *graph.Node) {
	size := max(lane, keysByLanes/t.valueWidth())
	for from, m := 0, v.Shape().Dimensions[2]; from < m; from += size {
		some := graph.AxisRange(from, min(from+size, m))
		part := dot(graph.SliceAxis(p, 3, some), graph.SliceAxis(v, 2, some)).General([]int{3}, []int{0, 1}, []int{2}, []int{0, 1})
		if sum == nil {
			sum = part
		} else {
			sum = graph.Add(sum, part)
		}
	}
	return sum
}

// keysByLanes is how many numbers of values the kernels add up at once.
const keysByLanes = 1 << 15

// sumOfPlaces is the sum over the last axis, of a multiple of lane numbers from 0 on. Further zeros leave its bits as they are: the
// numbers of each lane are added up from the first place to the last, then the lanes. The maximum keeps the compiler from making one
// sum of both.
func sumOfPlaces(e *graph.Node) *graph.Node {
	dims := e.Shape().Dimensions
	last := len(dims) - 1
	e = graph.Reshape(e, append(append([]int{}, dims[:last]...), dims[last]/lane, lane)...)
	for n := dims[last] / lane; n > maxSum; n = (n + maxSum - 1) / maxSum { // the compiler divides a longer sum into parts
		e = padded(e, last, (n+maxSum-1)/maxSum*maxSum)
		parts := append(append([]int{}, dims[:last]...), e.Shape().Dimensions[last]/maxSum, maxSum, lane)
		e = notNegative(graph.ReduceSum(graph.Reshape(e, parts...), last+1))
	}
	return graph.ReduceSum(notNegative(graph.ReduceSum(e, last)), -1)
}

// maxSum is how many numbers the compiler adds up one after the other.
const maxSum = 32

func notNegative(x *graph.Node) *graph.Node { return graph.Max(x, scalar(x, 0)) }

// softmax is taken over the last axis, in wide.
func (t network) softmax(scores *graph.Node) *graph.Node {
	e := exponentials(scores)
	return graph.Div(e, column(graph.ReduceSum(e, -1)))
}

// exponentials are those of scores, less the largest of the last axis.
func exponentials(scores *graph.Node) *graph.Node {
	return graph.Exp(graph.Sub(scores, column(graph.ReduceMax(scores, -1))))
}

// column is x with another axis, of size 1.
func column(x *graph.Node) *graph.Node {
	return graph.Reshape(x, append(append([]int{}, x.Shape().Dimensions...), 1)...)
}

// scores computes the attention scores of queries, q [rows, KVHeads, group, n, HeadDim], and keys, k [rows, KVHeads, m, HeadDim],
// divided by √HeadDim, and masked where they are not seen: wide [rows, KVHeads, group, n, m].
func (t network) scores(q, k, seen *graph.Node) *graph.Node {
	dims, m := q.Shape().Dimensions, k.Shape().Dimensions[2]
	rows, kv, group, n := dims[0], dims[1], dims[2], dims[3]
	q = graph.Reshape(q, rows, kv, group*n, dims[4])
	if t.exact { // scaled after the product, the scale and what is subtracted might be one operation in one program and two in another
		q, k = t.widen(q), t.widen(k)
		q = t.twice(graph.Mul(q, scalar(q, t.attentionScale())), 2)
	}
	s := t.widen(dot(q, k).General([]int{3}, []int{0, 1}, []int{3}, []int{0, 1}))
	if !t.exact {
		s = graph.Mul(s, scalar(s, t.attentionScale()))
	}
	s = graph.Reshape(onlyFirst(s, 2, group*n), rows, kv, group, n, m)
	return graph.Where(graph.BroadcastToShape(seen, s.Shape()), s, scalar(s, masked))
}

// attentionScale is 1 / √HeadDim.
func (t network) attentionScale() float32 { return float32(1 / math.Sqrt(float64(t.c.HeadDim))) }

// causal attends each token to itself and those before it, in blocks of queries. Rows are padded on the right, so this mask alone keeps
// padding out of every real token. q is [rows, KVHeads, group, tokens, HeadDim], k and v are as placed gives them. It returns
// [rows·tokens, Heads·HeadDim].
func (t network) causal(q, k, v *graph.Node, s sequences) *graph.Node {
	return t.inBlocks(q, s, func(q *graph.Node, b queryBlock) *graph.Node {
		places := graph.AxisRange(0, t.places(b.to))
		return t.attend(q, graph.SliceAxis(k, 2, places), graph.SliceAxis(v, 2, places), b.before(q.Graph(), t.places(b.to)))
	})
}

// onKept attends each new token to its row's places up to its own, in blocks of queries. q is [rows, KVHeads, group, tokens, HeadDim],
// k and v are those of so many places, and start is the place of each row's first new token. It returns [rows·tokens, Heads·HeadDim].
func (t network) onKept(q, k, v, start *graph.Node, s sequences) *graph.Node {
	g, width := q.Graph(), k.Shape().Dimensions[2]
	return t.inBlocks(q, s, func(q *graph.Node, b queryBlock) *graph.Node {
		at := shapes.Make(dtypes.Int32, s.rows, 1, 1, b.to-b.from, width)
		first := graph.BroadcastToShape(graph.Reshape(start, s.rows, 1, 1, 1, 1), at)
		query := graph.Add(graph.Add(graph.Iota(g, at, 3), graph.Const(g, int32(b.from))), first)
		return t.attend(q, k, v, graph.GreaterOrEqual(query, graph.Iota(g, at, 4)))
	})
}

// inBlocks attends the queries of whole rows, a block after the other: see causal.
func (t network) inBlocks(q *graph.Node, s sequences, attend func(q *graph.Node, b queryBlock) *graph.Node) *graph.Node {
	var blocks []*graph.Node
	for _, b := range t.queryBlocks(s.tokens) {
		qb := graph.SliceAxis(q, 3, graph.AxisRange(b.from, b.to))
		if b.from > 0 {
			qb = t.after(qb, blocks[len(blocks)-1])
		}
		blocks = append(blocks, attend(qb, b))
	}
	o := blocks[0]
	if len(blocks) > 1 {
		o = graph.Concatenate(blocks, 3)
	}
	return graph.Reshape(graph.TransposeAllAxes(o, 0, 3, 1, 2, 4), s.rows*s.tokens, t.c.Heads*t.c.HeadDim)
}

// queryBlock are the queries [from, to) of a sequence, which attend at once.
type queryBlock struct{ from, to int }

// queryBlocks divides so many tokens.
func (t network) queryBlocks(tokens int) []queryBlock {
	var out []queryBlock
	for from := 0; from < tokens; from += t.limits.queries {
		out = append(out, queryBlock{from, min(from+t.limits.queries, tokens)})
	}
	return out
}

// before marks which of the first places each query of the block sees, bool [1, 1, 1, to−from, places].
func (b queryBlock) before(g *graph.Graph, places int) *graph.Node {
	at := shapes.Make(dtypes.Int32, 1, 1, 1, b.to-b.from, places)
	query := graph.Add(graph.Iota(g, at, 3), graph.Const(g, int32(b.from)))
	return graph.GreaterOrEqual(query, graph.Iota(g, at, 4))
}
