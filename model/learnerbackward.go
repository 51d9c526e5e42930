package model

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/net/losses"
)

// buildBackward is the policy's backward program. Its inputs are the inputs and outputs of
// the forward program, the loss's columns and knobs, and the sums so far; its outputs are
// the sums with this micro-batch added. Unless the forward program keeps its activations, each
// layer is computed again from its input, so that only one layer's are in memory at a time, on
// every platform.
func (l *Learner) buildBackward(in *inputs) []*graph.Node {
	n := l.sh.MicroBatch * l.sh.Sequence
	w := l.net.weights(in)
	b := l.scorer.batchInputs(in)
	lp, entropy, logSum := in.next(l.net.wide, n), in.next(l.net.wide, n), in.next(l.net.wide, n)
	saved := l.savedInputs(in)
	d := l.policyLoss(in, lp, entropy)
	grads := l.pullScores(w, saved, b, entropy, logSum, d.ByLogProb, d.ByEntropy)
	return l.addUp(in, grads, d.Metrics)
}

// policyLoss is the loss of the policy, whose columns and knobs are declared as inputs.
func (l *Learner) policyLoss(in *inputs, lp, entropy *graph.Node) losses.Derivatives {
	of := l.layout
	columns := in.columns(l.net.wide, of.Columns, l.sh.MicroBatch*l.sh.Sequence)
	sizes := losses.Sizes{Rows: l.sh.MicroBatch, Width: l.sh.Sequence, Turns: l.sh.Loss.Turns, Wide: l.net.wide}
	return losses.Policy(l.sh.Loss, sizes, lp, entropy, columns, in.next(l.net.wide, len(of.Knobs)))
}

// pullScores propagates the derivatives of the loss by log-probs and entropies back
// through the network and returns the gradients of all tensors.
func (l *Learner) pullScores(w weights, saved saved, b batchNodes, entropy, logSum, byLogProb, byEntropy *graph.Node) []*graph.Node {
	grads := newGradientNodes(w)
	hd := head{t: l.net, weight: w.head, legal: b.legal, inverse: b.inverse}
	dx := hd.pull(grads, w.norm, saved, b.target, entropy, logSum, byLogProb, byEntropy)
	l.pullLayers(grads, saved, dx, b)
	return grads.by
}

// pullLayers propagates the derivative by the last layer's output back to the embedding
// and sets the gradients of the tensors that are trained. It adds to the embedding's gradient
// if there is one already, from a tied head.
func (l *Learner) pullLayers(grads gradientNodes, saved saved, dx *graph.Node, b batchNodes) {
	n := l.sh.MicroBatch * l.sh.Sequence
	for i, w := range slices.Backward(grads.w.layers) {
		a := l.activations(saved, w, i, dx, b.sequences)
		dx = l.net.pullLayer(grads, w, a, dx, b.sequences)
	}
	table := grads.w.embedding
	if !grads.has(table) {
		return
	}
	if id, ok := l.c.padding(); ok {
		padded := graph.Equal(b.flat, scalar(b.flat, float32(id)))
		padded = graph.BroadcastToShape(graph.Reshape(padded, n, 1), dx.Shape())
		dx = graph.Where(padded, scalar(dx, 0), dx)
	}
	// The gradient of an embedding's row is the sum over the positions of its token.
	sum := graph.Zeros(dx.Graph(), shapes.Make(l.net.wide, table.Shape().Dimensions...))
	grads.add(table, graph.ScatterSum(sum, graph.Reshape(b.flat, n, 1), l.net.widen(dx), false, false))
}

// addUp adds gradients and metrics to the sums so far, in the memory of the sums. It declares
// as inputs whether this micro-batch is the first, whose sums are not read, and the sums. The
// metrics that are maxima are combined by maximum instead of sum.
func (l *Learner) addUp(in *inputs, grads []*graph.Node, metrics *graph.Node) []*graph.Node {
	first := in.next(dtypes.Bool)
	for i, t := range l.c.Tensors() {
		sum := in.donated(i, l.net.wide, t.Shape...)
		grads[i] = graph.Where(first, grads[i], graph.Add(sum, grads[i]))
	}
	before := in.next(l.net.wide, metrics.Shape().Size())
	total, most := graph.Add(before, metrics), graph.Max(before, metrics)
	place := graph.Iota(in.g, metrics.Shape(), 0)
	total = graph.Where(l.maxima(place), most, total)
	return append(grads, graph.Where(first, metrics, total))
}

// maxima marks the places of the metrics that are maxima.
func (l *Learner) maxima(place *graph.Node) *graph.Node {
	var out *graph.Node
	for i, m := range l.layout.Metrics {
		if !m.Largest {
			continue
		}
		at := graph.Equal(place, scalar(place, float32(i)))
		if out != nil {
			at = graph.LogicalOr(out, at)
		}
		out = at
	}
	if out == nil {
		return graph.Equal(place, scalar(place, -1)) // none
	}
	return out
}

// savedInputs declares savedOutputs as inputs of the backward program.
func (l *Learner) savedInputs(in *inputs) saved {
	s := saved{layers: make([]activations, l.c.Layers)}
	for _, tensor := range l.scorer.savedTensors(&s) {
		*tensor.of = in.next(tensor.dtype, l.sh.MicroBatch*l.sh.Sequence, tensor.width)
	}
	return s
}

// activations are those of layer i: what was kept, or computed again from the layer's input.
// Either is to be read only when dy, the derivative by the layer's output, has been computed:
// see after. What is read beside derivatives alone is so anyway.
func (l *Learner) activations(s saved, w layer, i int, dy *graph.Node, of sequences) activations {
	a, t := s.layers[i], l.net
	if !l.sh.Keep {
		_, a = t.layer(w, t.after(a.x, dy), of)
		return a
	}
	for _, x := range []**graph.Node{&a.x, &a.query, &a.key, &a.value, &a.middle, &a.gate} {
		*x = t.after(*x, dy)
	}
	return a
}
