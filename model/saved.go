package model

import "github.com/gomlx/gomlx/core/graph"

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

// savedInputs declares savedOutputs as inputs of the backward program.
func (p *Learner) savedInputs(in *inputs) saved {
	s := saved{layers: make([]activations, p.c.Layers)}
	for _, tensor := range p.scorer.savedTensors(&s) {
		*tensor.of = in.next(tensor.dtype, p.sh.MicroBatch*p.sh.Sequence, tensor.width)
	}
	return s
}

// activations are those of layer i: what was kept, or computed again from the layer's input.
// Either is to be read only when dy, the derivative by the layer's output, has been computed:
// see after. What is read beside derivatives alone is so anyway.
func (p *Learner) activations(s saved, w layer, i int, dy *graph.Node, of sequences) activations {
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
