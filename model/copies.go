package model

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// weights are the tensors that the programs read: the base model's, then the state's own, or
// their copies in the compute dtype. The first program after a load or an update makes the
// copies. What another device owns is read from what spread has copied, on the first device also
// without spread. The caller holds run.
func (p *core) weights(s *State) ([]compute.Buffer, error) {
	var frozen []compute.Buffer
	if s.base != nil {
		frozen = s.base.buffers
		if p.k > 0 {
			frozen = s.base.mirrors[p.k]
		}
		frozen = frozen[:len(s.c.Frozen())]
	}
	if p.k == 0 {
		if err := p.gather(s, 0); err != nil {
			return nil, err
		}
	}
	own, err := p.own(s)
	if err != nil {
		return nil, err
	}
	for i, here := range (*p.mirrorsOf(s))[p.k] {
		if here != nil {
			own[i] = here
		}
	}
	return slices.Concat(frozen, own), nil
}

// own are the state's own tensors that the programs read, each on its owner.
func (p *core) own(s *State) (out []compute.Buffer, err error) {
	if err := p.copy(s); err != nil {
		return nil, err
	}
	for i, x := range s.params {
		if p.copied() && s.copies[i] != nil {
			x = s.copies[i]
		}
		out = append(out, x)
	}
	return out, nil
}

// copied reports whether the programs read copies.
func (p *core) copied() bool { return p.progs[p.named(kindCopy)] != nil }

// copy makes the state's copies unless they are there. After an error there are none.
func (p *core) copy(s *State) error {
	if !p.copied() || s.copies != nil {
		return nil
	}
	copies, err := p.group(kindCopy)
	if err != nil {
		return err
	}
	out, complete := make([]compute.Buffer, len(s.params)), false
	defer func() { // also of a panic
		if !complete {
			free(out)
		}
	}()
	of := p.copiedBundles()
	if err := p.device.abreast("copy weights", len(of), func(b int) error {
		made, err := copies[b].on(s.owner[of[b][0]], of[b].take(s.params)...)
		if err == nil {
			of[b].put(out, made)
		}
		return err
	}); err != nil {
		return err
	}
	s.copies, complete = out, true
	return nil
}

// dropCopies frees the copies, and those on other devices. The caller holds run.
func (s *State) dropCopies() {
	free(s.copies)
	s.copies = nil
	s.mirrors[0].free()
	s.mirrors[1].free()
}

// copiedTensors are the tensors that the programs read as copies.
func (t network) copiedTensors() (out []TensorShape) {
	for i, s := range t.c.Tensors() {
		if t.readDType(i, s) != t.wide {
			out = append(out, s)
		}
	}
	return out
}

// copiedBundles are the bundles without the tensors that the programs do not read as copies.
func (p *core) copiedBundles() (out []bundle) {
	tensors := p.c.Tensors()
	for _, b := range p.bundles {
		var of bundle
		for _, i := range b {
			if p.net.readDType(i, tensors[i]) != p.net.wide {
				of = append(of, i)
			}
		}
		if of != nil {
			out = append(out, of)
		}
	}
	return out
}

// buildCopy is the program that makes the copies of n tensors in the compute dtype.
func buildCopy(t TensorShape, n int, dtype dtypes.DType) builder {
	return func(in *inputs) []*graph.Node {
		out := make([]*graph.Node, n)
		for i := range out {
			out[i] = graph.ConvertDType(in.next(dtypes.Float32, t.Shape...), dtype)
		}
		return out
	}
}
