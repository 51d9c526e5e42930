package model

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/reprise-rl/reprise/infra/malloc"
	"github.com/reprise-rl/reprise/model/batch"
)

// ErrInput is the kind of errors about arguments with wrong shapes or values out of
// range: a mistake of the caller, never of the device.
var ErrInput = batch.ErrInput

// Shapes are the sizes that the programs compute on. A row's bits depend on them and on
// the row, never on the other rows. If a field is 0, the programs that need it are not
// prepared, and calling them is an ErrInput.
type Shapes struct {
	// GenerateRows is the rows of a generation pass, or the slots in which the rows of a block
	// are generated.
	GenerateRows int
	// BlockRows is the rows of a block: a slot whose row has ended is given to the next row of
	// the block. 0 is passes of GenerateRows, whose slots stay empty when their rows have ended.
	BlockRows int
	// SharedPrompts is how many prompts a prefill has where rows that are neighbours with the same prompt
	// share its keys and values. It decides bits. A pass with more different prompts has several
	// prefills. 0 is one prompt for each row of a pass, and in a block as many as a pass has rows.
	SharedPrompts int
	// PromptTokens is the maximum number of tokens of a prompt.
	PromptTokens int
	// MaxNewTokens is the maximum number of tokens sampled for a prompt.
	MaxNewTokens int
	// ChunkTokens is how many tokens of a row one execution samples at most; 0 is all
	// MaxNewTokens. It bounds the time in which a device cannot be interrupted, and changes
	// no bit of a pass.
	ChunkTokens int
	// Append is zero unless the keys and values of a turn's prompts are kept for the next turn.
	Append AppendShapes
	// MicroBatch is the rows of Score, Values and the updates.
	MicroBatch int
	// Sequence is the width of the rows of Score, Values and the updates, at least 2.
	Sequence int
	// Narrower are further widths that a micro-batch may have (MicroBatch.Width), at least 2, below
	// Sequence and falling; 0 is none. Each has its own forward and backward program.
	Narrower [2]int
	// ComputeDtype is the dtype of activations and of the matrices that they are multiplied
	// with, "float32" or "bfloat16"; empty is float32. In bfloat16 a state has a copy of its
	// matrices for that. What is trained, moments, gradients, norms, biases, softmax and logits
	// are always float32.
	ComputeDtype string
	// Keep keeps the activations of Score's and Values' program for the backward pass of the
	// updates, which otherwise computes each layer again from its input. In float32 it changes
	// no bit. In bfloat16 it does: kept activations are rounded, others need not be.
	Keep bool
	// Sharded prepares what adds up the gradients of shards (Gradient.Shard).
	Sharded bool
	// Loss selects the parts of Update's loss; zero is the plain clipped surrogate.
	Loss LossOptions
}

// kind is the name of a program in hashes and progress.
type kind string

const (
	kindPrefill     kind = "prefill"
	kindShareRoom   kind = "share-room"
	kindShare       kind = "share"
	kindDecode      kind = "decode"
	kindDecodeRoom  kind = "decode-room"
	kindDecodeChunk kind = "decode-chunk"
	kindBlockRoom   kind = "block-room"
	kindBlockSeat   kind = "block-seat"
	kindDecodeBlock kind = "decode-block"
	kindAppend      kind = "append"
	kindAppendRoom  kind = "append-room"
	kindForward     kind = "forward"
	kindBackward    kind = "backward"
	kindSquare      kind = "square"
	kindApply       kind = "apply"
	kindAdd         kind = "add" // of shards
	kindFill        kind = "fill"
	kindZeros       kind = "zeros" // of bundles; without them fill's
	kindFingerprint kind = "fingerprint"
	kindCopy        kind = "copy" // in the compute dtype
	// Of the tensors of a base model.
	kindBaseFingerprint kind = "base-fingerprint"
	kindBaseFill        kind = "base-fill"
)

// named returns the kind's name. A critic's programs have other names than the policy's,
// so that one map can hold the hashes of both.
func (p *Programs) named(k kind) kind {
	if p.c.ValueHead {
		return "critic-" + k
	}
	return k
}

// programKey identifies a program: programs with equal keys are compiled once for the
// device. Programs of different widths share those that do not depend on the width.
type programKey struct {
	kind                kind
	config              Config
	tensor              string // dimensions of the tensor that it is for
	dtype               dtypes.DType
	rows, tokens, fresh int
	prompts             int // that rows share
	limits              limits
	keep, block         bool
	loss                LossOptions
	append              AppendShapes
}

