package model

import (
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
	// trained are the tensors of Config.Tensors, in their order.
	trained []*graph.Node
}

// layer are a transformer block's tensors.
type layer struct {
	inputNorm, postNorm    *graph.Node
	query, key, value, out linear
	gate, up, down         linear
}

// linear is a linear map: a weight [out, in], a bias [out] or nil, and in a family that
// normalizes heads, the scale [HeadDim] of the norm of each head of the output, or nil.
type linear struct{ weight, bias, headNorm *graph.Node }

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

// weights finds the places of nodes in the order of Config.Tensors.
func (c Config) weights(trained []*graph.Node) weights {
	w := weights{c: c, trained: trained, layers: make([]layer, c.Layers)}
	rest := trained
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
		w.value.weight, w.value.bias = next(), next()
	case c.TieEmbeddings:
		w.head = w.embedding
	default:
		w.head = next()
	}
	return w
}

// weights declares the model's tensors as inputs.
func (t network) weights(in *inputs) weights { return t.c.weights(in.tensors(t.wide, t.c.Tensors())) }

// ofLayer are the trained tensors of layer i among nodes in the order of Config.Tensors.
func (c Config) ofLayer(all []*graph.Node, i int) []*graph.Node {
	n := len(c.layerTensors())
	return all[1+i*n : 1+(i+1)*n]
}

// gradientNodes are the gradients by a model's trained tensors, in the order of Config.Tensors.
type gradientNodes struct {
	w  weights
	by []*graph.Node
}

func newGradientNodes(w weights) gradientNodes {
	return gradientNodes{w, make([]*graph.Node, len(w.trained))}
}

// add adds to the gradient of a tensor.
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
