package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// ErrInput is the kind of errors about values that do not fit the shapes or the
// ranges a method asks for: the caller's mistake, never the device's.
var ErrInput = errors.New("bad input")

// Shapes fix what the programs compute on: a row's bits depend on them and on the
// row, never on which other rows are there. A zero means that the programs which
// need the field are not used; calling them is an ErrInput.
type Shapes struct {
	// GenerateRows is the rows of a generation pass.
	GenerateRows int
	// PromptTokens is the widest context a generation starts from.
	PromptTokens int
	// MaxNewTokens is the most tokens sampled from it.
	MaxNewTokens int
	// MicroBatch is the rows of Score, Values and the updates.
	MicroBatch int
	// Sequence is the width of the rows of Score, Values and the updates, at least 2.
	Sequence int
	// ComputeDtype is the dtype of activations, "float32" or "bfloat16"; empty is
	// float32. Weights, moments, norms, softmax and logits are always float32.
	ComputeDtype string
	// Loss is what Update's loss is made of; zero is the plain clipped surrogate.
	Loss LossOptions
}

// kind names a program, as hashes and progress show it.
type kind string

const (
	kindPrefill     kind = "prefill"
	kindDecode      kind = "decode"
	kindForward     kind = "forward"
	kindBackward    kind = "backward"
	kindApply       kind = "apply"
	kindFingerprint kind = "fingerprint"
)

// named is the kind's name: a critic's programs have names of their own, so that
// their hashes stand beside the policy's.
func (p *Programs) named(k kind) kind {
	if p.c.ValueHead {
		return "critic-" + k
	}
	return k
}

// programKey says which programs are the same one. Programs of different widths
// share what does not depend on the width, compiled once for the device.
type programKey struct {
	kind                kind
	config              Config
	dtype               dtypes.DType
	rows, tokens, fresh int
	limits              limits
	loss                LossOptions
}

// Programs are the programs of a policy's, or a critic's, shape on a device. They are compiled
// when first called, or all at once by Compile. Programs that compute the same share what was
// compiled; it ends with the last of them. Methods may be called concurrently.
type Programs struct {
	device *Device
	c      Config
	sh     Shapes
	net    network
	progs  map[kind]*program

	legal     compute.Buffer // [V] float32, 0 or −Inf
	tables    [2]compute.Buffer
	positions int // rows of the decoding's tables
	decodeTab [2]compute.Buffer
}

// Programs prepares the programs for policies of a configuration, or for critics
// (Config.Critic), whose Shapes say MicroBatch, Sequence and ComputeDtype. legal, of
// length VocabSize, says which ids the tokenizer has: the others have probability
// 0 everywhere, in sampling and in log-probs alike; nil means all are legal.
func (d *Device) Programs(c Config, legal []bool, sh Shapes) (*Programs, error) {
	if err := checkShapes(c, legal, sh); err != nil {
		return nil, err
	}
	return d.programsWith(c, legal, sh, defaultLimits)
}

func (d *Device) programsWith(c Config, legal []bool, sh Shapes, l limits) (*Programs, error) {
	p := &Programs{device: d, c: c, sh: sh, net: network{c: c, dtype: dtypes.Float32, wide: dtypes.Float32, limits: l, barrier: d.fingerprint.Platform != "cpu"}}
	if sh.ComputeDtype == "bfloat16" {
		p.net.dtype = dtypes.BFloat16
	}
	d.run.Lock()
	defer d.run.Unlock()
	if d.closed {
		return nil, fmt.Errorf("prepare programs: %w", ErrClosed)
	}
	err := try("prepare programs", func() error { return p.uploadTables(legal) })
	if err != nil {
		p.free()
		return nil, err
	}
	p.progs = map[kind]*program{}
	add := func(k kind, key programKey, build builder) {
		key.kind, key.config = p.named(k), c.shape()
		p.progs[key.kind] = d.shared(key, build).hold()
	}
	add(kindApply, programKey{}, p.buildApply)
	add(kindFingerprint, programKey{}, p.buildFingerprint)
	if sh.GenerateRows > 0 && sh.MaxNewTokens > 0 {
		key := programKey{dtype: p.net.dtype, rows: sh.GenerateRows, tokens: sh.PromptTokens, fresh: sh.MaxNewTokens, limits: l}
		add(kindPrefill, key, p.buildPrefill)
		add(kindDecode, key, p.buildDecode)
	}
	if sh.MicroBatch > 0 {
		key := programKey{dtype: p.net.dtype, rows: sh.MicroBatch, tokens: sh.Sequence, limits: l}
		forward, backward := p.buildForward, p.buildBackward
		if c.ValueHead {
			forward, backward = p.buildValues, p.buildCriticBackward
		}
		add(kindForward, key, forward)
		key.loss = sh.Loss
		add(kindBackward, key, backward)
	}
	return p, nil
}

