package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/reprise-rl/reprise/infra/malloc"
)

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
	p := &Programs{core: &core{device: d, c: c, sh: sh, net: network{c: c, dtype: dtypes.Float32, wide: dtypes.Float32, limits: l}}}
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

// uploadTables uploads the legal ids and the rotary tables.
func (p *core) uploadTables(legal []bool) error {
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
