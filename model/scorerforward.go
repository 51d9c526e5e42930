package model

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// scored holds the inputs and outputs of a forward pass on the device.
type scored struct {
	ids, inverse compute.Buffer // inverse is nil for a critic, which has no temperature
	// scores are the policy's log-probs, entropies and log-sums, or the critic's values,
	// each [MicroBatch·Sequence] float32. squares, with Shapes.SumSquares, are one more, which no
	// other program reads. saved are the rest of the program's outputs.
	scores, squares, saved []compute.Buffer
}

func (f *scored) free() {
	free([]compute.Buffer{f.ids, f.inverse})
	free(f.scores)
	free(f.squares)
	free(f.saved)
}

// inputs are the inputs of the forward program after the parameters.
func (f *scored) inputs(s *Scorer) []compute.Buffer {
	in := append([]compute.Buffer{f.ids}, s.rope.on(s.k)...)
	if s.c.ValueHead {
		return in
	}
	return append(in, s.legal.on(s.k)[0], f.inverse)
}

// forward runs the forward program. The caller holds run.
func (s *Scorer) forward(st *State, ids []int32, temperature float32) (f *scored, err error) {
	prog, err := s.program(kindForward)
	if err != nil {
		return nil, err
	}
	args, err := s.weights(st)
	if err != nil {
		return nil, err
	}
	f = &scored{}
	if f.ids, err = upload(s.device, s.k, ids, s.sh.MicroBatch, s.sh.Sequence); err != nil {
		return nil, err
	}
	if !s.c.ValueHead {
		if f.inverse, err = upload(s.device, s.k, []float32{1 / temperature}); err != nil {
			f.free()
			return nil, err
		}
	}
	out, err := prog.on(s.k, append(args, f.inputs(s)...)...)
	if err != nil {
		f.free()
		return nil, err
	}
	n := s.scoreCount()
	f.scores, f.saved = out[:n], out[n:]
	if s.sh.SumSquares {
		f.squares, f.saved = f.saved[:1], f.saved[1:]
	}
	return f, nil
}

// scoreCount is how many scores the forward program gives, without the sums of squares.
func (s *Scorer) scoreCount() int {
	if s.c.ValueHead {
		return 1
	}
	return 3
}

// buildForward is the policy's forward program. Its inputs are the parameters, ids [b, T],
// rotary tables, legal ids and the inverse temperature; its outputs are log-probs,
// entropies, log-sums and, with Shapes.SumSquares, sums of squares of the tokens that follow,
// [b·T], and what is saved for the backward program.
func (s *Scorer) buildForward(in *inputs) []*graph.Node {
	w := s.net.weights(in)
	b := s.batchInputs(in)
	saved := s.layers(w, b)
	hd := head{t: s.net, weight: w.head, legal: b.legal, inverse: b.inverse, squares: s.sh.SumSquares}
	scores, products := hd.score(saved.last, w.norm, b.target)
	saved.logits = products
	return append(scores, s.savedOutputs(saved)...)
}

// layers computes the embedding and all layers.
func (s *Scorer) layers(w weights, b batchNodes) saved {
	x := saved{layers: make([]activations, s.c.Layers), last: s.net.embed(w.embedding, b.flat)}
	for i, l := range w.layers {
		x.last, x.layers[i] = s.net.layer(l, x.last, b.sequences)
	}
	return x
}

// batchNodes are the inputs that the forward and the backward program share.
type batchNodes struct {
	sequences
	flat, target   *graph.Node // [b·T] int32
	legal, inverse *graph.Node // a critic has neither legal ids nor a temperature
}

func (s *Scorer) batchInputs(in *inputs) batchNodes {
	rows, width, half := s.sh.MicroBatch, s.sh.Sequence, s.c.HeadDim/2
	ids := in.next(dtypes.Int32, rows, width)
	// The last position has no token to predict; its target is never read.
	next := graph.Concatenate([]*graph.Node{
		graph.Slice(ids, graph.AxisRange(), graph.AxisRange(1, width)),
		graph.Slice(ids, graph.AxisRange(), graph.AxisRange(0, 1)),
	}, 1)
	table := func() *graph.Node { return graph.Reshape(in.next(s.net.wide, width, half), 1, width, half) }
	b := batchNodes{
		flat: graph.Reshape(ids, rows*width), target: graph.Reshape(next, rows*width),
		sequences: sequences{rows: rows, tokens: width, cos: table(), sin: table()},
	}
	if !s.c.ValueHead {
		b.legal, b.inverse = in.next(s.net.wide, s.c.VocabSize), in.next(s.net.wide)
	}
	return b
}

// savedTensors lists what is saved, in the order of the programs' outputs and inputs: the input
// of each layer and the output of the last; with Shapes.Keep all activations, and the logits
// where the head computes all of them at once. A frozen network saves nothing.
func (s *Scorer) savedTensors(x *saved) []savedTensor {
	if s.sh.Frozen {
		return nil
	}
	var out []savedTensor
	for i := range x.layers {
		all := x.layers[i].tensors(s.net)
		if !s.sh.Keep {
			all = all[:1]
		}
		out = append(out, all...)
	}
	out = append(out, savedTensor{&x.last, s.net.dtype, s.c.HiddenSize})
	if s.sh.Keep && !s.c.ValueHead && len(s.net.chunks(s.sh.MicroBatch*s.sh.Sequence)) == 1 {
		out = append(out, savedTensor{&x.logits, s.net.wide, s.c.VocabSize})
	}
	return out
}

// savedOutputs are the outputs of the forward program besides the scores.
func (s *Scorer) savedOutputs(x saved) []*graph.Node {
	var out []*graph.Node
	for _, tensor := range s.savedTensors(&x) {
		out = append(out, *tensor.of)
	}
	return out
}
