package model

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
)

// The backward passes of the parts of the network, written by hand: each takes the
// derivatives of the loss by what its part returns, adds those by its trained tensors to the
// gradients, and returns those by what else it reads. With or without kept activations they
// are the same, so they give the same bits in float32. Derivatives by activations are in the
// dtype of activations where they are operands of a product, and wide otherwise; those by
// weights are wide.

// pullLayer is the backward pass of layer: from the derivative by its output, dy [n, d], it
// computes that by its input.
func (t network) pullLayer(grads gradientNodes, w layer, a activations, dy *graph.Node, s sequences) *graph.Node {
	dmiddle := t.pullSwiGLU(grads, w, a, dy)
	dattended := t.pullLinear(grads, w.out, a.attended, t.cast(dmiddle))
	dx := t.pullProject(grads, w, a, t.pullCausal(w, a, dattended, s), s)
	return t.cast(graph.Add(dx, dmiddle))
}

// pullSwiGLU is the backward pass of the SwiGLU and of what is added to it: from dy [n, d] it
// computes the derivative by a.middle, wide.
func (t network) pullSwiGLU(grads gradientNodes, w layer, a activations, dy *graph.Node) *graph.Node {
	h := t.norm(a.middle, w.postNorm)
	slope := graph.Sigmoid(a.gate)
	gate := graph.Mul(a.gate, slope)
	dproduct := t.pullLinear(grads, w.down, graph.Mul(gate, a.up), dy)
	one := scalar(slope, 1)
	dgate := graph.Mul(graph.Mul(dproduct, a.up), graph.Mul(slope, graph.Add(one, graph.Mul(a.gate, graph.Sub(one, slope)))))
	byGate := t.pullLinear(grads, w.gate, h, dgate)
	byUp := t.pullLinear(grads, w.up, h, graph.Mul(dproduct, gate))
	return graph.Add(t.pullNorm(grads, w.postNorm, a.middle, graph.Add(byGate, byUp)), t.widen(dy))
}

// pullLinear is the backward pass of linear: from dy [n, out] it computes the derivative by
// x [n, in].
func (t network) pullLinear(grads gradientNodes, w linear, x, dy *graph.Node) *graph.Node {
	dx := dot(dy, w.weight).General([]int{1}, nil, []int{0}, nil)
	if grads.has(w.weight) {
		grads.add(w.weight, dot(dy, x).WithOutputDType(t.wide).General([]int{0}, nil, []int{0}, nil))
	}
	if w.bias != nil && grads.has(w.bias) {
		grads.add(w.bias, graph.ReduceSum(t.widen(dy), 0))
	}
	if w.a == nil {
		return dx
	}
	x, dy = t.widen(x), t.widen(dy)
	scale := scalar(x, float32(t.c.LoRA.Scale()))
	low := graph.Mul(dot(x, w.a).General([]int{1}, nil, []int{1}, nil), scale)
	dlow := graph.Mul(dot(dy, w.b).General([]int{1}, nil, []int{0}, nil), scale)
	grads.add(w.a, dot(dlow, x).General([]int{0}, nil, []int{0}, nil))
	grads.add(w.b, dot(dy, low).General([]int{0}, nil, []int{0}, nil))
	return t.cast(graph.Add(t.widen(dx), dot(dlow, w.a).General([]int{1}, nil, []int{0}, nil)))
}

// pullNorm is the backward pass of norm: from dy [n, d] it computes the derivative by x, wide.
func (t network) pullNorm(grads gradientNodes, weight, x, dy *graph.Node) *graph.Node {
	x, dy = t.widen(x), t.widen(dy)
	n, d := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	inverse := graph.Reshape(graph.Rsqrt(t.meanSquare(x)), n, 1)
	scaled := graph.Mul(x, inverse)
	if grads.has(weight) {
		grads.add(weight, graph.ReduceSum(graph.Mul(dy, scaled), 0))
	}
	dscaled := graph.Mul(dy, graph.Reshape(weight, 1, d))
	along := graph.Reshape(graph.Div(graph.ReduceSum(graph.Mul(dscaled, scaled), -1), scalar(x, float32(d))), n, 1)
	return graph.Mul(inverse, graph.Sub(dscaled, graph.Mul(scaled, along)))
}

