package model

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/compute"
)

// GenerateInput is the input of Generate. If there are more rows than
// Shapes.GenerateRows, they are processed in passes of that many, or in blocks of
// Shapes.BlockRows.
type GenerateInput struct {
	// Prompts are the rows' token ids, not padded, each 1 to PromptTokens long.
	Prompts [][]int32
	// Uniforms are [rows][MaxNewTokens] numbers in [0, 1), one for each position
	// that may be sampled. They may be nil if Greedy is set.
	Uniforms [][]float32
	// Alive selects the rows to generate for; nil means all. Dead rows stay in the
	// output, empty, and their prompts may be empty.
	Alive []bool
	// Temperature divides the logits. 0 is the same as Greedy.
	Temperature float32
	// Stop are the ids that end a row, at most MaxStops.
	Stop []int32
	// StopTexts end a row too; nil for none. The host looks for them between executions, so a row
	// is decoded to the end of the execution that ended it.
	StopTexts *StopTexts
	// Greedy selects the likeliest id, the lowest if several are equally likely.
	Greedy bool
	// Kept are the keys and values of Prompts, from Append; nil to compute them here. They stay
	// as they are.
	Kept *Kept
	// IgnoreStop samples MaxNewTokens tokens in every row, also after a stop id or a stop text.
	IgnoreStop bool
}

// GenerateOutput holds the sampled tokens, with one row for each row of the input. Dead
// rows are empty.
type GenerateOutput struct {
	// Tokens are the sampled ids, with the stop id or the whole token that completes a stop text.
	Tokens [][]int32
	// LogProbs are the tokens' log-probs over the legal vocabulary at the sampling
	// temperature, or at 1 if Greedy is set.
	LogProbs [][]float32
	// Entropies are those of the distributions that the tokens were sampled from, in nats.
	Entropies [][]float32
	// Truncated marks rows that reached MaxNewTokens without a stop id or a stop text.
	Truncated []bool
}

// Generate continues the prompts. Passes, or blocks, are dealt to the devices. A row's bits depend on
// its own prompt, its uniforms, the shapes, the state and its place in its pass, not on other rows or on
// how many devices there are. In a block they depend on the step at which it got its slot, too, and so
// on the rows of its block, but on no other. The
// context is checked between programs, so at most Shapes.ChunkTokens steps apart; a running
// program is not interrupted.
func (s *Sampler) Generate(ctx context.Context, st *State, in GenerateInput) (GenerateOutput, error) {
	if err := s.checkGenerate(&in); err != nil {
		return GenerateOutput{}, fmt.Errorf("generate: %w", err)
	}
	s.device.run.Lock()
	defer s.device.run.Unlock()
	if err := s.check(st); err != nil {
		return GenerateOutput{}, fmt.Errorf("generate: %w", err)
	}
	n := len(in.Prompts)
	out := GenerateOutput{Tokens: make([][]int32, n), Truncated: make([]bool, n)}
	out.LogProbs, out.Entropies = make([][]float32, n), make([][]float32, n)
	rows, do := s.sh.GenerateRows, (*Sampler).pass
	if s.sh.BlockRows > 0 {
		rows, do = s.sh.BlockRows, (*Sampler).block
	}
	passes := (n + rows - 1) / rows
	if err := s.spread(st, passes, s.tables()...); err != nil {
		return GenerateOutput{}, fmt.Errorf("generate: %w", err)
	}
	if err := s.device.deal(passes, func(k, i int) error {
		return try("generate", func() error { return do(s.at(k), ctx, st, in, i*rows, min((i+1)*rows, n), out) })
	}); err != nil {
		return GenerateOutput{}, err
	}
	return out, nil
}

func (s *Sampler) checkGenerate(in *GenerateInput) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInput}, args...)...)
	}
	decode := kindDecode
	switch {
	case s.sh.BlockRows > 0:
		decode = kindDecodeBlock
	case s.sh.ChunkTokens > 0:
		decode = kindDecodeChunk
	}
	if _, err := s.program(decode); err != nil {
		return err
	}
	if in.Temperature == 0 {
		in.Greedy = true
	}
	if !(in.Temperature >= 0) || math.IsInf(float64(in.Temperature), 0) {
		return bad("temperature %v", in.Temperature)
	}
	if len(in.Stop) > MaxStops {
		return bad("%d stop ids, at most %d", len(in.Stop), MaxStops)
	}
	if !in.Greedy && len(in.Uniforms) != len(in.Prompts) {
		return bad("uniforms for %d rows, %d prompts", len(in.Uniforms), len(in.Prompts))
	}
	if err := s.checkPrompts(in.Prompts, in.Alive); err != nil {
		return err
	}
	if err := s.checkKept(in.Kept, in.Prompts, in.Alive); err != nil {
		return err
	}
	for i := range in.Prompts {
		if in.Greedy || in.Alive != nil && !in.Alive[i] {
			continue
		}
		if len(in.Uniforms[i]) != s.sh.MaxNewTokens {
			return bad("row %d has %d uniforms, must be %d", i, len(in.Uniforms[i]), s.sh.MaxNewTokens)
		}
		for _, u := range in.Uniforms[i] {
			if !(u >= 0 && u < 1) {
				return bad("row %d has the uniform %v, must be in [0, 1)", i, u)
			}
		}
	}
	return nil
}

