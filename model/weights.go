package model

import (
	"slices"
	"strconv"

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

// layer are a transformer block's tensors.
type layer struct {
	inputNorm, postNorm    *graph.Node
	query, key, value, out linear
	gate, up, down         linear
}

// linear is a linear map: a weight [out, in], a bias [out] or nil; in a family that normalizes
// heads, the scale [HeadDim] of the norm of each head of the output, or nil; and adapters
// a [rank, in] and b [out, rank], or nil.
type linear struct{ weight, bias, headNorm, a, b *graph.Node }

// layerTensor is a tensor of a layer: its name after the layer's, its shape, and its place
// in a program.
type layerTensor struct {
	name  string
	shape []int
	of    func(*layer) **graph.Node
}

// projection is a linear map of a layer: its name after the layer's, its widths, whether it
// has a bias, the name of its heads' norm if it has one, and its place in a program.
type projection struct {
	name     string
	out, in  int
	bias     bool
	headNorm string
	of       func(*layer) *linear
}

// projections lists the linear maps of a layer.
func (c Config) projections() []projection {
	d, ff := c.HiddenSize, c.IntermediateSize
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	biases, queryNorm, keyNorm := c.family().biases, "", ""
	if c.family().headNorms {
		queryNorm, keyNorm = "self_attn.q_norm", "self_attn.k_norm"
	}
	return []projection{
		{"self_attn.q_proj", q, d, biases, queryNorm, func(l *layer) *linear { return &l.query }},
		{"self_attn.k_proj", kv, d, biases, keyNorm, func(l *layer) *linear { return &l.key }},
		{"self_attn.v_proj", kv, d, biases, "", func(l *layer) *linear { return &l.value }},
		{"self_attn.o_proj", d, q, false, "", func(l *layer) *linear { return &l.out }},
		{"mlp.gate_proj", ff, d, false, "", func(l *layer) *linear { return &l.gate }},
		{"mlp.up_proj", ff, d, false, "", func(l *layer) *linear { return &l.up }},
		{"mlp.down_proj", d, ff, false, "", func(l *layer) *linear { return &l.down }},
	}
}

// layerTensors lists the tensors of a layer in the order of Config.Tensors.
func (c Config) layerTensors() []layerTensor {
	var ts []layerTensor
	norm := func(name string, of func(*layer) **graph.Node) {
		ts = append(ts, layerTensor{name + ".weight", []int{c.HiddenSize}, of})
	}
	norm("input_layernorm", func(l *layer) **graph.Node { return &l.inputNorm })
	for _, p := range c.projections() {
		if p.name == "mlp.gate_proj" {
			norm("post_attention_layernorm", func(l *layer) **graph.Node { return &l.postNorm })
		}
		ts = append(ts, layerTensor{p.name + ".weight", []int{p.out, p.in}, func(l *layer) **graph.Node { return &p.of(l).weight }})
		if p.bias {
			ts = append(ts, layerTensor{p.name + ".bias", []int{p.out}, func(l *layer) **graph.Node { return &p.of(l).bias }})
		}
		if p.headNorm != "" {
			ts = append(ts, layerTensor{p.headNorm + ".weight", []int{c.HeadDim}, func(l *layer) **graph.Node { return &p.of(l).headNorm }})
		}
	}
	return ts
}

// layerName is how the names of layer i's tensors begin.
func layerName(i int) string { return "model.layers." + strconv.Itoa(i) + "." }

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
