package model

import (
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/cost"
)

// network builds the pieces of a transformer of any family. Activations are [rows·tokens,
// width] and matrices in dtype; norms, biases, softmax, logits and losses are in wide.
type network struct {
	c     Config
	dtype dtypes.DType
	// wide is float32, as in transformers. Tests also build forward and backward
	// programs in float64, in which finite differences of the loss are exact enough to
	// check its gradient. Generation, AdamW and the fingerprint need float32.
	wide   dtypes.DType
	limits limits
	// exact gives the sampler and the scorer the same bits: see attend.
	exact bool
}

// limits bound the memory that is used at once. They are part of the programs: other
// limits may give other bits.
type limits struct {
	queries int // that attend at once
	logits  int // positions × vocabulary in the head at once
	prefill int // tokens in one prefill
}

// defaultLimits are those of all programs but tests'.
var defaultLimits = limits{queries: cost.AttentionQueries, logits: cost.HeadLogits, prefill: cost.PrefillTokens}

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

// element returns the value of a vector at index i, as a scalar.
func element(v *graph.Node, i int) *graph.Node {
	return graph.Reshape(graph.Slice(v, graph.AxisRange(i, i+1)))
}

// norm is RMSNorm over the last axis of x [n, d].
func (t network) norm(x, weight *graph.Node) *graph.Node {
	x = t.widen(x)
	n, d := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	x = graph.Div(x, graph.Reshape(graph.Sqrt(t.meanSquare(x)), n, 1))
	return t.cast(graph.Mul(x, graph.Reshape(weight, 1, d)))
}

// meanSquare is the mean square of each row of x, wide [n, d], and epsilon.
func (t network) meanSquare(x *graph.Node) *graph.Node {
	mean := graph.Div(graph.ReduceSum(graph.Mul(x, x), -1), scalar(x, float32(x.Shape().Dimensions[1])))
	return graph.Add(mean, scalar(x, float32(t.c.RMSNormEps)))
}

// linear is x·Wᵀ + b, and with adapters s·(x·Aᵀ)·Bᵀ more, which is computed in wide as in PEFT.
func (t network) linear(x *graph.Node, w linear) *graph.Node {
	y := t.product(x, w.weight)
	if w.bias != nil {
		y = graph.Add(y, graph.Reshape(t.cast(w.bias), 1, w.bias.Shape().Size()))
	}
	if w.a == nil {
		return y
	}
	low := t.product(t.widen(x), w.a)
	// Scaled after the second product, scale and sum might be one operation in one program and two in another.
	low = graph.Mul(low, scalar(low, float32(t.c.LoRA.Scale())))
	return t.cast(graph.Add(t.widen(y), t.product(low, w.b)))
}

// dot is a product whose numbers are added up as the device does for its operands. If they were asked for in float32, go-xla
// would add 0·x₀ to each bfloat16 matrix first, with x₀ the first number of the first row (ops_dotgeneral.go): a NaN there would reach
// all rows, and all weights would be written anew at each step. See TestNonFiniteRowStays.
func dot(x, w *graph.Node) *graph.DotBuilder {
	return graph.Dot(x, w).WithAccumulatorDType(x.DType())
}

// product is x·Wᵀ.
func (t network) product(x, w *graph.Node) *graph.Node {
	n := x.Shape().Dimensions[0]
	return onlyFirst(dot(t.twice(x, 0), w).General([]int{1}, nil, []int{1}, nil), 0, n)
}

// sequences are the rows that a layer computes: how many, the tokens of each, and the rotary
// tables of the tokens' positions, wide [rows or 1, tokens, HeadDim/2].
type sequences struct {
	rows, tokens int
	cos, sin     *graph.Node
}

// back are the sequences with rotations in the other direction.
func (s sequences) back() sequences {
	s.sin = graph.Neg(s.sin)
	return s
}

