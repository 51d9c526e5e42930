package model

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/infra/malloc"
	"github.com/reprise-rl/reprise/model/xla/executable"
)

// Programs are the programs for policies or critics of one shape on a device. They are
// compiled when first called, or all at once by Compile. Equal programs of one device
// share their compiled code, which is freed with the last of them. Methods may be called
// concurrently.
//
// They make states, and have a role for each use of one. Roles without shapes have no programs: their
// methods return an ErrInput.
type Programs struct {
	*core
	// Sampler samples turns.
	Sampler *Sampler
	// Scorer gives the log-probs of turns, or a critic's values.
	Scorer *Scorer
	// Learner makes optimizer steps.
	Learner *Learner

	narrower []*Programs // with the programs of Shapes.Narrower alone
}

// Compile compiles all programs now, in a fixed order. progress, unless nil, is
// called with each program's name before it is compiled. If the context is done, Compile
// stops before the next program.
func (p *Programs) Compile(ctx context.Context, progress func(name string)) error {
	progs := p.current()
	for _, k := range slices.Sorted(maps.Keys(progs)) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("compile programs: %w", err)
		}
		if progress != nil {
			progress(string(k))
		}
		if err := progs[k].compile(); err != nil {
			return err
		}
	}
	for _, q := range p.narrower {
		if err := q.Compile(ctx, func(name string) {
			if progress != nil {
				progress(q.narrow(kind(name)))
			}
		}); err != nil {
			return err
		}
	}
	if p.onCPU() {
		malloc.Trim() // the compiler's memory is hundreds of megabytes
	}
	return nil
}

// Hashes returns, by name, the SHA-256 of each program's StableHLO text, which is what XLA
// compiles. Programs that there are for each shape of a tensor have one hash, the SHA-256 of
// theirs. It lowers the programs but does not compile them.
func (p *Programs) Hashes() (map[string]string, error) {
	out := map[string]string{}
	for k, prog := range p.current() {
		h, err := prog.digest()
		if err != nil {
			return nil, err
		}
		out[string(k)] = h
	}
	return out, p.addNarrower(out)
}

// Free releases the programs' tables and the compiled code that no other Programs or State
// of the device uses. It waits for the running program. The programs cannot be called
// afterwards; calling Free twice is fine.
func (p *Programs) Free() {
	for _, q := range p.narrower {
		q.Free()
	}
	p.device.run.Lock()
	defer p.device.run.Unlock()
	p.free()
	for _, prog := range p.progs {
		prog.release()
	}
	p.progs = nil
}

// free frees what the programs read, and the programs that the roles have of their own. The caller
// holds run.
func (p *Programs) free() {
	p.legal.free()
	p.Sampler.free()
	p.Scorer.free()
}

// NewState uploads parameters, before the first update. The zero moments are made on the
// device.
func (p *Programs) NewState(params Params) (*State, error) {
	if err := params.check(); err != nil {
		return nil, fmt.Errorf("upload state: %w: %w", ErrInput, err)
	}
	return p.Load(params.source())
}

// Upload copies a snapshot to the device. Its configuration must have the
// programs' shapes.
func (p *Programs) Upload(s Snapshot) (*State, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("upload state: %w: %w", ErrInput, err)
	}
	return p.Load(s.source())
}

// UploadParams is LoadParams for parameters in the host's memory.
func (p *Programs) UploadParams(params Params) (*State, error) {
	if err := params.check(); err != nil {
		return nil, fmt.Errorf("upload state: %w: %w", ErrInput, err)
	}
	return p.LoadParams(params.source())
}

// Load copies a training state to the device, one tensor at a time. Moments that the source
// lacks are zero. Its configuration must have the programs' shapes. The device is free for
// other work between two tensors.
func (p *Programs) Load(src Source) (*State, error) { return p.load(src, true) }

// LoadParams copies parameters without moments to the device, a third of a training state.
// It is for a reference policy, which Score uses, and for a policy that only generates.
// Updates and Download return an ErrInput for it.
func (p *Programs) LoadParams(src Source) (*State, error) { return p.load(src, false) }

// LoadFrozen copies what the programs read of a network that is not trained (Shapes.Frozen) to the device, one tensor
// at a time: matrices in the compute dtype, norms and biases in float32. Score and Generate take the state; nothing else does.
func (p *Programs) LoadFrozen(src Source) (*State, error) { return p.loadFrozen(src) }

// LoadBase copies the weights of a base model to the device, one tensor at a time. The
// programs are a policy's with adapters. The caller frees the base.
func (p *Programs) LoadBase(src Source) (*Base, error) { return p.loadBase(src) }

// LoadVersion is Load, and computes the state's fingerprint tensor by tensor, while a source
// that reads ahead reads the next ones: Fingerprint has it then. Computing it in a
// goroutine of its own was slower: where cores are few, XLA's threads wait for those that read.
func (p *Programs) LoadVersion(src Source) (*State, Loading, error) {
	s, err := p.emptyFrom(src, true)
	if err != nil {
		return nil, Loading{}, fmt.Errorf("upload state: %w", err)
	}
	l := loader{p: p.core, s: s, tally: newTally(p.device)}
	err = l.load(src)
	l.free()
	if err != nil {
		s.Free()
		return nil, Loading{}, fmt.Errorf("upload state: %w", err)
	}
	return s, l.took, nil
}

// Memory compiles the programs, and gives what XLA's own statistics say of the memory of
// each, by the names of Hashes. Of the programs that there are for each shape of a tensor it
// is the one that needs the most.
func (p *Programs) Memory() (map[string]executable.Memory, error) {
	out := map[string]executable.Memory{}
	for k, progs := range p.current() {
		if err := progs.compile(); err != nil {
			return nil, err
		}
		for _, prog := range progs.distinct() {
			m, err := prog.memory()
			if err != nil {
				return nil, err
			}
			if m.Bytes() >= out[string(k)].Bytes() {
				out[string(k)] = m
			}
		}
	}
	return out, nil
}

// narrow names a program of narrower micro-batches.
func (p *Programs) narrow(k kind) string { return fmt.Sprintf("%s-%d", k, p.sh.Sequence) }

// addNarrower adds the hashes of the programs that only narrower micro-batches have.
func (p *Programs) addNarrower(to map[string]string) error {
	kinds := []kind{kindForward, kindBackward}
	if p.sh.Frozen {
		kinds = kinds[:1]
	}
	for _, q := range p.narrower {
		for _, k := range kinds {
			prog, err := q.program(k)
			if err != nil {
				return err
			}
			if to[q.narrow(q.named(k))], err = prog.digest(); err != nil {
				return err
			}
		}
	}
	return nil
}
