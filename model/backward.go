package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Places in the metrics vector that the micro-batches add up.
const (
	metricPolicy = iota
	metricEntropy
	metricKL
	metricClip
	metricRatio // a maximum, not a sum
	metricCount
)

// Places in the loss's knobs vector.
const (
	knobInverseN = iota
	knobLow      // 1 − ClipLow
	knobHigh     // 1 + ClipHigh
	knobEntropy
	knobSupervised // 1 or 0
	knobCount
)

func lossKnobs(k Settings, weight float64, supervised bool) []float32 {
	v := make([]float32, knobCount)
	v[knobInverseN] = float32(1 / weight)
	v[knobLow], v[knobHigh] = 1-k.ClipLow, 1+k.ClipHigh
	v[knobEntropy] = k.EntropyCoefficient
	if supervised {
		v[knobSupervised] = 1
	}
	return v
}

// element takes one value of a vector, as a scalar.
func element(v *graph.Node, i int) *graph.Node {
	return graph.Reshape(graph.Slice(v, graph.AxisRange(i, i+1)))
}

// loss is the loss of the tokens and its derivatives by log-prob and entropy.
type loss struct {
	byLogProb, byEntropy *graph.Node // [n]
	metrics              *graph.Node // [metricCount]
}

// tokenLoss computes the clipped surrogate, or the negative log-likelihood where
// the knob says so, from log-probs, entropies, mask, old log-probs and
// advantages, all [n].
func tokenLoss(lp, entropy, mask, old, advantage, knobs *graph.Node) loss {
	zero, one := scalar(lp, 0), scalar(lp, 1)
	weight := graph.Mul(mask, element(knobs, knobInverseN))
	used := graph.GreaterThan(mask, zero)
	supervised := graph.GreaterThan(element(knobs, knobSupervised), zero)
	pick := func(ifSupervised, otherwise *graph.Node) *graph.Node {
		return graph.Where(graph.BroadcastToShape(supervised, otherwise.Shape()), ifSupervised, otherwise)
	}
	keep := func(x *graph.Node) *graph.Node { return graph.Where(used, x, zero) }

	lp, entropy = keep(lp), keep(entropy)
	logRatio := pick(zero, keep(graph.Sub(lp, old)))
	ratio := graph.Exp(logRatio)
	plain := graph.Mul(ratio, advantage)
	clipped := graph.Mul(graph.Clip(ratio, element(knobs, knobLow), element(knobs, knobHigh)), advantage)
	objective := pick(lp, graph.Min(plain, clipped))
	slope := pick(one, graph.Where(graph.LessOrEqual(plain, clipped), plain, zero))

	mean := func(x *graph.Node) *graph.Node {
		return graph.Reshape(graph.ReduceAllSum(graph.Mul(keep(x), weight)), 1)
	}
	isClipped := graph.ConvertDType(graph.LessThan(clipped, plain), dtypes.Float32)
	off := graph.Sub(ratio, one)
	metrics := graph.Concatenate([]*graph.Node{
		graph.Neg(mean(objective)),
		mean(entropy),
		mean(graph.Sub(off, logRatio)),
		mean(pick(zero, isClipped)),
		graph.Reshape(graph.ReduceAllMax(graph.Abs(keep(off))), 1),
	}, 0)
	return loss{
		byLogProb: graph.Neg(graph.Mul(keep(slope), weight)),
		byEntropy: graph.Neg(graph.Mul(weight, element(knobs, knobEntropy))),
		metrics:   metrics,
	}
}

// buildBackward takes what the forward program took and gave, the loss's data,
// and the sums so far; it gives the sums with this micro-batch added. Each layer is
// computed again from its saved input, so that only one layer's activations are
// alive at a time, on every platform.
func (p *Programs) buildBackward(in *inputs) []*graph.Node {
	ts := p.c.Tensors()
	n, d := p.sh.MicroBatch*p.sh.Sequence, p.c.HiddenSize
	params := in.tensors(ts)
	b := p.batchInputs(in)
	lp, entropy, logSum := in.next(dtypes.Float32, n), in.next(dtypes.Float32, n), in.next(dtypes.Float32, n)
	saved := make([]*graph.Node, p.c.Layers+1)
	for i := range saved {
		saved[i] = in.next(p.net.dtype, n, d)
	}
	mask, old, advantage := in.next(dtypes.Float32, n), in.next(dtypes.Float32, n), in.next(dtypes.Float32, n)
	knobs, first := in.next(dtypes.Float32, knobCount), in.next(dtypes.Bool)
	sums, metrics := in.tensors(ts), in.next(dtypes.Float32, metricCount)

	l := tokenLoss(lp, entropy, mask, old, advantage, knobs)
	grads := make([]*graph.Node, len(ts))
	hd := head{t: p.net, weight: params[p.c.head()], legal: b.legal, inverse: b.inverse}
	dx, dnorm, dhead := hd.gradients(saved[p.c.Layers], params[p.c.finalNorm()], b.target, entropy, logSum, l.byLogProb, l.byEntropy)
	grads[p.c.finalNorm()], grads[p.c.head()] = dnorm, dhead
	for i := p.c.Layers - 1; i >= 0; i-- {
		x, w := saved[i], p.c.layerOf(params, i)
		if p.net.barrier {
			x = graph.SchedulingBarrier(x, dx)
		}
		y := p.net.layer(w, x, p.sh.MicroBatch, p.sh.Sequence, b.cos, b.sin)
		g := pullback(y, dx, append([]*graph.Node{x}, w...)...)
		dx = g[0]
		copy(p.c.layerOf(grads, i), g[1:])
	}
	// The embedding's rows collect what came down to their tokens.
	table := graph.ScatterSum(graph.Zeros(in.g, params[0].Shape()), graph.Reshape(b.flat, n, 1), float(dx), false, false)
	if grads[0] != nil {
		table = graph.Add(grads[0], table)
	}
	grads[0] = table

	for i := range grads {
		grads[i] = graph.Where(first, grads[i], graph.Add(sums[i], grads[i]))
	}
	total := graph.Add(metrics, l.metrics)
	most := graph.Max(metrics, l.metrics)
	place := graph.Iota(in.g, metrics.Shape(), 0)
	total = graph.Where(graph.Equal(place, scalar(place, metricRatio)), most, total)
	return append(grads, graph.Where(first, l.metrics, total))
}
