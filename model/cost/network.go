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

// maps are the widths of the inputs and outputs of LinearMaps.
func (n Network) maps() [len(LinearMaps)][2]int64 {
	hidden, inner := int64(n.HiddenSize), int64(n.IntermediateSize)
	queries, keys := int64(n.Heads)*n.headDim(), int64(n.KVHeads)*n.headDim()
	return [...][2]int64{
		{hidden, queries}, {hidden, keys}, {hidden, keys}, {queries, hidden}, // the attention
		{hidden, inner}, {hidden, inner}, {inner, hidden}, // the SwiGLU
	}
}

// layer are the numbers of weights of a layer's linear maps.
func (n Network) layer() (out []int64) {
	for _, w := range n.maps() {
		out = append(out, w[0]*w[1])
	}
	return out
}

// tables are the numbers of weights of the embedding and, unless it is tied, of the head.
func (n Network) tables() []int64 {
	table := int64(n.VocabSize) * int64(n.HiddenSize)
	if n.Tied {
		return []int64{table}
	}
	return []int64{table, table}
}

// matrices is the number of weights of all matrices.
func (n Network) matrices() int64 { return sum(n.tables()) + int64(n.Layers)*sum(n.layer()) }

// Times is how often another network's weights go into this one's, rounded up: what a token costs, in tokens of the other.
func (n Network) Times(other Network) int64 {
	of := max(other.Parameters(), 1)
	return (n.Parameters() + of - 1) / of
}

// Parameters is the number of weights: embedding, per layer the attention with its biases
// and norms, the SwiGLU layer and two norms, a last norm, and the head unless tied.
func (n Network) Parameters() int64 {
	layer := 2 * int64(n.HiddenSize)
	if !n.Unbiased {
		layer += int64(n.Heads+2*n.KVHeads) * n.headDim()
	}
	if n.HeadNorms {
		layer += 2 * n.headDim()
	}
	return n.matrices() + int64(n.Layers)*layer + int64(n.HiddenSize)
}

func sum(numbers []int64) (all int64) {
	for _, n := range numbers {
		all += n
	}
	return all
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
	return int64(n.Layers) * sum(n.adapted(*a))
}

// Trained is the number of weights that are trained: those of adapters or, if a is nil, all.
func (n Network) Trained(a *Adapters) int64 {
	if a == nil {
		return n.Parameters()
	}
	return n.Adapters(a)
}

// adapted are the numbers of weights of the matrices of a layer's adapters.
func (n Network) adapted(a Adapters) (out []int64) {
	for i, w := range n.maps() {
		if slices.Contains(a.Targets, LinearMaps[i]) {
			out = append(out, int64(a.Rank)*w[0], int64(a.Rank)*w[1])
		}
	}
	return out
}
