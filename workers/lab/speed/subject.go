package speed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
)

// Shape is the sizes of the work.
type Shape struct {
	// Tokens is the tokens of a row that is scored or trained on.
	Tokens int `json:"tokens"`
	// MicroBatch is the rows of a micro-batch, MicroBatches how many an optimizer step has.
	MicroBatch   int `json:"micro_batch"`
	MicroBatches int `json:"micro_batches"`
	// Rows are sampled at once, NewTokens of each after a prompt of PromptTokens, at most Tokens.
	Rows         int `json:"rows"`
	PromptTokens int `json:"prompt_tokens"`
	NewTokens    int `json:"new_tokens"`
	// BlockRows are sampled, up to NewTokens of each: in passes of Rows, and in a block that has
	// Rows slots.
	BlockRows int `json:"block_rows"`
}

// Optimizer is AdamW as presets have it.
var Optimizer = model.Optimizer{LearningRate: 3e-4, Beta1: 0.9, Beta2: 0.999, AdamEpsilon: 1e-8, MaxGradNorm: 1}

// weights is the address that the weights are drawn at.
var weights = draw.Address{Purpose: draw.Weights}

// subject is a policy at work.
type subject struct {
	Subject
	programs *model.Programs
	blocks   *model.Programs // that sample in blocks
	state    *model.State
	clock    *clock
	batches  []batch.MicroBatch
	generate model.GenerateInput
	block    model.GenerateInput // rows of unequal lengths
	groups   model.GenerateInput // the same in groups
	lengths  []int               // of the rows of block
	settings model.Settings
	compiled float64 // seconds
	loss     float64 // of the first optimizer step
	trained  bool
}

func newSubject(ctx context.Context, d *model.Device, c *clock, of Subject) (_ *subject, err error) {
	config, shape := of.Config, of.Shape
	s := &subject{
		Subject: of, clock: c,
		settings: model.Settings{Optimizer: Optimizer, ClipLow: 0.2, ClipHigh: 0.28, Temperature: 1},
		generate: model.GenerateInput{Temperature: 1, IgnoreStop: true},
	}
	defer func() {
		if err != nil {
			s.free()
		}
	}()
	for i := range shape.MicroBatches {
		s.batches = append(s.batches, Rows(config, shape, i))
	}
	for row := range shape.Rows {
		u := make([]float32, shape.NewTokens)
		draw.Address{Purpose: draw.Sample, Member: int64(row)}.Uniforms(u)
		s.generate.Uniforms = append(s.generate.Uniforms, u)
		s.generate.Prompts = append(s.generate.Prompts, s.prompt(row))
	}
	s.lengths = shape.lengths()
	s.block = s.unequal(s.lengths, 1)
	s.groups = s.unequal(s.lengths, GroupRows)
	s.programs, err = d.Programs(config, nil, model.Shapes{
		GenerateRows: shape.Rows, PromptTokens: shape.PromptTokens, MaxNewTokens: shape.NewTokens, MicroBatch: shape.MicroBatch,
		Sequence: shape.Tokens,
		Keep:     true, // as runs of these sizes do: see spec.Train.WithSizes
	})
	if err != nil {
		return nil, err
	}
	s.blocks, err = d.Programs(config, nil, model.Shapes{
		GenerateRows: shape.Rows, BlockRows: shape.BlockRows, PromptTokens: shape.PromptTokens, MaxNewTokens: shape.NewTokens,
	})
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for _, programs := range []*model.Programs{s.programs, s.blocks} {
		if err := programs.Compile(ctx, nil); err != nil {
			return nil, fmt.Errorf("compile: %w", err)
		}
	}
	s.compiled = time.Since(begin).Seconds()
	s.state, err = s.programs.NewState(model.NewParams(config, weights))
	return s, err
}

func (s *subject) free() {
	if s.state != nil {
		s.state.Free()
	}
	for _, programs := range []*model.Programs{s.programs, s.blocks} {
		if programs != nil {
			programs.Free()
		}
	}
}

// prompt is the prompt of a row that is sampled: the beginning of a row of the micro-batches.
func (s *subject) prompt(row int) []int32 {
	rows := s.Shape.MicroBatch
	return s.batches[row/rows%s.Shape.MicroBatches].IDs[row%rows][:s.Shape.PromptTokens]
}