// projected are the derivatives by queries, keys and values, of the shapes of project's.
type projected struct{ q, k, v *graph.Node }

// pullProject is the backward pass of project: it computes the derivative by a.x, wide.
func (t network) pullProject(grads gradientNodes, w layer, a activations, d projected, s sequences) *graph.Node {
	n, h := s.rows*s.tokens, t.norm(a.x, w.inputNorm)
	flat := func(x *graph.Node) *graph.Node { return graph.Reshape(x, n, x.Shape().Size()/n) }
	dq := flat(t.rotate(graph.TransposeAllAxes(d.q, 0, 3, 1, 2, 4), s.back()))
	dk := flat(t.rotate(graph.TransposeAllAxes(d.k, 0, 2, 1, 3), s.back()))
	dv := flat(graph.TransposeAllAxes(d.v, 0, 2, 1, 3))
	dh := t.pullLinear(grads, w.query, h, t.pullNormHeads(grads, w.query.headNorm, a.query, dq))
	dh = graph.Add(dh, t.pullLinear(grads, w.key, h, t.pullNormHeads(grads, w.key.headNorm, a.key, dk)))
	dh = graph.Add(dh, t.pullLinear(grads, w.value, h, dv))
	return t.pullNorm(grads, w.inputNorm, a.x, dh)
}

// pullNormHeads is the backward pass of normHeads.
func (t network) pullNormHeads(grads gradientNodes, norm, x, dy *graph.Node) *graph.Node {
	if norm == nil {
		return dy
	}
	n, width, hd := x.Shape().Dimensions[0], x.Shape().Dimensions[1], t.c.HeadDim
	byHead := func(x *graph.Node) *graph.Node { return graph.Reshape(x, n*(width/hd), hd) }
	return t.cast(graph.Reshape(t.pullNorm(grads, norm, byHead(x), byHead(dy)), n, width))
}

// pullCausal is the backward pass of causal: from the derivative by what it attended to,
// [n, Heads·HeadDim], it computes those by queries, keys and values. It computes the
// attention's weights again, block by block.
func (t network) pullCausal(w layer, a activations, dattended *graph.Node, s sequences) projected {
	rows, kv, group, hd := s.rows, t.c.KVHeads, t.c.Heads/t.c.KVHeads, t.c.HeadDim
	q, k, v := t.queries(a.query, w.query.headNorm, s), t.keys(a.key, w.key.headNorm, s), t.byHead(a.value, s)
	split := func(x *graph.Node) *graph.Node {
		return graph.TransposeAllAxes(graph.Reshape(x, rows, s.tokens, kv, group, hd), 0, 2, 3, 1, 4)
	}
	// The derivative by a score is divided by √HeadDim, and so, in place of the scores', is what it
	// is computed from: XLA's CPU compiler would hold the factor for each score.
	dscaled := t.widen(dattended)
	dscaled = split(t.cast(graph.Mul(dscaled, scalar(dscaled, t.attentionScale()))))
	attended, dattended := split(a.attended), split(dattended)
	var dqs []*graph.Node
	var dk, dv *graph.Node
	for _, b := range t.queryBlocks(s.tokens) {
		n := b.to - b.from
		block := func(x *graph.Node) *graph.Node {
			return graph.Reshape(graph.SliceAxis(x, 3, graph.AxisRange(b.from, b.to)), rows, kv, group*n, hd)
		}
		qb, ob, dob, dsb := block(q), block(attended), block(dattended), block(dscaled)
		if b.from > 0 {
			before := []*graph.Node{dqs[len(dqs)-1], dk, dv}
			qb, dsb = t.after(qb, before...), t.after(dsb, before...)
		}
		kb, vb := graph.SliceAxis(k, 2, graph.AxisRange(0, b.to)), graph.SliceAxis(v, 2, graph.AxisRange(0, b.to))
		p := t.softmax(t.scores(graph.Reshape(qb, rows, kv, group, n, hd), kb, b.before(q.Graph(), b.to)))
		p = graph.Reshape(p, rows, kv, group*n, b.to)
		heads := []int{0, 1}
		dvb := dot(t.cast(p), dob).General([]int{2}, heads, []int{2}, heads)
		dp := t.widen(dot(dsb, vb).General([]int{3}, heads, []int{3}, heads))
		// The sum over keys of p·dp is that over the head's numbers of output and derivative.
		along := graph.ReduceSum(graph.Mul(t.widen(ob), t.widen(dsb)), -1)
		ds := t.cast(graph.Mul(p, graph.Sub(dp, graph.Reshape(along, rows, kv, group*n, 1))))
		dqb := dot(ds, kb).General([]int{3}, heads, []int{2}, heads)
		dkb := dot(ds, qb).General([]int{2}, heads, []int{2}, heads)
		dqs = append(dqs, graph.Reshape(dqb, rows, kv, group, n, hd))
		dk, dv = addAhead(dk, dkb, s.tokens), addAhead(dv, dvb, s.tokens)
	}
	dq := dqs[0]
	if len(dqs) > 1 {
		dq = graph.Concatenate(dqs, 3)
	}
	return projected{dq, dk, dv}
}

