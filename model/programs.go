package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute"

	"github.com/reprise-rl/reprise/infra/malloc"
)

// named returns the kind's name. A critic's programs have other names than the policy's,
// so that one map can hold the hashes of both.
func (p *core) named(k kind) kind {
	if p.c.ValueHead {
		return "critic-" + k
	}
	return k
}

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

// core is what the programs of one shape have in common, whatever they are for: the network, the
// table of programs, and the ids that are legal.
type core struct {
	device  *Device
	c       Config
	sh      Shapes
	net     network
	progs   map[kind]group
	bundles []bundle // of the tensors of c
	k       int      // the device that they run on
	legal   tables   // [V] float32, 0 or −Inf; none of a critic
}

// largeModel is the bytes of weights from which the memory that a CPU frees must go back to
// the system.
const largeModel = 64 << 20

// large reports whether the programs are for such a model.
func (p *core) large() bool { return p.onCPU() && 4*p.c.Parameters() >= largeModel }

func (p *core) onCPU() bool { return p.device.fingerprint.Platform == "cpu" }

// shared returns the device's program for a key and creates it if needed. The caller
// holds run.
func (d *Device) shared(key programKey, build builder) *program {
	if p, ok := d.programs[key]; ok {
		return p
	}
	if d.programs == nil {
		d.programs = map[programKey]*program{}
	}
	p := &program{name: strings.TrimSpace(string(key.kind) + " " + key.tensor), device: d, key: key, build: build}
	d.programs[key] = p
	return p
}

// Shapes are the shapes the programs were prepared for.
func (p *core) Shapes() Shapes { return p.sh }

// Config is the configuration the programs were prepared for.
func (p *core) Config() Config { return p.c }

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

// current returns a copy of the map of programs.
func (p *core) current() map[kind]group {
	p.device.run.Lock()
	defer p.device.run.Unlock()
	return maps.Clone(p.progs)
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

// program returns a single program, or an error if the shapes do not provide for it.
func (p *core) program(k kind) (*program, error) {
	g, err := p.group(k)
	if err != nil {
		return nil, err
	}
	return g[0], nil
}

// group returns the programs of a kind, or an error if the shapes do not provide for them.
func (p *core) group(k kind) (group, error) {
	if g := p.progs[p.named(k)]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("%w: the programs were prepared without the shapes that %s needs, or freed", ErrInput, p.named(k))
}

// checkRole returns an error unless the programs belong to a critic, or to a policy, as
// requested.
func (p *core) checkRole(critic bool) error {
	if p.c.ValueHead != critic {
		return fmt.Errorf("%w: the programs are not those of a %s", ErrInput, map[bool]string{true: "critic", false: "policy"}[critic])
	}
	return nil
}

// mirrors are copies of buffers on devices that do not own them, by device: nil where there is none
// yet. A buffer that the device owns has none there.
type mirrors [][]compute.Buffer

// free frees the copies on all devices. The caller holds run.
func (m *mirrors) free() {
	for _, on := range *m {
		free(on)
	}
	*m = nil
}