// Programs are the programs for policies or critics of one shape on a device. They are
// compiled when first called, or all at once by Compile. Equal programs of one device
// share their compiled code, which is freed with the last of them. Methods may be called
// concurrently.
type Programs struct {
	device *Device
	c      Config
	sh     Shapes
	net    network
	progs  map[kind]group

	bundles   []bundle    // of the tensors of c
	narrower  []*Programs // with the programs of Shapes.Narrower alone
	k         int         // the device that they run on
	positions int         // rows of the decoding's tables
	tableBuffers
	mirrors mirrors // of the tables
	halves  group   // of SamplerFingerprint; nil before its first use
}

// tableBuffers are what the programs read besides weights and rows.
type tableBuffers struct {
	legal             compute.Buffer // [V] float32, 0 or −Inf
	tables, decodeTab [2]compute.Buffer
}

func (t tableBuffers) list() []compute.Buffer {
	return []compute.Buffer{t.legal, t.tables[0], t.tables[1], t.decodeTab[0], t.decodeTab[1]}
}

// Programs prepares the programs for policies of a configuration, or for critics
// (Config.Critic), whose Shapes set only MicroBatch, Sequence and ComputeDtype. legal, of
// length VocabSize, marks the ids that the tokenizer has; the others have probability 0 in
// sampling and in log-probs. Nil means that all are legal.
func (d *Device) Programs(c Config, legal []bool, sh Shapes) (*Programs, error) {
	if err := checkShapes(c, legal, sh); err != nil {
		return nil, err
	}
	p, err := d.programsWith(c, legal, sh, defaultLimits)
	if err != nil {
		return nil, err
	}
	for _, width := range sh.Narrower {
		if width == 0 {
			continue
		}
		q, err := d.programsWith(c, legal, sh.narrowed(width), defaultLimits)
		if err != nil {
			p.Free()
			return nil, err
		}
		p.narrower = append(p.narrower, q)
	}
	return p, nil
}

