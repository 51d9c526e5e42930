package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// activations are what the backward pass of a layer reads of its forward pass, [n, width].
// What it takes little to compute of them is not among them: norms, rotations, the weights of
// the attention, the SwiGLU's product.
type activations struct {
	x                 *graph.Node // the layer's input
	query, key, value *graph.Node // what their linear maps give
	attended          *graph.Node // the attention's output
	middle            *graph.Node // x, with the attention's output added
	gate, up          *graph.Node // what their linear maps give
}

// saved are the tensors that the forward program leaves to the backward program, besides the
// scores.
type saved struct {
	layers []activations
	last   *graph.Node // [n, d], the last layer's output
	logits *graph.Node // [n, V] wide, the products of the head; nil: to be computed again
}

// savedTensor is a tensor of saved, [MicroBatch·Sequence, width].
type savedTensor struct {
	of    **graph.Node
	dtype dtypes.DType
	width int
}

// tensors lists a layer's activations, its input first.
func (a *activations) tensors(t network) []savedTensor {
	hidden, queries, keys, inner := t.c.HiddenSize, t.c.Heads*t.c.HeadDim, t.c.KVHeads*t.c.HeadDim, t.c.IntermediateSize
	return []savedTensor{
		{&a.x, t.dtype, hidden},
		{&a.query, t.dtype, queries}, {&a.key, t.dtype, keys}, {&a.value, t.dtype, keys},
		{&a.attended, t.dtype, queries}, {&a.middle, t.dtype, hidden},
		{&a.gate, t.dtype, inner}, {&a.up, t.dtype, inner},
	}
}

// savedTensors lists what is saved, in the order of the programs' outputs and inputs: the input
// of each layer and the output of the last; with Shapes.Keep all activations, and the logits
// where the head computes all of them at once.
func (p *Programs) savedTensors(s *saved) []savedTensor {
	var out []savedTensor
	for i := range s.layers {
		all := s.layers[i].tensors(p.net)
		if !p.sh.Keep {
			all = all[:1]
		}
		out = append(out, all...)
	}
	out = append(out, savedTensor{&s.last, p.net.dtype, p.c.HiddenSize})
	if p.sh.Keep && !p.c.ValueHead && len(p.net.chunks(p.sh.MicroBatch*p.sh.Sequence)) == 1 {
		out = append(out, savedTensor{&s.logits, p.net.wide, p.c.VocabSize})
	}
	return out
}

// savedOutputs are the outputs of the forward program besides the scores.
func (p *Programs) savedOutputs(s saved) []*graph.Node {
	var out []*graph.Node
	for _, tensor := range p.savedTensors(&s) {
		out = append(out, *tensor.of)
	}
	return out
}

// savedInputs declares savedOutputs as inputs of the backward program.
func (p *Programs) savedInputs(in *inputs) saved {
	s := saved{layers: make([]activations, p.c.Layers)}
	for _, tensor := range p.savedTensors(&s) {
		*tensor.of = in.next(tensor.dtype, p.sh.MicroBatch*p.sh.Sequence, tensor.width)
	}
	return s
}

// activations are those of layer i: what was kept, or computed again from the layer's input.
// Either is to be read only when dy, the derivative by the layer's output, has been computed:
// see after. What is read beside derivatives alone is so anyway.
func (p *Programs) activations(s saved, w layer, i int, dy *graph.Node, of sequences) activations {
	a, t := s.layers[i], p.net
	if !p.sh.Keep {
		_, a = t.layer(w, t.after(a.x, dy), of)
		return a
	}
	for _, x := range []**graph.Node{&a.x, &a.query, &a.key, &a.value, &a.middle, &a.gate} {
		*x = t.after(*x, dy)
	}
	return a
}
