package model

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// network builds the pieces of a transformer of any family. Activations are [rows·tokens,
// width] in dtype; weights, norms, softmax, logits and losses are in wide.
type network struct {
	c     Config
	dtype dtypes.DType
	// wide is float32, as in transformers. Tests also build forward and backward
	// programs in float64, in which finite differences of the loss are exact enough to
	// check its gradient. Generation, AdamW and the fingerprint need float32.
	wide   dtypes.DType
	limits limits
}

// limits bound the memory that is used at once. They are part of the programs: other
// limits may give other bits.
type limits struct {
	queries int // that attend at once
	logits  int // positions × vocabulary in the head at once
	prefill int // tokens in one prefill
}

// defaultLimits compute attention for 512 queries at a time instead of a whole sequence,
// which also skips the keys after each block of queries. 2^26 logits are 256 MiB.
var defaultLimits = limits{queries: 512, logits: 1 << 26, prefill: 1 << 16}

// embed looks up ids [n] int32 in the embedding and returns [n, HiddenSize].
func (t network) embed(table, ids *graph.Node) *graph.Node {
	n := ids.Shape().Dimensions[0]
	return t.cast(graph.Gather(table, graph.Reshape(ids, n, 1)))
}

func (t network) cast(x *graph.Node) *graph.Node {
	if x.DType() == t.dtype {
		return x
	}
	return graph.ConvertDType(x, t.dtype)
}

// widen converts to the wide dtype.
func (t network) widen(x *graph.Node) *graph.Node {
	if x.DType() == t.wide {
		return x
	}
	return graph.ConvertDType(x, t.wide)
}

// after is x, to be computed only when others have been. XLA begins what depends on nothing
// as early as it likes, and holds the memory of all of it at once; a barrier does not hinder
// its CPU compiler. So x depends on a number of each of the others: whether it is less than
// −Inf, which the compiler does not know to be false.
func (t network) after(x *graph.Node, others ...*graph.Node) *graph.Node {
	var never *graph.Node
	for _, y := range others {
		ranges := make([]graph.SliceAxisSpec, y.Rank())
		for i := range ranges {
			ranges[i] = graph.AxisRange(0, 1)
		}
		first := graph.StopGradient(graph.Reshape(graph.Slice(y, ranges...)))
		is := graph.LessThan(first, scalar(first, float32(math.Inf(-1))))
		if never == nil {
			never = is
		} else {
			never = graph.LogicalOr(never, is)
		}
	}
	return graph.Where(never, graph.ZerosLike(x), x)
}

// scalar is a constant of x's dtype. GoMLX's own scalars are cached in the graph, and
// one cached inside a loop's body cannot be used outside it.
func scalar(x *graph.Node, v float32) *graph.Node { return graph.ConstAs(x, v) }

// norm is RMSNorm over the last axis of x [n, d]. It uses Div and Sqrt because Rsqrt has
// no gradient in GoMLX.
func (t network) norm(x, weight *graph.Node) *graph.Node {
	x = t.widen(x)
	n, d := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	mean := graph.Div(graph.ReduceSum(graph.Mul(x, x), -1), scalar(x, float32(d)))
	scale := graph.Sqrt(graph.Add(mean, scalar(x, float32(t.c.RMSNormEps))))
	x = graph.Div(x, graph.Reshape(scale, n, 1))
	return t.cast(graph.Mul(x, graph.Reshape(weight, 1, d)))
}

// linear is x·Wᵀ + b, and with adapters s·(x·Aᵀ)·Bᵀ more, which is computed in wide as in PEFT.
func (t network) linear(x *graph.Node, w linear) *graph.Node {
	y := graph.Dot(x, t.cast(w.weight)).General([]int{1}, nil, []int{1}, nil)
	if w.bias != nil {
		y = graph.Add(y, graph.Reshape(t.cast(w.bias), 1, w.bias.Shape().Size()))
	}
	if w.a == nil {
		return y
	}
	low := graph.Dot(t.widen(x), w.a).General([]int{1}, nil, []int{1}, nil)
	by := graph.Dot(low, w.b).General([]int{1}, nil, []int{1}, nil)
	return t.cast(graph.Add(t.widen(y), graph.Mul(by, scalar(by, float32(t.c.LoRA.Scale())))))
}

// rotate applies rotary positions to x [..., HeadDim] with tables that broadcast
// to [..., HeadDim/2].
func (t network) rotate(x, cos, sin *graph.Node) *graph.Node {
	x = t.widen(x)
	last, half := x.Rank()-1, t.c.HeadDim/2
	a := graph.SliceAxis(x, last, graph.AxisRange(0, half))
	b := graph.SliceAxis(x, last, graph.AxisRange(half, 2*half))
	return t.cast(graph.Concatenate([]*graph.Node{
		graph.Sub(graph.Mul(a, cos), graph.Mul(b, sin)),
		graph.Add(graph.Mul(b, cos), graph.Mul(a, sin)),
	}, last))
}

// softmax is taken over the last axis and computed in wide.
func (t network) softmax(scores *graph.Node) *graph.Node {
	reduced := append([]int{}, scores.Shape().Dimensions...)
	reduced[len(reduced)-1] = 1
	top := graph.StopGradient(graph.Reshape(graph.ReduceMax(scores, -1), reduced...))
	e := graph.Exp(graph.Sub(scores, top))
	return t.cast(graph.Div(e, graph.Reshape(graph.ReduceSum(e, -1), reduced...)))
}

