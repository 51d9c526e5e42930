package model

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
)

// Exactness is how many tokens have other numbers by the scorer than by the sampler.
type Exactness struct {
	Tokens, Differing int
	// First is the first of those that differ.
	First Difference
}

// Difference is a number of a token that is not the same by the sampler and by the scorer, to the bit.
type Difference struct {
	// What is the log-prob or the entropy.
	What string
	// Row is the token's row, Place its place in it, and Width the tokens of the scorer's rows.
	Row, Place, Width int
	Sampler, Scorer   float32
}

func (d Difference) String() string {
	return fmt.Sprintf("the %s of row %d at place %d is %v by the sampler and %v by the trainer in rows of %d", d.What, d.Row, d.Place, d.Sampler, d.Scorer, d.Width)
}

// ScoreAgain scores what the sampler has given for an input, in rows of each width that the scorer has and the rows fit, and compares
// the log-probs and the entropies.
func (p *Programs) ScoreAgain(ctx context.Context, s *State, in GenerateInput, got GenerateOutput) (Exactness, error) {
	out, temperature, longest := Exactness{}, in.Temperature, 0
	if in.Greedy || temperature == 0 {
		temperature = 1
	}
	for i, prompt := range in.Prompts {
		longest = max(longest, len(prompt)+len(got.Tokens[i]))
	}
	for _, width := range append([]int{p.sh.Sequence}, p.sh.Narrower[:]...) {
		if width < longest {
			continue
		}
		var batches []batch.MicroBatch
		for from := 0; from < len(in.Prompts); from += p.sh.MicroBatch {
			b := batch.MicroBatch{Width: width}
			for i := from; i < min(from+p.sh.MicroBatch, len(in.Prompts)); i++ {
				ids := slices.Concat(in.Prompts[i], got.Tokens[i])
				b.Lengths = append(b.Lengths, int32(len(ids)))
				b.IDs = append(b.IDs, append(ids, make([]int32, width-len(ids))...))
			}
			batches = append(batches, b)
		}
		scores, err := p.Scorer.ScoreAll(ctx, s, batches, temperature)
		if err != nil {
			return out, err
		}
		for i, prompt := range in.Prompts {
			by, k := scores[i/p.sh.MicroBatch], i%p.sh.MicroBatch
			for j := range got.Tokens[i] {
				at := len(prompt) + j
				out.compare(Difference{"log-prob", i, at, width, got.LogProbs[i][j], by.LogProbs[k][at]},
					Difference{"entropy", i, at, width, got.Entropies[i][j], by.Entropies[k][at]})
			}
		}
	}
	return out, nil
}

// compare counts a token by its numbers.
func (e *Exactness) compare(figures ...Difference) {
	e.Tokens++
	for _, f := range figures {
		if math.Float32bits(f.Sampler) != math.Float32bits(f.Scorer) {
			if e.Differing++; e.Differing == 1 {
				e.First = f
			}
			return
		}
	}
}

// ExactCheck is what CheckExact finds.
type ExactCheck struct {
	Exactness
	// Widths are those of the scorer's rows.
	Widths []int
	Pieces []Piece
}

// Exact says whether nothing differs.
func (c ExactCheck) Exact() bool {
	return c.Differing == 0 && !slices.ContainsFunc(c.Pieces, func(p Piece) bool { return len(p.Differing) > 0 })
}

// String says what differs, or how much was compared.
func (c ExactCheck) String() string {
	if c.Exact() {
		return fmt.Sprintf("%d tokens in rows of %v, and %d pieces of the network in few rows and many, have the same bits", c.Tokens, c.Widths, len(c.Pieces))
	}
	if c.Differing == 0 {
		return fmt.Sprintf("%d tokens in rows of %v have the same bits; %s", c.Tokens, c.Widths, SayPieces(c.Pieces))
	}
	return fmt.Sprintf("%d of %d tokens differ: %v; %s", c.Differing, c.Tokens, c.First, SayPieces(c.Pieces))
}

// exactShapes are the shapes in which CheckExact samples and scores. Some kernels divide what is wider than 512, and rows that are no
// multiple of 4 have some that are computed one by one.
var exactShapes = []Shapes{
	{GenerateRows: 6, PromptTokens: 40, MaxNewTokens: 16, MicroBatch: 4, Sequence: 72, Narrower: [2]int{60}, Exact: true},
	{GenerateRows: 3, PromptTokens: 600, MaxNewTokens: 4, MicroBatch: 2, Sequence: 620, Exact: true},
}

// CheckExact samples by a network of c with made-up weights, in float32 or bfloat16, scores what was sampled, and compares the bits; then
// it computes the pieces of the network with such numbers of rows. c must have MaxPositions of 620 or more.
func (d *Device) CheckExact(ctx context.Context, c Config, dtype string, rows []int) (out ExactCheck, err error) {
	var widths []int
	for _, sh := range exactShapes {
		sh.ComputeDtype = dtype
		e, err := d.sampleAndScore(ctx, c, sh)
		if err != nil {
			return out, fmt.Errorf("compare the sampler with the scorer in rows of %d: %w", sh.Sequence, err)
		}
		if out.Differing == 0 {
			out.First = e.First
		}
		out.Tokens, out.Differing = out.Tokens+e.Tokens, out.Differing+e.Differing
		out.Widths, widths = append(out.Widths, sh.Sequence), append(widths, sh.PromptTokens)
	}
	if out.Pieces, err = d.ExactPieces(ctx, c, dtype, PieceSizes{Rows: rows, Widths: widths}); err != nil {
		return out, fmt.Errorf("compare the pieces of the network: %w", err)
	}
	return out, nil
}

func (d *Device) sampleAndScore(ctx context.Context, c Config, sh Shapes) (Exactness, error) {
	p, err := d.Programs(c, nil, sh)
	if err != nil {
		return Exactness{}, err
	}
	defer p.Free()
	s, err := p.Probe()
	if err != nil {
		return Exactness{}, err
	}
	defer s.Free()
	r := draw.Address{Purpose: "exact"}.Rand()
	in := GenerateInput{Temperature: 1, IgnoreStop: true}
	for i := range sh.GenerateRows {
		prompt, u := make([]int32, sh.PromptTokens-i), make([]float32, sh.MaxNewTokens)
		for j := range prompt {
			prompt[j] = r.Int32N(int32(c.VocabSize))
		}
		for j := range u {
			u[j] = r.Float32()
		}
		in.Prompts, in.Uniforms = append(in.Prompts, prompt), append(in.Uniforms, u)
	}
	got, err := p.Sampler.Generate(ctx, s, in)
	if err != nil {
		return Exactness{}, err
	}
	return p.ScoreAgain(ctx, s, in, got)
}
