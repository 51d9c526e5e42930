package model

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/infra/malloc"
)

// Programs are the programs for policies or critics of one shape on a device. They are
// compiled when first called, or all at once by Compile. Equal programs of one device
// share their compiled code, which is freed with the last of them. Methods may be called
// concurrently.
type Programs struct {
	*core
	// Sampler samples turns.
	Sampler *Sampler
	// Scorer scores them, or values them.
	Scorer *Scorer
	// Learner trains on them.
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
