package model

import (
	"fmt"
	"slices"

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
		p.Scorer.widths = append(p.Scorer.widths, q.Scorer)
		p.Learner.widths = append(p.Learner.widths, q.Learner)
	}
	return p, nil
}

func (d *Device) programsWith(c Config, legal []bool, sh Shapes, l limits) (*Programs, error) {
	net := network{c: c, dtype: dtypes.Float32, wide: dtypes.Float32, limits: l, exact: sh.Exact}
	p := programsOf(&core{device: d, c: c, sh: sh, net: net})
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
	p.prepare()
	p.Sampler.prepare()
	p.Scorer.prepare()
	p.Learner.prepare()
	return p, nil
}

// programsOf gives a core its roles.
func programsOf(c *core) *Programs {
	scorer := newScorer(c)
	return &Programs{core: c, Sampler: &Sampler{core: c}, Scorer: scorer, Learner: newLearner(scorer)}
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
	if c.ValueHead && (sh.GenerateRows != 0 || sh.Loss != (LossOptions{Value: sh.Loss.Value}) || legal != nil || sh.SumSquares) {
		return bad("a critic neither generates nor has legal ids, distributions or a policy's loss")
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
	}{
		{"GenerateRows", sh.GenerateRows}, {"BlockRows", sh.BlockRows}, {"SharedPrompts", sh.SharedPrompts}, {"PromptTokens", sh.PromptTokens},
		{"MaxNewTokens", sh.MaxNewTokens}, {"ChunkTokens", sh.ChunkTokens}, {"MicroBatch", sh.MicroBatch}, {"Sequence", sh.Sequence},
	} {
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

// uploadTables uploads the legal ids and the rotary tables. The caller holds run, and frees them also after
// an error.
func (p *Programs) uploadTables(legal []bool) error {
	if err := p.uploadLegal(legal); err != nil {
		return err
	}
	if err := p.Scorer.uploadTables(); err != nil {
		return err
	}
	return p.Sampler.uploadTables()
}

// prepare adds the learner's programs. The caller holds run.
func (l *Learner) prepare() {
	if l.sh.MicroBatch == 0 || l.sh.Frozen {
		return
	}
	l.addBundled(kindSquare, l.bundles, programKey{}, buildSquare)
	l.addBundled(kindApply, l.bundles, programKey{}, buildApply)
	if l.device.bundled > 1 {
		l.addBundled(kindZeros, l.bundles, programKey{}, buildZeros)
	}
	if l.sh.Sharded {
		l.addEach(kindAdd, buildAdd)
	}
	key, backward := l.microBatchKey(), l.buildBackward
	key.loss = l.sh.Loss
	if l.c.ValueHead {
		backward = l.buildCriticBackward
	}
	l.add(kindBackward, key, backward)
}

// prepare adds the scorer's program. The caller holds run.
func (s *Scorer) prepare() {
	switch {
	case s.sh.MicroBatch == 0:
	case s.c.ValueHead:
		s.add(kindForward, s.microBatchKey(), s.buildValues)
	default:
		key := s.microBatchKey()
		key.squares = s.sh.SumSquares
		s.add(kindForward, key, s.buildForward)
	}
}

// prepare adds the sampler's programs. The caller holds run.
func (s *Sampler) prepare() {
	sh := s.sh
	if sh.GenerateRows == 0 || sh.MaxNewTokens == 0 {
		return
	}
	key := programKey{
		dtype: s.net.dtype, rows: sh.GenerateRows, tokens: sh.PromptTokens, fresh: sh.MaxNewTokens, limits: s.net.limits, exact: sh.Exact,
	}
	key.block = sh.BlockRows > 0
	key.append = sh.Append
	shared := key
	shared.prompts = sh.SharedPrompts
	if sh.Append.Before > 0 {
		s.add(kindAppendRoom, key, s.buildAppendRoom)
		s.add(kindAppend, key, s.buildAppend)
	} else {
		s.add(kindPrefill, shared, s.buildPrefill)
		if sh.SharedPrompts > 0 && sh.BlockRows == 0 {
			s.add(kindShareRoom, shared, s.buildShareRoom)
			s.add(kindShare, shared, s.buildShare)
		}
	}
	switch {
	case sh.BlockRows > 0:
		s.add(kindBlockRoom, key, s.buildBlockRoom)
		s.add(kindBlockSeat, shared, s.buildBlockSeat)
		s.add(kindDecodeBlock, key, s.buildDecodeBlock)
	case sh.ChunkTokens > 0:
		s.add(kindDecodeRoom, key, s.buildDecodeRoom)
		s.add(kindDecodeChunk, key, s.buildDecodeChunk)
	default:
		s.add(kindDecode, key, s.buildDecode)
	}
}