// Rows is a micro-batch of drawn ids, with the loss on each row's second half.
func Rows(c model.Config, shape Shape, number int) batch.MicroBatch {
	var b batch.MicroBatch
	width := shape.Tokens
	for row := range shape.MicroBatch {
		r := draw.Address{Purpose: draw.Sample, Group: int64(number), Member: int64(row), Turn: 1}.Rand()
		ids := make([]int32, width)
		mask, old, advantages := make([]bool, width), make([]float32, width), make([]float32, width)
		for t := range ids {
			ids[t] = int32(r.IntN(c.VocabSize))
			if t >= width/2 {
				mask[t], old[t], advantages[t] = true, -6, float32(1-2*(row%2))
			}
		}
		b.IDs, b.Lengths = append(b.IDs, ids), append(b.Lengths, int32(width))
		b.Mask, b.Columns[batch.OldLogProbs] = append(b.Mask, mask), append(b.Columns[batch.OldLogProbs], old)
		b.Columns[batch.Advantages] = append(b.Columns[batch.Advantages], advantages)
		b.RowWeights = append(b.RowWeights, 1)
	}
	return b
}

// here repeats a kind of work of the programs.
func (s *subject) here(ctx context.Context, kind int) (timing, error) {
	run := [kinds]func(context.Context) error{s.score, s.update, s.sample, s.sampleUnequal, s.sampleBlock, s.sampleGroups}[kind]
	processor, err := processorTime()
	if err != nil {
		return timing{}, err
	}
	begin, times := time.Now(), 0
	for times == 0 || time.Since(begin) < s.Least {
		if err := run(ctx); err != nil {
			return timing{}, fmt.Errorf("%s: %w", kindNames[kind], err)
		}
		times++
	}
	passed := time.Since(begin)
	after, err := processorTime()
	return timing{passed.Seconds() / float64(times), (after - processor).Seconds() / float64(times)}, err
}

func (s *subject) score(ctx context.Context) error {
	_, _, err := s.programs.Scorer.Score(ctx, s.state, s.batches[0], 1)
	return err
}

func (s *subject) update(ctx context.Context) error {
	s.clock.start()
	next, metrics, err := s.programs.Learner.Update(ctx, s.state, s.batches, s.settings)
	s.clock.stop()
	if err != nil {
		return err
	}
	s.state = next
	if metrics.Skipped {
		return errors.New("the loss or its gradient was not finite")
	}
	if !s.trained {
		s.trained, s.loss = true, metrics.Loss
	}
	return nil
}

func (s *subject) sample(ctx context.Context) error {
	_, err := s.programs.Sampler.Generate(ctx, s.state, s.generate)
	return err
}

func (s *subject) sampleUnequal(ctx context.Context) error {
	return s.sampleLengths(ctx, s.programs.Sampler, s.block)
}

func (s *subject) sampleBlock(ctx context.Context) error {
	return s.sampleLengths(ctx, s.blocks.Sampler, s.block)
}

func (s *subject) sampleGroups(ctx context.Context) error {
	return s.sampleLengths(ctx, s.blocks.Sampler, s.groups)
}

func (s *subject) sampleLengths(ctx context.Context, by *model.Sampler, in model.GenerateInput) error {
	out, err := by.Generate(ctx, s.state, in)
	if err != nil {
		return err
	}
	return checkLengths(out.Tokens, s.lengths)
}

// processorTime is the processor time of this process so far. Linux only.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// clock records how long the programs of an update take, with what the host does until the
// next one begins.
type clock struct {
	running bool
	program string
	since   time.Time
	spent   map[string]time.Duration
}

// start begins a new record.
func (c *clock) start() { *c = clock{running: true, spent: map[string]time.Duration{}} }

// begin is called before each execution of a program.
func (c *clock) begin(program string) error {
	if c.running {
		c.next(program)
	}
	return nil
}

func (c *clock) next(program string) {
	now := time.Now()
	if c.program != "" {
		c.spent[c.program] += now.Sub(c.since)
	}
	c.program, c.since = program, now
}

func (c *clock) stop() {
	c.next("")
	c.running = false
}

// applyOverBackward is the time of the norm's and AdamW's programs over that of the backward
// programs, in the last update.
func (c *clock) applyOverBackward() float64 {
	var apply, backward time.Duration
	for program, spent := range c.spent {
		kind, _, _ := strings.Cut(program, " ")
		switch kind {
		case "square", "apply":
			apply += spent
		case "backward":
			backward += spent
		}
	}
	return apply.Seconds() / max(backward, 1).Seconds()
}
