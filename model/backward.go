package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// buildBackward is the policy's backward program. Its inputs are the inputs and outputs of
// the forward program, the loss's columns and knobs, and the sums so far; its outputs are
// the sums with this micro-batch added. Each layer is computed again from its saved
// input, so that only one layer's activations are in memory at a time, on every platform.
func (p *Programs) buildBackward(in *inputs) []*graph.Node {
	n := p.sh.MicroBatch * p.sh.Sequence
	w := p.net.weights(in)
	b := p.batchInputs(in)
	lp, entropy, logSum := in.next(p.net.wide, n), in.next(p.net.wide, n), in.next(p.net.wide, n)
	saved := p.savedInputs(in)
	columns := in.columns(p.net.wide, p.columnCount(), n)
	l := p.policyLoss(lp, entropy, columns, in.next(p.net.wide, knobCount))
	grads := p.pullScores(w, saved, b, entropy, logSum, l.byLogProb, l.byEntropy)
	return p.addUp(in, grads, l.metrics, metricRatio)
}

// pullScores propagates the derivatives of the loss by log-probs and entropies back
// through the network and returns the gradients of all tensors.
func (p *Programs) pullScores(w weights, saved []*graph.Node, b batchNodes, entropy, logSum, byLogProb, byEntropy *graph.Node) []*graph.Node {
	grads := newGradientNodes(w)
	hd := head{t: p.net, weight: w.head, legal: b.legal, inverse: b.inverse, frozen: !grads.has(w.head)}
	dx, dnorm, dhead := hd.gradients(saved[p.c.Layers], w.norm, b.target, entropy, logSum, byLogProb, byEntropy)
	grads.add(w.norm, dnorm)
	if dhead != nil {
		grads.add(w.head, dhead)
	}
	p.pullLayers(grads, saved, dx, b)
	return grads.by
}

// columnCount is how many columns the policy's loss has.
func (p *Programs) columnCount() int {
	if p.sh.Loss.KL == "" {
		return columnReference
	}
	return columnReference + 1
}

// columns declares an input [count, n] and returns it as count nodes of [n].
func (in *inputs) columns(dtype dtypes.DType, count, n int) []*graph.Node {
	all := in.next(dtype, count, n)
	out := make([]*graph.Node, count)
	for i := range out {
		out[i] = graph.Reshape(graph.Slice(all, graph.AxisRange(i, i+1)), n)
	}
	return out
}

// savedInputs declares the activations saved by the forward program as inputs.
func (p *Programs) savedInputs(in *inputs) []*graph.Node {
	saved := make([]*graph.Node, p.c.Layers+1)
	for i := range saved {
		saved[i] = in.next(p.net.dtype, p.sh.MicroBatch*p.sh.Sequence, p.c.HiddenSize)
	}
	return saved
}

// pullLayers propagates the derivative by the last layer's output back to the embedding
// and sets the gradients of the tensors that are trained. It adds to the embedding's gradient
// if there is one already, from a tied head.
func (p *Programs) pullLayers(grads gradientNodes, saved []*graph.Node, dx *graph.Node, b batchNodes) {
	n := p.sh.MicroBatch * p.sh.Sequence
	for i := p.c.Layers - 1; i >= 0; i-- {
		x, w := p.net.after(saved[i], dx), grads.w.layers[i]
		y := p.net.layer(w, x, p.sh.MicroBatch, p.sh.Sequence, b.cos, b.sin)
		g := p.net.pullback(y, dx, append([]*graph.Node{x}, p.c.ofLayer(grads.w.trained, i)...)...)
		dx = g[0]
		copy(p.c.ofLayer(grads.by, i), g[1:])
	}
	table := grads.w.embedding
	if !grads.has(table) {
		return
	}
	if id, ok := p.c.padding(); ok {
		padded := graph.Equal(b.flat, scalar(b.flat, float32(id)))
		padded = graph.BroadcastToShape(graph.Reshape(padded, n, 1), dx.Shape())
		dx = graph.Where(padded, scalar(dx, 0), dx)
	}
	// The gradient of an embedding's row is the sum over the positions of its token.
	grads.add(table, graph.ScatterSum(graph.Zeros(dx.Graph(), table.Shape()), graph.Reshape(b.flat, n, 1), p.net.widen(dx), false, false))
}

// addUp adds gradients and metrics to the sums so far, in the memory of the sums. It declares
// as inputs whether this micro-batch is the first, whose sums are not read, and the sums. The
// metric at index largest is combined by maximum instead of sum.
func (p *Programs) addUp(in *inputs, grads []*graph.Node, metrics *graph.Node, largest int) []*graph.Node {
	first := in.next(dtypes.Bool)
	for i, t := range p.c.Tensors() {
		sum := in.donated(i, p.net.wide, t.Shape...)
		grads[i] = graph.Where(first, grads[i], graph.Add(sum, grads[i]))
	}
	before := in.next(p.net.wide, metrics.Shape().Size())
	total, most := graph.Add(before, metrics), graph.Max(before, metrics)
	place := graph.Iota(in.g, metrics.Shape(), 0)
	total = graph.Where(graph.Equal(place, scalar(place, float32(largest))), most, total)
	return append(grads, graph.Where(first, metrics, total))
}