// heads is a projection of h [rows·tokens, d] to heads: [rows·tokens, heads·HeadDim]. In a
// family that normalizes heads, each has RMSNorm over its HeadDim numbers.
func (t network) heads(h *graph.Node, w linear) *graph.Node {
	x := t.linear(h, w)
	if w.headNorm == nil {
		return x
	}
	n, width := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	x = t.norm(graph.Reshape(x, n*(width/t.c.HeadDim), t.c.HeadDim), w.headNorm)
	return graph.Reshape(x, n, width)
}

// project computes a layer's queries, keys and values of x [rows·tokens, d] with
// rotary positions applied: q [rows, KVHeads, Heads/KVHeads, tokens, HeadDim] and
// k, v [rows, KVHeads, tokens, HeadDim]. The tables are [rows or 1, tokens, HeadDim/2].
func (t network) project(w layer, x *graph.Node, rows, tokens int, cos, sin *graph.Node) (q, k, v *graph.Node) {
	c := t.c
	kv, group, hd := c.KVHeads, c.Heads/c.KVHeads, c.HeadDim
	h := t.norm(x, w.inputNorm)
	first := cos.Shape().Dimensions[0]
	table := func(n *graph.Node, extra ...int) *graph.Node {
		return graph.Reshape(n, append(append([]int{first, tokens}, extra...), hd/2)...)
	}
	q = graph.Reshape(t.heads(h, w.query), rows, tokens, kv, group, hd)
	q = graph.TransposeAllAxes(t.rotate(q, table(cos, 1, 1), table(sin, 1, 1)), 0, 2, 3, 1, 4)
	k = graph.Reshape(t.heads(h, w.key), rows, tokens, kv, hd)
	k = graph.TransposeAllAxes(t.rotate(k, table(cos, 1), table(sin, 1)), 0, 2, 1, 3)
	v = graph.Reshape(t.linear(h, w.value), rows, tokens, kv, hd)
	v = graph.TransposeAllAxes(v, 0, 2, 1, 3)
	return q, k, v
}

// scores computes the attention scores of queries [rows, KVHeads, n, HeadDim] and keys
// [rows, KVHeads, m, HeadDim], divided by √HeadDim: wide [rows, KVHeads, n, m].
func (t network) scores(q, k *graph.Node) *graph.Node {
	s := t.widen(graph.Dot(q, k).General([]int{3}, []int{0, 1}, []int{3}, []int{0, 1}))
	return graph.Mul(s, scalar(s, float32(1/math.Sqrt(float64(t.c.HeadDim)))))
}

// masked is far below any score. −Inf would give NaN in a row without unmasked keys.
const masked = -1e30

// causal attends each token to itself and those before it, in blocks of queries.
// Rows are padded on the right, so this mask alone keeps padding out of every
// real token. It returns [rows·tokens, Heads·HeadDim].
func (t network) causal(q, k, v *graph.Node, rows, tokens int) *graph.Node {
	kv, group, hd := t.c.KVHeads, t.c.Heads/t.c.KVHeads, t.c.HeadDim
	g := q.Graph()
	var blocks []*graph.Node
	for from := 0; from < tokens; from += t.limits.queries {
		to := min(from+t.limits.queries, tokens)
		n := to - from
		qb := graph.Reshape(graph.SliceAxis(q, 3, graph.AxisRange(from, to)), rows, kv, group*n, hd)
		if from > 0 {
			qb = t.after(qb, blocks[len(blocks)-1])
		}
		kb, vb := graph.SliceAxis(k, 2, graph.AxisRange(0, to)), graph.SliceAxis(v, 2, graph.AxisRange(0, to))
		s := graph.Reshape(t.scores(qb, kb), rows, kv, group, n, to)
		at := shapes.Make(dtypes.Int32, 1, 1, 1, n, to)
		query := graph.Add(graph.Iota(g, at, 3), graph.Const(g, int32(from)))
		seen := graph.GreaterOrEqual(query, graph.Iota(g, at, 4))
		s = graph.Where(graph.BroadcastToShape(seen, s.Shape()), s, scalar(s, masked))
		p := graph.Reshape(t.softmax(s), rows, kv, group*n, to)
		o := graph.Dot(p, vb).General([]int{3}, []int{0, 1}, []int{2}, []int{0, 1})
		blocks = append(blocks, graph.Reshape(o, rows, kv, group, n, hd))
	}
	o := blocks[0]
	if len(blocks) > 1 {
		o = graph.Concatenate(blocks, 3)
	}
	return graph.Reshape(graph.TransposeAllAxes(o, 0, 3, 1, 2, 4), rows*tokens, kv*group*hd)
}

// finish adds the attention's output and the SwiGLU to the residual stream.
func (t network) finish(w layer, x, attended *graph.Node) *graph.Node {
	x = graph.Add(x, t.linear(attended, w.out))
	h := t.norm(x, w.postNorm)
	gate := t.linear(h, w.gate)
	gate = graph.Mul(gate, graph.Sigmoid(gate))
	return graph.Add(x, t.linear(graph.Mul(gate, t.linear(h, w.up)), w.down))
}

// layer is one transformer block over x [rows·tokens, d], all positions from 0.
func (t network) layer(w layer, x *graph.Node, rows, tokens int, cos, sin *graph.Node) *graph.Node {
	q, k, v := t.project(w, x, rows, tokens, cos, sin)
	return t.finish(w, x, t.causal(q, k, v, rows, tokens))
}