func checkShapes(c Config, legal []bool, sh Shapes) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("prepare programs: %w: "+format, append([]any{ErrInput}, args...)...)
	}
	if legal != nil && len(legal) != c.VocabSize {
		return bad("legal has %d entries, the vocabulary %d", len(legal), c.VocabSize)
	}
	if legal != nil && !slices.Contains(legal, true) {
		return bad("no id is legal")
	}
	switch sh.ComputeDtype {
	case "", "float32", "bfloat16":
	default:
		return bad("compute dtype %q, must be float32 or bfloat16", sh.ComputeDtype)
	}
	if c.ValueHead && (sh.GenerateRows != 0 || sh.Loss != (LossOptions{}) || legal != nil) {
		return bad("a critic neither generates nor has legal ids or a policy's loss")
	}
	if err := sh.Loss.check(); err != nil {
		return fmt.Errorf("prepare programs: %w", err)
	}
	const most = 1 << 24
	for _, x := range []struct {
		name string
		n    int
	}{{"GenerateRows", sh.GenerateRows}, {"PromptTokens", sh.PromptTokens}, {"MaxNewTokens", sh.MaxNewTokens},
		{"MicroBatch", sh.MicroBatch}, {"Sequence", sh.Sequence}} {
		if x.n < 0 || x.n > most {
			return bad("%s is %d, must be from 0 to %d", x.name, x.n, most)
		}
	}
	if sh.GenerateRows > 0 && sh.MaxNewTokens > 0 && sh.PromptTokens < 1 {
		return bad("PromptTokens is 0")
	}
	if sh.MicroBatch > 0 && sh.Sequence < 2 {
		return bad("Sequence is %d, must be at least 2", sh.Sequence)
	}
	return nil
}

// shared finds or makes a program of the device. The caller holds run.
func (d *Device) shared(key programKey, build builder) *program {
	if p, ok := d.programs[key]; ok {
		return p
	}
	if d.programs == nil {
		d.programs = map[programKey]*program{}
	}
	p := &program{name: string(key.kind), device: d, key: key, build: build}
	d.programs[key] = p
	return p
}

// uploadTables puts on the device what the programs read beside weights and data.
func (p *Programs) uploadTables(legal []bool) error {
	bias := make([]float32, p.c.VocabSize)
	for i := range legal {
		if !legal[i] {
			bias[i] = float32(math.Inf(-1))
		}
	}
	var err error
	if !p.c.ValueHead {
		if p.legal, err = upload(p.device, bias, len(bias)); err != nil {
			return err
		}
	}
	half := p.c.HeadDim / 2
	put := func(positions int) (out [2]compute.Buffer, err error) {
		cos, sin := ropeTables(p.c, positions)
		if out[0], err = upload(p.device, cos, positions, half); err == nil {
			out[1], err = upload(p.device, sin, positions, half)
		}
		return out, err
	}
	if p.sh.MicroBatch > 0 {
		if p.tables, err = put(p.sh.Sequence); err != nil {
			return err
		}
	}
	if p.sh.GenerateRows > 0 {
		p.positions = p.sh.PromptTokens + p.sh.MaxNewTokens
		p.decodeTab, err = put(p.positions)
	}
	return err
}

// Shapes are the shapes the programs were prepared for.
func (p *Programs) Shapes() Shapes { return p.sh }

// Config is the configuration the programs were prepared for.
func (p *Programs) Config() Config { return p.c }

// Compile compiles all programs now, in a fixed order. progress, unless nil, is
// called with each program's name before it is compiled. It stops between two
// programs when the context is done.
func (p *Programs) Compile(ctx context.Context, progress func(name string)) error {
	progs := p.held()
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
	return nil
}

// Hashes gives, by name, the SHA-256 of each program as it is handed to XLA
// (StableHLO text). Programs are lowered for it, not compiled.
func (p *Programs) Hashes() (map[string]string, error) {
	out := map[string]string{}
	for k, prog := range p.held() {
		h, err := prog.digest()
		if err != nil {
			return nil, err
		}
		out[string(k)] = h
	}
	return out, nil
}

// held are the programs as they are now.
func (p *Programs) held() map[kind]*program {
	p.device.run.Lock()
	defer p.device.run.Unlock()
	return maps.Clone(p.progs)
}

// Free releases the memory the programs hold: their tables, and the compiled code
// that no other Programs or State of the device shares. They cannot be called any
// more. It waits for the running program; freeing twice is fine.
func (p *Programs) Free() {
	p.device.run.Lock()
	defer p.device.run.Unlock()
	p.free()
	for _, prog := range p.progs {
		prog.release()
	}
	p.progs = nil
}

func (p *Programs) free() {
	free([]compute.Buffer{p.legal, p.tables[0], p.tables[1], p.decodeTab[0], p.decodeTab[1]})
	p.legal, p.tables, p.decodeTab = nil, [2]compute.Buffer{}, [2]compute.Buffer{}
}

// program finds a program that the shapes provide for.
func (p *Programs) program(k kind) (*program, error) {
	if prog := p.progs[p.named(k)]; prog != nil {
		return prog, nil
	}
	return nil, fmt.Errorf("%w: the programs were prepared without the shapes that %s needs, or freed", ErrInput, p.named(k))
}

// checkRole refuses programs of a critic where a policy's are needed, and the
// other way round.
func (p *Programs) checkRole(critic bool) error {
	if p.c.ValueHead != critic {
		return fmt.Errorf("%w: the programs are not those of a %s", ErrInput, map[bool]string{true: "critic", false: "policy"}[critic])
	}
	return nil
}