// checkPrompts checks the ids of rows that are alive.
func (s *Sampler) checkPrompts(prompts [][]int32, alive []bool) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInput}, args...)...)
	}
	if alive != nil && len(alive) != len(prompts) {
		return bad("%d alive flags for %d prompts", len(alive), len(prompts))
	}
	for i, prompt := range prompts {
		if alive != nil && !alive[i] {
			continue
		}
		if len(prompt) == 0 || len(prompt) > s.sh.PromptTokens {
			return bad("prompt %d has %d tokens, must be from 1 to %d", i, len(prompt), s.sh.PromptTokens)
		}
		for _, id := range prompt {
			if id < 0 || int(id) >= s.c.VocabSize {
				return bad("prompt %d has id %d, the vocabulary has %d", i, id, s.c.VocabSize)
			}
		}
	}
	return nil
}

// pass generates for the rows [from, to) of the input. The caller holds run.
func (s *Sampler) pass(ctx context.Context, st *State, in GenerateInput, from, to int, out GenerateOutput) error {
	rows, fresh := s.sh.GenerateRows, s.sh.MaxNewTokens
	b := s.passRows(in, from, to)
	if b.living == 0 {
		return nil
	}
	var cache []compute.Buffer // of this pass alone
	defer func() { free(cache) }()
	var prompts []compute.Buffer
	if in.Kept != nil {
		prompts = in.Kept.pass(from / rows)
	} else {
		var err error
		cache, err = s.prefillAll(ctx, st, b)
		if err != nil {
			return err
		}
		prompts = cache
	}
	d, err := s.newDecoding(in, b)
	defer func() { d.free() }()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	if s.sh.ChunkTokens > 0 {
		err = s.decodeChunks(ctx, st, in, d, prompts, &cache)
	} else {
		err = s.decodeWhole(st, d, prompts)
	}
	if err != nil {
		return err
	}
	tokens, err := download[int32](d.tokens, rows*fresh)
	if err != nil {
		return err
	}
	logProbs, err := download[float32](d.logProbs, rows*fresh)
	if err != nil {
		return err
	}
	entropies, err := download[float32](d.entropies, rows*fresh)
	if err != nil {
		return err
	}
	count, err := download[int32](d.count, rows)
	if err != nil {
		return err
	}
	still, err := download[int32](d.alive, rows)
	if err != nil {
		return err
	}
	for r := range to - from {
		if b.alive[r] == 0 {
			continue
		}
		n, ended := in.kept(tokens[r*fresh : r*fresh+int(count[r])])
		out.Tokens[from+r] = tokens[r*fresh : r*fresh+n : r*fresh+n]
		out.LogProbs[from+r] = logProbs[r*fresh : r*fresh+n : r*fresh+n]
		out.Entropies[from+r] = entropies[r*fresh : r*fresh+n : r*fresh+n]
		out.Truncated[from+r] = still[r] != 0 && !ended
	}
	return nil
}

// passRows are the rows of a pass as the programs take them.
type passRows struct {
	ids                 []int32 // [R, PromptTokens]
	last, length, alive []int32 // [R]
	uniforms            []float32
	living              int32
}

func (s *Sampler) passRows(in GenerateInput, from, to int) passRows {
	rows, width, fresh := s.sh.GenerateRows, s.sh.PromptTokens, s.sh.MaxNewTokens
	b := passRows{
		ids: make([]int32, rows*width), last: make([]int32, rows), length: make([]int32, rows), alive: make([]int32, rows),
		uniforms: make([]float32, rows*fresh),
	}
	for r := range rows {
		b.length[r] = 1 // a dead row counts as a prompt of one token
		i := from + r
		if i >= to || in.Alive != nil && !in.Alive[i] {
			continue
		}
		prompt := in.Prompts[i]
		copy(b.ids[r*width:], prompt)
		b.last[r] = prompt[len(prompt)-1]
		b.length[r] = int32(len(prompt))
		b.alive[r] = 1
		b.living++
		if !in.Greedy {
			copy(b.uniforms[r*fresh:], in.Uniforms[i])
		}
	}
	return b
}

// prefillAll computes the keys and values of all rows of a pass, part by part. The caller
// frees them, also after an error.
func (s *Sampler) prefillAll(ctx context.Context, st *State, b passRows) (cache []compute.Buffer, err error) {
	if s.sh.SharedPrompts > 0 {
		return s.prefillShared(ctx, st, b)
	}
	width := s.sh.PromptTokens
	for from := 0; from < s.sh.GenerateRows; from += s.prefillRows() {
		if err := ctx.Err(); err != nil {
			return cache, err
		}
		out, err := s.prefill(st, b.ids[from*width:(from+s.prefillRows())*width])
		if err != nil {
			return cache, err
		}
		cache = append(cache, out...)
	}
	return cache, nil
}

// prefill computes the keys and values of prompts, as many as prefillRows. The caller holds run.
func (s *Sampler) prefill(st *State, ids []int32) ([]compute.Buffer, error) {
	prog, err := s.program(kindPrefill)
	if err != nil {
		return nil, err
	}
	buf, err := upload(s.device, s.k, ids, s.prefillRows(), s.sh.PromptTokens)
	if err != nil {
		return nil, err
	}
	defer free([]compute.Buffer{buf})
	args, err := s.weights(st)
	if err != nil {
		return nil, err
	}
	return prog.on(s.k, append(append(args, buf), s.rope.on(s.k)...)...)
}