// addAhead adds x [rows, KVHeads, to, HeadDim] to the first places of a sum of all tokens'.
// A nil sum is zero.
func addAhead(sum, x *graph.Node, tokens int) *graph.Node {
	if to := x.Shape().Dimensions[2]; to < tokens {
		x = graph.Pad(x, scalar(x, 0), compute.PadAxis{}, compute.PadAxis{}, compute.PadAxis{End: tokens - to}, compute.PadAxis{})
	}
	if sum == nil {
		return x
	}
	return graph.Add(sum, x)
}

// pullValues is the backward pass of values: from the derivative by the values, [n · values], it
// computes that by x.
func (t network) pullValues(grads gradientNodes, norm *graph.Node, head linear, x, byValue *graph.Node) *graph.Node {
	n, d := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	if heads := t.c.values(); heads > 1 {
		byValue = graph.Reshape(byValue, n, heads)
		h := t.widen(t.norm(x, norm))
		var byX *graph.Node
		var weights, biases []*graph.Node
		for k := range heads {
			by := graph.Slice(byValue, graph.AxisRange(), graph.AxisRange(k, k+1)) // [n, 1]
			weights = append(weights, graph.Reshape(graph.ReduceSum(graph.Mul(by, h), 0), 1, d))
			biases = append(biases, graph.Reshape(graph.ReduceSum(by, 0), 1))
			if dx := graph.Mul(by, head.row(k)); byX == nil {
				byX = dx
			} else {
				byX = graph.Add(byX, dx)
			}
		}
		grads.add(head.weight, graph.Concatenate(weights, 0))
		grads.add(head.bias, graph.Concatenate(biases, 0))
		return t.cast(t.pullNorm(grads, norm, x, byX))
	}
	byValue = graph.Reshape(byValue, n, 1)
	byWeight := graph.ReduceSum(graph.Mul(byValue, t.widen(t.norm(x, norm))), 0)
	grads.add(head.weight, graph.Reshape(byWeight, head.weight.Shape().Dimensions...))
	grads.add(head.bias, graph.Reshape(graph.ReduceSum(byValue, 0), 1))
	return t.cast(t.pullNorm(grads, norm, x, graph.Mul(byValue, graph.Reshape(head.weight, 1, d))))
}
