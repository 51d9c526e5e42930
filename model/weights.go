package model

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// weights are a model's tensors in a program, by what they are for.
type weights struct {
	c         Config
	embedding *graph.Node
	layers    []layer
	norm      *graph.Node // the last one
	head      *graph.Node // the embedding if it is tied; nil in a critic
	value     linear      // a critic's head
	// all are the tensors of Config.Frozen and Config.Tensors, in their order; trained are
	// the latter.
	all, trained []*graph.Node
}

// weights finds the places of nodes in the order of Config.Frozen and Config.Tensors.
func (c Config) weights(all []*graph.Node) weights {
	w := weights{c: c, all: all, trained: all[len(c.Frozen()):], layers: make([]layer, c.Layers)}
	rest := all
	next := func() (n *graph.Node) {
		n, rest = rest[0], rest[1:]
		return n
	}
	w.embedding = next()
	of := c.layerTensors()
	for i := range w.layers {
		for _, t := range of {
			*t.of(&w.layers[i]) = next()
		}
	}
	w.norm = next()
	switch {
	case c.ValueHead:
	case c.TieEmbeddings:
		w.head = w.embedding
	default:
		w.head = next()
	}
	if c.Adapted() {
		for i := range w.layers {
			for j, p := range c.projections() {
				if c.LoRA.Targets.has(j) {
					at := p.of(&w.layers[i])
					at.a, at.b = next(), next()
				}
			}
		}
	}
	if c.ValueHead {
		w.value.weight, w.value.bias = next(), next()
	}
	return w
}

// weights declares the model's tensors as inputs, in the dtypes in which the programs read
// them: those of its base model, and those that are trained.
func (t network) weights(in *inputs) weights {
	var all []*graph.Node
	for _, s := range t.c.Frozen() {
		all = append(all, in.next(frozenDType(s, t.dtype), s.Shape...))
	}
	for i, s := range t.c.Tensors() {
		all = append(all, in.next(t.readDType(i, s), s.Shape...))
	}
	return t.c.weights(all)
}

// gradientNodes are the gradients by a model's trained tensors, in the order of Config.Tensors.
type gradientNodes struct {
	w  weights
	by []*graph.Node
}

func newGradientNodes(w weights) gradientNodes {
	return gradientNodes{w, make([]*graph.Node, len(w.trained))}
}

// has reports whether there is a gradient by a tensor: whether it is trained.
func (g gradientNodes) has(tensor *graph.Node) bool { return slices.Contains(g.w.trained, tensor) }

// add adds to the gradient by a tensor. There is none by a frozen one.
func (g gradientNodes) add(tensor, by *graph.Node) {
	for i, t := range g.w.trained {
		switch {
		case t != tensor:
		case g.by[i] == nil:
			g.by[i] = by
		default:
			g.by[i] = graph.Add(g.by[i], by)
		}
	}
}

// readDType is the dtype in which the programs read tensor i of Config.Tensors: that of its
// copy, or wide if they read the tensor itself. Matrices that are trained whole have copies in
// bfloat16. Adapters and a critic's head are computed with in wide.
func (t network) readDType(i int, s TensorShape) dtypes.DType {
	if t.dtype != dtypes.BFloat16 || t.c.Adapted() || t.c.ValueHead && i >= t.c.valueHead() || frozenDType(s, t.dtype) != t.dtype {
		return t.wide
	}
	return t.dtype
}

// frozenDType is the dtype of a frozen tensor on a device: matrices have the compute dtype.
func frozenDType(t TensorShape, compute dtypes.DType) dtypes.DType {
	if len(t.Shape) == 2 || compute == dtypes.Float64 {
		return compute
	}
	return dtypes.Float32
}

// row is row k of the weight, [1, in], and number is number k of the bias, [1].
func (l linear) row(k int) *graph.Node { return graph.Slice(l.weight, graph.AxisRange(k, k+1)) }

func (l linear) number(k int) *graph.Node { return graph.Slice(l.bias, graph.AxisRange(k, k+1)) }
