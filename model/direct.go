package model

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
)

// directTokens bounds the tokens of a micro-batch that LogProbs chooses.
const directTokens = 8192

// LogProbs scores rows of ids, all of one length L, with a policy. It is for scripts
// and comparisons: all ids are legal and the temperature is 1. A row of logProbs has
// L−1 numbers: at t, log p of token t+1 given the tokens up to t. A row of entropy has L:
// at t, the entropy in nats of the distribution after token t.
func LogProbs(ctx context.Context, d *Device, weights Source, ids [][]int32) (logProbs, entropy [][]float32, err error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	length := len(ids[0])
	for i, row := range ids {
		if len(row) != length || length == 0 {
			return nil, nil, fmt.Errorf("log-probs: %w: row %d has %d ids, row 0 has %d: rows must be of one length, at least 1", ErrInput, i, len(row), length)
		}
	}
	// One more position, so that the distribution after the last token is scored too.
	width := length + 1
	rows := min(len(ids), max(1, directTokens/width))
	p, err := d.Programs(weights.Config, nil, Shapes{MicroBatch: rows, Sequence: width})
	if err != nil {
		return nil, nil, fmt.Errorf("log-probs: %w", err)
	}
	defer p.Free()
	s, err := p.LoadParams(weights)
	if err != nil {
		return nil, nil, fmt.Errorf("log-probs: %w", err)
	}
	defer s.Free()
	for from := 0; from < len(ids); from += rows {
		var b batch.MicroBatch
		for _, row := range ids[from:min(from+rows, len(ids))] {
			b.IDs = append(b.IDs, append(append([]int32{}, row...), 0))
			b.Lengths = append(b.Lengths, int32(width))
		}
		lp, ent, err := p.Scorer.Score(ctx, s, b, 1)
		if err != nil {
			return nil, nil, fmt.Errorf("log-probs: %w", err)
		}
		for i := range lp {
			logProbs = append(logProbs, lp[i][1:length])
			entropy = append(entropy, ent[i][1:width])
		}
	}
	return logProbs, entropy, nil
}

// GenerateOptions are the options of GreedyOrSample.
type GenerateOptions struct {
	// MaxNewTokens is the maximum number of new tokens of a row.
	MaxNewTokens int
	// Temperature divides the logits; 0 selects the likeliest id.
	Temperature float32
	// Stop are the ids that end a row. With IgnoreStop a row continues after them.
	Stop       []int32
	IgnoreStop bool
	// Legal says which ids may be sampled, by id; nil means all.
	Legal []bool
	// At is the address of the random draws; row i draws from At with Member i.
	At draw.Address
}

// GreedyOrSample continues prompts of any lengths with a policy, for scripts
// and comparisons. It returns the new tokens of each row.
func GreedyOrSample(ctx context.Context, d *Device, weights Source, prompts [][]int32, o GenerateOptions) ([][]int32, error) {
	if len(prompts) == 0 {
		return nil, nil
	}
	if o.MaxNewTokens < 1 {
		return nil, fmt.Errorf("generate: %w: MaxNewTokens is %d", ErrInput, o.MaxNewTokens)
	}
	width := 1
	for _, p := range prompts {
		width = max(width, len(p))
	}
	p, err := d.Programs(weights.Config, o.Legal, Shapes{GenerateRows: min(len(prompts), 64), PromptTokens: width,
		MaxNewTokens: o.MaxNewTokens})
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	defer p.Free()
	s, err := p.LoadParams(weights)
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	defer s.Free()
	in := GenerateInput{Prompts: prompts, Temperature: o.Temperature, Stop: o.Stop, IgnoreStop: o.IgnoreStop}
	if o.Temperature > 0 {
		for i := range prompts {
			at := o.At
			at.Member = int64(i)
			u := make([]float32, o.MaxNewTokens)
			at.Uniforms(u)
			in.Uniforms = append(in.Uniforms, u)
		}
	}
	out, err := p.Sampler.Generate(ctx, s, in)
	return out.Tokens, err
}
