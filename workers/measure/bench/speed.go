package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Speed is the speed of a policy's programs in tokens a second.
type Speed struct {
	Parameters int64 `json:"parameters"`
	// Forward is scoring: log-probs and entropies of whole rows.
	Forward float64 `json:"forward_tokens_per_second"`
	// Training is an optimizer step: forward, backward, AdamW.
	Training float64 `json:"training_tokens_per_second"`
	// Decoding is sampling, the prefill included; new tokens are counted alone.
	Decoding float64 `json:"decoding_new_tokens_per_second"`
	// Compile is the seconds that compiling all programs took.
	Compile float64 `json:"compile_seconds"`
}

// The shapes that speeds are measured at.
const (
	speedRows   = 64  // rows decoded at once
	speedPrompt = 128 // tokens of a prompt, and of a scored row
	speedNew    = 64  // tokens sampled a row
	speedBatch  = 16  // rows of a micro-batch
	speedMicro  = 4   // micro-batches of an optimizer step
)

// optimizer is AdamW as presets have it.
var optimizer = model.Optimizer{LearningRate: 3e-4, Beta1: 0.9, Beta2: 0.999, AdamEpsilon: 1e-8, MaxGradNorm: 1}

// MeasureSpeed times the programs of a starter, repeats times each, in turns.
func MeasureSpeed(ctx context.Context, opened *model.Device, starter spec.Starter, repeats int) (Speed, error) {
	c := device.StarterConfig(starter)
	out := Speed{Parameters: c.Parameters()}
	p, err := opened.Programs(c, nil, model.Shapes{
		GenerateRows: speedRows, PromptTokens: speedPrompt, MaxNewTokens: speedNew, MicroBatch: speedBatch, Sequence: speedPrompt,
	})
	if err != nil {
		return out, err
	}
	defer p.Free()
	begin := time.Now()
	if err := p.Compile(ctx, nil); err != nil {
		return out, fmt.Errorf("compile: %w", err)
	}
	out.Compile = time.Since(begin).Seconds()
	state, err := p.NewState(model.NewParams(c, draw.Address{Purpose: draw.Weights}))
	if err != nil {
		return out, err
	}
	defer func() { state.Free() }()

	var batches []model.MicroBatch
	for i := range speedMicro {
		batches = append(batches, speedRowsOf(c, i))
	}
	gen := model.GenerateInput{Temperature: 1, IgnoreStop: true}
	for row := range speedRows {
		u := make([]float32, speedNew)
		draw.Address{Purpose: draw.Sample, Member: int64(row)}.Uniforms(u)
		gen.Uniforms = append(gen.Uniforms, u)
		gen.Prompts = append(gen.Prompts, batches[row%speedMicro].IDs[row%speedBatch])
	}
	forward := func(ctx context.Context) error { _, _, err := p.Score(ctx, state, batches[0], 1); return err }
	training := func(ctx context.Context) error {
		next, _, err := p.Update(ctx, state, batches, model.Settings{
			Optimizer: optimizer, ClipLow: 0.2, ClipHigh: 0.28, Temperature: 1,
		})
		if err == nil {
			state = next
		}
		return err
	}
	decoding := func(ctx context.Context) error { _, err := p.Generate(ctx, state, gen); return err }
	costs, err := measure(ctx, []workload{{"forward", -1, forward}, {"training", -1, training}, {"decoding", -1, decoding}}, repeats, 0)
	if err != nil {
		return out, err
	}
	out.Forward = speedBatch * speedPrompt / costs[0].Seconds
	out.Training = speedMicro * speedBatch * speedPrompt / costs[1].Seconds
	out.Decoding = speedRows * speedNew / costs[2].Seconds
	return out, nil
}

// speedRowsOf is a micro-batch of drawn ids, with the loss on each row's second half.
func speedRowsOf(c model.Config, number int) model.MicroBatch {
	var b model.MicroBatch
	for row := range speedBatch {
		r := draw.Address{Purpose: draw.Sample, Group: int64(number), Member: int64(row), Turn: 1}.Rand()
		ids := make([]int32, speedPrompt)
		mask, old, advantages := make([]bool, speedPrompt), make([]float32, speedPrompt), make([]float32, speedPrompt)
		for t := range ids {
			ids[t] = int32(r.IntN(c.VocabSize))
			if t >= speedPrompt/2 {
				mask[t], old[t], advantages[t] = true, -6, float32(1-2*(row%2))
			}
		}
		b.IDs, b.Lengths = append(b.IDs, ids), append(b.Lengths, speedPrompt)
		b.Mask, b.OldLogProbs, b.Advantages = append(b.Mask, mask), append(b.OldLogProbs, old), append(b.Advantages, advantages)
		b.RowWeights = append(b.RowWeights, 1)
	}
	return b
}
