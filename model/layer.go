package model

import (
	"strconv"

	"github.com/gomlx/gomlx/core/graph"
)

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