func (d *Device) programsWith(c Config, legal []bool, sh Shapes, l limits) (*Programs, error) {
	p := &Programs{device: d, c: c, sh: sh, net: network{c: c, dtype: dtypes.Float32, wide: dtypes.Float32, limits: l}}
	p.bundles = bundles(c.Tensors(), d.bundled)
	if sh.ComputeDtype == "bfloat16" {
		p.net.dtype = dtypes.BFloat16
	}
	switch {
	case p.large():
		malloc.ReturnLarge()
	case p.onCPU():
		malloc.Keep()
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
	p.progs = map[kind]group{}
	add := func(k kind, key programKey, build builder) {
		key.kind, key.config = p.named(k), c.shape()
		p.progs[key.kind] = group{d.shared(key, build)}.hold()
	}
	each := func(k kind, build func(TensorShape) builder) {
		p.progs[p.named(k)] = d.perTensor(k, c.Tensors(), programKey{}, build).hold()
	}
	each(kindFingerprint, func(t TensorShape) builder { return buildFingerprint(t, dtypes.Float32) })
	each(kindFill, func(t TensorShape) builder { return buildFill(t, dtypes.Float32) })
	bundled := func(k kind, of []bundle, key programKey, build func(TensorShape, int) builder) group {
		return d.perBundle(k, c.Tensors(), of, key, build).hold()
	}
	if of := p.copiedBundles(); len(of) > 0 {
		p.progs[p.named(kindCopy)] = bundled(kindCopy, of, programKey{dtype: p.net.dtype}, func(t TensorShape, n int) builder {
			return buildCopy(t, n, p.net.dtype)
		})
	}
	if c.Adapted() {
		ofBase := func(k kind, build func(TensorShape, dtypes.DType) builder) {
			p.progs[p.named(k)] = d.perTensor(k, c.Frozen(), programKey{dtype: p.net.dtype}, func(t TensorShape) builder {
				return build(t, frozenDType(t, p.net.dtype))
			}).hold()
		}
		ofBase(kindBaseFingerprint, buildFingerprint)
		ofBase(kindBaseFill, buildFill)
	}
	if sh.MicroBatch > 0 {
		p.progs[p.named(kindSquare)] = bundled(kindSquare, p.bundles, programKey{}, buildSquare)
		p.progs[p.named(kindApply)] = bundled(kindApply, p.bundles, programKey{}, buildApply)
		if d.bundled > 1 {
			p.progs[p.named(kindZeros)] = bundled(kindZeros, p.bundles, programKey{}, buildZeros)
		}
		if sh.Sharded {
			each(kindAdd, buildAdd)
		}
	}
	if sh.GenerateRows > 0 && sh.MaxNewTokens > 0 {
		key := programKey{dtype: p.net.dtype, rows: sh.GenerateRows, tokens: sh.PromptTokens, fresh: sh.MaxNewTokens, limits: l}
		key.block = sh.BlockRows > 0
		key.append = sh.Append
		shared := key
		shared.prompts = sh.SharedPrompts
		if sh.Append.Before > 0 {
			add(kindAppendRoom, key, p.buildAppendRoom)
			add(kindAppend, key, p.buildAppend)
		} else {
			add(kindPrefill, shared, p.buildPrefill)
			if sh.SharedPrompts > 0 && sh.BlockRows == 0 {
				add(kindShareRoom, shared, p.buildShareRoom)
				add(kindShare, shared, p.buildShare)
			}
		}
		if sh.BlockRows > 0 {
			add(kindBlockRoom, key, p.buildBlockRoom)
			add(kindBlockSeat, shared, p.buildBlockSeat)
			add(kindDecodeBlock, key, p.buildDecodeBlock)
		} else if sh.ChunkTokens > 0 {
			add(kindDecodeRoom, key, p.buildDecodeRoom)
			add(kindDecodeChunk, key, p.buildDecodeChunk)
		} else {
			add(kindDecode, key, p.buildDecode)
		}
	}
	if sh.MicroBatch > 0 {
		key := programKey{dtype: p.net.dtype, rows: sh.MicroBatch, tokens: sh.Sequence, limits: l, keep: sh.Keep}
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

// largeModel is the bytes of weights from which the memory that a CPU frees must go back to
// the system.
const largeModel = 64 << 20

// large reports whether the programs are for such a model.
func (p *Programs) large() bool { return p.onCPU() && 4*p.c.Parameters() >= largeModel }

func (p *Programs) onCPU() bool { return p.device.fingerprint.Platform == "cpu" }

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
	if c.ValueHead && (sh.GenerateRows != 0 || sh.Loss != (LossOptions{Value: sh.Loss.Value}) || legal != nil) {
		return bad("a critic neither generates nor has legal ids or a policy's loss")
	}
	if !c.ValueHead && sh.Loss.Value != "" {
		return bad("a policy has no critic's loss")
	}
	if err := sh.Loss.Check(); err != nil {
		return fmt.Errorf("prepare programs: %w", err)
	}
	const most = 1 << 24
	for _, x := range []struct {
		name string
		n    int
	}{{"GenerateRows", sh.GenerateRows}, {"BlockRows", sh.BlockRows}, {"SharedPrompts", sh.SharedPrompts}, {"PromptTokens", sh.PromptTokens}, {"MaxNewTokens", sh.MaxNewTokens}, {"ChunkTokens", sh.ChunkTokens},
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
	if err := sh.Append.check(sh, bad); err != nil {
		return err
	}
	return sh.checkWidths(bad)
}

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

// uploadTables uploads the legal ids and the rotary tables.
func (p *Programs) uploadTables(legal []bool) error {
	bias := make([]float32, p.c.VocabSize)
	for i := range legal {
		if !legal[i] {
			bias[i] = float32(math.Inf(-1))
		}
	}
	var err error
	if !p.c.ValueHead {
		if p.legal, err = upload(p.device, 0, bias, len(bias)); err != nil {
			return err
		}
	}
	half := p.c.HeadDim / 2
	put := func(positions int) (out [2]compute.Buffer, err error) {
		cos, sin := ropeTables(p.c, positions)
		if out[0], err = upload(p.device, 0, cos, positions, half); err == nil {
			out[1], err = upload(p.device, 0, sin, positions, half)
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
func (p *Programs) current() map[kind]group {
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
	p.halves.release()
	p.progs, p.halves = nil, nil
}

func (p *Programs) free() {
	free(p.list())
	p.tableBuffers = tableBuffers{}
	p.mirrors.free()
}

// program returns a single program, or an error if the shapes do not provide for it.
func (p *Programs) program(k kind) (*program, error) {
	g, err := p.group(k)
	if err != nil {
		return nil, err
	}
	return g[0], nil
}

// group returns the programs of a kind, or an error if the shapes do not provide for them.
func (p *Programs) group(k kind) (group, error) {
	if g := p.progs[p.named(k)]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("%w: the programs were prepared without the shapes that %s needs, or freed", ErrInput, p.named(k))
}

// checkRole returns an error unless the programs belong to a critic, or to a policy, as
// requested.
func (p *Programs) checkRole(critic bool) error {
	if p.c.ValueHead != critic {
		return fmt.Errorf("%w: the programs are not those of a %s", ErrInput, map[bool]string{true: "critic", false: "policy"}[critic])
	}
	return nil
}
