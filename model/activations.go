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
