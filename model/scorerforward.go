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
	// each [MicroBatch·Sequence] float32. saved are the rest of the program's outputs.
	scores, saved []compute.Buffer
}

func (f *scored) free() {
	free([]compute.Buffer{f.ids, f.inverse})
	free(f.scores)
	free(f.saved)
}

// inputs are the inputs of the forward program after the parameters.
func (f *scored) inputs(p *Scorer) []compute.Buffer {
	in := append([]compute.Buffer{f.ids}, p.rope.on(p.k)...)
	if p.c.ValueHead {
		return in
	}
	return append(in, p.legal.on(p.k)[0], f.inverse)
}

// forward runs the forward program. The caller holds run.
func (p *Scorer) forward(s *State, ids []int32, temperature float32) (f *scored, err error) {
	prog, err := p.program(kindForward)
	if err != nil {
		return nil, err
	}
	args, err := p.weights(s)
	if err != nil {
		return nil, err
	}
	f = &scored{}
	if f.ids, err = upload(p.device, p.k, ids, p.sh.MicroBatch, p.sh.Sequence); err != nil {
		return nil, err
	}
	if !p.c.ValueHead {
		if f.inverse, err = upload(p.device, p.k, []float32{1 / temperature}); err != nil {
			f.free()
			return nil, err
		}
	}
	out, err := prog.on(p.k, append(args, f.inputs(p)...)...)
	if err != nil {
		f.free()
		return nil, err
	}
	n := p.scoreCount()
	f.scores, f.saved = out[:n], out[n:]
	return f, nil
}

// scoreCount is how many scores the forward program gives.
func (p *Scorer) scoreCount() int {
	if p.c.ValueHead {
		return 1
	}
	return 3
}

// buildForward is the policy's forward program. Its inputs are the parameters, ids [b, T],
// rotary tables, legal ids and the inverse temperature; its outputs are log-probs,
// entropies and log-sums of the tokens that follow, [b·T], and what is saved for the backward
// program.
func (p *Scorer) buildForward(in *inputs) []*graph.Node {
	w := p.net.weights(in)
	b := p.batchInputs(in)
	saved := p.layers(w, b)
	hd := head{t: p.net, weight: w.head, legal: b.legal, inverse: b.inverse}
	lp, ent, sum, products := hd.score(saved.last, w.norm, b.target)
	saved.logits = products
	return append([]*graph.Node{lp, ent, sum}, p.savedOutputs(saved)...)
}

// layers computes the embedding and all layers.
func (p *Scorer) layers(w weights, b batchNodes) saved {
	s := saved{layers: make([]activations, p.c.Layers), last: p.net.embed(w.embedding, b.flat)}
	for i, l := range w.layers {
		s.last, s.layers[i] = p.net.layer(l, s.last, b.sequences)
	}
	return s
}

// batchNodes are the inputs that the forward and the backward program share.
type batchNodes struct {
	sequences
	flat, target   *graph.Node // [b·T] int32
	legal, inverse *graph.Node // a critic has neither legal ids nor a temperature
}

func (p *Scorer) batchInputs(in *inputs) batchNodes {
	rows, width, half := p.sh.MicroBatch, p.sh.Sequence, p.c.HeadDim/2
	ids := in.next(dtypes.Int32, rows, width)
	// The last position has no token to predict; its target is never read.
	next := graph.Concatenate([]*graph.Node{
		graph.Slice(ids, graph.AxisRange(), graph.AxisRange(1, width)),
		graph.Slice(ids, graph.AxisRange(), graph.AxisRange(0, 1)),
	}, 1)
	table := func() *graph.Node { return graph.Reshape(in.next(p.net.wide, width, half), 1, width, half) }
	b := batchNodes{
		flat: graph.Reshape(ids, rows*width), target: graph.Reshape(next, rows*width),
		sequences: sequences{rows: rows, tokens: width, cos: table(), sin: table()},
	}
	if !p.c.ValueHead {
		b.legal, b.inverse = in.next(p.net.wide, p.c.VocabSize), in.next(p.net.wide)
	}
	return b
}

// savedTensors lists what is saved, in the order of the programs' outputs and inputs: the input
// of each layer and the output of the last; with Shapes.Keep all activations, and the logits
// where the head computes all of them at once.
func (p *Scorer) savedTensors(s *saved) []savedTensor {
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
func (p *Scorer) savedOutputs(s saved) []*graph.Node {
	var out []*graph.Node
	for _, tensor := range p.savedTensors(&s) {
		out = append(out, *tensor.of)
	}
	return out
}
