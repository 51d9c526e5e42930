// Package cost computes what a run needs of a device: bytes of memory, operations and bytes that are
// copied. It knows the arithmetic of package model's networks and programs, and neither a device nor a
// spec: a [Job] has the numbers that a spec gives. Everything is an estimate from these numbers alone.
// The package is pure.
package cost

import "slices"

// float32Bytes are the bytes of a float32.
const float32Bytes = 4

// Network is the shape of a network, on which its sizes depend. Widths are numbers of a token.
type Network struct {
	Layers           int
	HiddenSize       int
	IntermediateSize int
	Heads            int
	KVHeads          int
	// HeadDim is the width of a head; HiddenSize / Heads if 0.
	HeadDim   int
	VocabSize int
	// Tied says that the output head is the embedding.
	Tied bool
	// Unbiased says that queries, keys and values have no biases (Qwen3, Llama), HeadNorms that
	// each head's queries and keys have a norm (Qwen3).
	Unbiased, HeadNorms bool
}

func (n Network) headDim() int64 {
	if n.HeadDim > 0 {
		return int64(n.HeadDim)
	}
	return int64(n.HiddenSize / max(n.Heads, 1))
}

// Parameters is the number of weights: embedding, per layer the attention with its biases
// and norms, the SwiGLU layer and two norms, a last norm, and the head unless tied.
func (n Network) Parameters() int64 {
	hidden, intermediate := int64(n.HiddenSize), int64(n.IntermediateSize)
	queries, keys := int64(n.Heads)*n.headDim(), int64(n.KVHeads)*n.headDim()
	attention := hidden*(queries+2*keys) + queries*hidden
	if !n.Unbiased {
		attention += queries + 2*keys
	}
	if n.HeadNorms {
		attention += 2 * n.headDim()
	}
	layer := attention + 3*hidden*intermediate + 2*hidden
	embedding := int64(n.VocabSize) * hidden
	if !n.Tied {
		embedding *= 2
	}
	return embedding + int64(n.Layers)*layer + hidden
}

// LargestTensor is the number of weights of the largest tensor: the embedding, or a matrix of
// the SwiGLU.
func (n Network) LargestTensor() int64 {
	return int64(n.HiddenSize) * int64(max(n.VocabSize, n.IntermediateSize))
}

// LinearMaps are the linear maps of a layer in its order, by the names that PEFT matches.
var LinearMaps = [...]string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

// Adapters are pairs of matrices of a rank beside some of the linear maps of each layer. They are trained
// in place of the network's own weights.
type Adapters struct {
	Rank int
	// Targets are names of LinearMaps.
	Targets []string
}

// Adapters is the number of weights of adapters; 0 if a is nil: then all weights are trained.
func (n Network) Adapters(a *Adapters) int64 {
	if a == nil {
		return 0
	}
	var widths int64
	for _, w := range n.adapted(*a) {
		widths += w[0] + w[1]
	}
	return int64(n.Layers) * int64(a.Rank) * widths
}

// Trained is the number of weights that are trained: those of adapters or, if a is nil, all.
func (n Network) Trained(a *Adapters) int64 {
	if a == nil {
		return n.Parameters()
	}
	return n.Adapters(a)
}

// largestAdapter is the number of weights of the largest tensor of the adapters.
func (n Network) largestAdapter(a Adapters) int64 {
	var widest int64
	for _, w := range n.adapted(a) {
		widest = max(widest, w[0], w[1])
	}
	return int64(a.Rank) * widest
}

// adapted are the widths of the inputs and outputs of a layer's targets.
func (n Network) adapted(a Adapters) (out [][2]int64) {
	hidden, inner := int64(n.HiddenSize), int64(n.IntermediateSize)
	queries, keys := int64(n.Heads)*n.headDim(), int64(n.KVHeads)*n.headDim()
	all := [len(LinearMaps)][2]int64{{hidden, queries}, {hidden, keys}, {hidden, keys}, {queries, hidden}, {hidden, inner}, {hidden, inner}, {inner, hidden}}
	for i, name := range LinearMaps {
		if slices.Contains(a.Targets, name) {
			out = append(out, all[i])
		}
	}
	return out
}