// rotate applies rotary positions to x [rows, tokens, ..., HeadDim].
func (t network) rotate(x *graph.Node, s sequences) *graph.Node {
	last, half := x.Rank()-1, t.c.HeadDim/2
	table := func(of *graph.Node) *graph.Node {
		dims := append([]int{of.Shape().Dimensions[0], s.tokens}, slices.Repeat([]int{1}, last-2)...)
		return graph.Reshape(of, append(dims, half)...)
	}
	cos, sin := table(s.cos), table(s.sin)
	x = t.widen(x)
	a := graph.SliceAxis(x, last, graph.AxisRange(0, half))
	b := graph.SliceAxis(x, last, graph.AxisRange(half, 2*half))
	return t.cast(graph.Concatenate([]*graph.Node{
		graph.Sub(graph.Mul(a, cos), graph.Mul(b, sin)),
		graph.Add(graph.Mul(b, cos), graph.Mul(a, sin)),
	}, last))
}

// project computes a layer's queries, keys and values of a.x with rotary positions applied:
// q [rows, KVHeads, Heads/KVHeads, tokens, HeadDim], k [rows, KVHeads, tokens, HeadDim] and
// v [rows, KVHeads, tokens, valueWidth]. It sets what the linear maps give in a.
func (t network) project(w layer, a *activations, s sequences) (q, k, v *graph.Node) {
	h := t.norm(a.x, w.inputNorm)
	a.query = t.linear(h, w.query)
	q = t.queries(a.query, w.query.headNorm, s)
	a.key = t.linear(h, w.key)
	k = t.keys(a.key, w.key.headNorm, s)
	a.value = t.linear(h, w.value)
	return q, k, padded(t.byHead(a.value, s), 3, t.valueWidth())
}

// queries are made of what their linear map gives: see project.
func (t network) queries(x, norm *graph.Node, s sequences) *graph.Node {
	kv, group, hd := t.c.KVHeads, t.c.Heads/t.c.KVHeads, t.c.HeadDim
	x = graph.Reshape(t.normHeads(x, norm), s.rows, s.tokens, kv, group, hd)
	return graph.TransposeAllAxes(t.rotate(x, s), 0, 2, 3, 1, 4)
}

// keys are made of what their linear map gives: see project.
func (t network) keys(x, norm *graph.Node, s sequences) *graph.Node {
	x = graph.Reshape(t.normHeads(x, norm), s.rows, s.tokens, t.c.KVHeads, t.c.HeadDim)
	return graph.TransposeAllAxes(t.rotate(x, s), 0, 2, 1, 3)
}

// byHead makes values of what their linear map gives: see project.
func (t network) byHead(x *graph.Node, s sequences) *graph.Node {
	x = graph.Reshape(x, s.rows, s.tokens, t.c.KVHeads, t.c.HeadDim)
	return graph.TransposeAllAxes(x, 0, 2, 1, 3)
}

// normHeads is RMSNorm of each head's HeadDim numbers of x [n, heads·HeadDim], with the scale
// norm [HeadDim]. Where norm is nil, as in a family that does not normalize heads, it is x.
func (t network) normHeads(x, norm *graph.Node) *graph.Node {
	if norm == nil {
		return x
	}
	n, width := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	x = t.norm(graph.Reshape(x, n*(width/t.c.HeadDim), t.c.HeadDim), norm)
	return graph.Reshape(x, n, width)
}

// finish adds the attention's output, a.attended, and the SwiGLU to the residual stream. It
// sets what comes between in a.
func (t network) finish(w layer, a *activations) *graph.Node {
	a.middle = graph.Add(a.x, t.linear(a.attended, w.out))
	h := t.norm(a.middle, w.postNorm)
	a.gate = t.linear(h, w.gate)
	gate := graph.Mul(a.gate, graph.Sigmoid(a.gate))
	a.up = t.linear(h, w.up)
	return graph.Add(a.middle, t.linear(graph.Mul(gate, a.up), w.down))
}

// layer is one transformer block over x [rows·tokens, d], all positions from 0. It returns
// its output, and what its backward pass reads.
func (t network) layer(w layer, x *graph.Node, s sequences) (*graph.Node, activations) {
	a := activations{x: x}
	q, k, v := t.project(w, &a, s)
	k, v = t.placed(k, v)
	a.attended = t.causal(q, k, v, s)
	y := t.finish(w, &a)
	return y, a
}
