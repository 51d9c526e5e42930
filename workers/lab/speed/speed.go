// Package speed measures the speed of a policy's programs: scoring, an optimizer step and
// sampling, compared with torch and transformers on the same weights, rows and loss if there
// is a Python that has them.
//
// Both sides work in turns, so that other load on the machine slows both. A ratio is the
// median of the turns' ratios.
package speed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/lab/medians"
)

// Goals are the least speeds relative to torch at the same instruction set.
const (
	ForwardGoal  = 1.1
	TrainingGoal = 1.0
)

// Speeds is the speed of policies of several sizes.
type Speeds struct {
	Models []Model `json:"models"`
	Python Python  `json:"python"`
}

// Python is the Python that was compared with.
type Python struct {
	Path         string `json:"path,omitempty"`
	Version      string `json:"version,omitempty"`
	Torch        string `json:"torch,omitempty"`
	Transformers string `json:"transformers,omitempty"`
	// Capability is the instruction set that torch chooses as it comes.
	Capability string `json:"capability,omitempty"`
	// Missing is why it was not measured; "" if it was.
	Missing string `json:"missing,omitempty"`
}

// Model is the speed of the programs of one size.
type Model struct {
	Name       string `json:"name"`
	Parameters int64  `json:"parameters"`
	Shape      Shape  `json:"shape"`
	// Forward is scoring: log-probs and entropies of the rows of a micro-batch.
	Forward Figure `json:"forward"`
	// Training is an optimizer step: forward, backward, AdamW. The state's fingerprint is
	// not part of it.
	Training Figure `json:"training"`
	// Decoding is sampling, the prefill included; new tokens are counted alone.
	Decoding Figure `json:"decoding"`
	// Unequal is the same for rows of unequal lengths, in passes of Rows, Block in a block of them, and Groups
	// in a block where GroupRows neighbours have the same prompt, as the members of a group in their first
	// turn: beside the same work of torch, which prefills each row. Spread is the longest over the mean.
	Unequal Figure  `json:"unequal"`
	Block   Figure  `json:"block"`
	Groups  Figure  `json:"groups"`
	Spread  float64 `json:"spread"`
	// DecodingGoal is the subject's.
	DecodingGoal float64 `json:"decoding_goal"`
	// Fingerprint is the seconds of a state's fingerprint, Compile of compiling all programs.
	Fingerprint float64 `json:"fingerprint_seconds"`
	Compile     float64 `json:"compile_seconds"`
	// Apply is the time of AdamW with the gradient's norm, over that of the backward
	// programs of the step's micro-batches.
	Apply float64 `json:"apply_over_backward"`
}

// Figure is the speed of a kind of work.
type Figure struct {
	PerSecond float64 `json:"tokens_per_second"`
	// Torch is torch as it comes; TorchAVX2 is held to the instruction set of the
	// code that XLA generates; its matrix kernels may use a newer one.
	Torch     Beside `json:"torch"`
	TorchAVX2 Beside `json:"torch_avx2"`
}

// Beside is torch's speed at the same work; zero if it was not measured.
type Beside struct {
	PerSecond float64 `json:"tokens_per_second,omitempty"`
	// Ratio is our speed over torch's, ProcessorRatio torch's processor time over ours:
	// above 1, ours is faster.
	Ratio          float64 `json:"ratio,omitempty"`
	ProcessorRatio float64 `json:"processor_ratio,omitempty"`
}

// Subject is a model whose speed is to be measured.
type Subject struct {
	Name   string
	Config model.Config
	Shape  Shape
	// Turns is how often each kind of work is timed, and Least how long it is repeated in a
	// turn; 0 is once.
	Turns int
	Least time.Duration
	// DecodingGoal is the least speed of sampling relative to transformers at the same
	// instruction set, where all rows are equally long.
	DecodingGoal float64
}

// Wide is the architecture of 42 M parameters that is measured beside the starter.
func Wide() model.Config {
	return model.Config{
		VocabSize: 8192, HiddenSize: 512, IntermediateSize: 1536, Layers: 12, Heads: 8, KVHeads: 4, HeadDim: 64,
		MaxPositions: 1024, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.02,
	}
}

// Measure measures the subjects on a device that was not used before. python is a path or a
// name on PATH of a Python to compare with. say receives progress.
func Measure(ctx context.Context, d *model.Device, subjects []Subject, python string, say func(string)) (Speeds, error) {
	out := Speeds{}
	var err error
	if out.Python.Path, err = exec.LookPath(python); err != nil {
		out.Python.Missing = "there is no " + python
	}
	c := &clock{}
	d.Before = c.begin
	for _, s := range subjects {
		m, err := measure(ctx, d, c, s, &out.Python, say)
		if err != nil {
			return out, fmt.Errorf("%s: %w", s.Name, err)
		}
		out.Models = append(out.Models, m)
	}
	return out, nil
}

func measure(ctx context.Context, d *model.Device, c *clock, of Subject, python *Python, say func(string)) (Model, error) {
	out := Model{Name: of.Name, Parameters: of.Config.Parameters(), Shape: of.Shape, DecodingGoal: of.DecodingGoal}
	say(fmt.Sprintf("%s, %.2f M parameters: compiling", of.Name, float64(out.Parameters)/1e6))
	s, err := newSubject(ctx, d, c, of)
	if err != nil {
		return out, err
	}
	defer s.free()
	out.Compile = s.compiled
	sides, err := besides(ctx, s, python)
	if err != nil {
		return out, err
	}
	defer sides.end()
	times := make([]turn, 0, of.Turns)
	for i := range of.Turns + 1 {
		t, err := s.turn(ctx, sides, i)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if errors.Is(err, errTorch) { // the bench continues without it
			python.Missing = err.Error()
			sides.end()
			sides = nil
			t, err = s.turn(ctx, sides, i)
		}
		if err != nil {
			return out, err
		}
		if i > 0 { // the first warms up
			times = append(times, t)
			say(fmt.Sprintf("turn %d of %d", i, of.Turns))
		}
	}
	tokens := float64(of.Shape.Tokens * of.Shape.MicroBatch)
	out.Forward = figure(times, forward, tokens)
	out.Training = figure(times, training, tokens*float64(of.Shape.MicroBatches))
	out.Decoding = figure(times, decoding, float64(of.Shape.Rows*of.Shape.NewTokens))
	out.Unequal = figure(times, unequal, float64(sum(s.lengths)))
	out.Block = figure(times, block, float64(sum(s.lengths)))
	out.Groups = figure(times, groups, float64(sum(s.lengths)))
	out.Spread = spread(s.lengths)
	out.Fingerprint = medians.By(times, func(t turn) float64 { return t.fingerprint })
	out.Apply = medians.By(times, func(t turn) float64 { return t.apply })
	return out, nil
}

// kinds are the kinds of work.
const (
	forward = iota
	training
	decoding
	unequal // decoding, with rows of unequal lengths
	block   // unequal, in a block; torch has no such thing
	groups  // block, where the rows of a group have one prompt; torch prefills each
	kinds
)

var kindNames = [kinds]string{"forward", "training", "decoding", "unequal", "block", "groups"}

// timing is the mean of the repetitions of a work in a turn, in seconds.
type timing struct{ seconds, processor float64 }

// turn is the times of one turn. Without torch, its times are zero.
type turn struct {
	here               [kinds]timing
	beside             [besideCount][kinds]timing
	fingerprint, apply float64
}

// Places of the sides of torch.
const (
	asItComes = iota
	heldToAVX2
	besideCount
)

// figure summarizes the turns of a kind of work on so many tokens.
func figure(turns []turn, kind int, tokens float64) Figure {
	perSecond := func(of func(turn) timing) float64 {
		return tokens / medians.By(turns, func(t turn) float64 { return of(t).seconds })
	}
	here := func(t turn) timing { return t.here[kind] }
	out := Figure{PerSecond: perSecond(here)}
	for side, into := range []*Beside{asItComes: &out.Torch, heldToAVX2: &out.TorchAVX2} {
		beside := func(t turn) timing { return t.beside[side][kind] }
		if slices.ContainsFunc(turns, func(t turn) bool { return beside(t).seconds == 0 }) {
			continue
		}
		*into = Beside{
			PerSecond:      perSecond(beside),
			Ratio:          medians.By(turns, func(t turn) float64 { return beside(t).seconds / here(t).seconds }),
			ProcessorRatio: medians.By(turns, func(t turn) float64 { return beside(t).processor / here(t).processor }),
		}
	}
	return out
}

// errTorch is the kind of errors of Python's side.
var errTorch = errors.New("torch")

// sides are the Pythons that are compared with, in the order of asItComes and heldToAVX2.
type sides []*torch

// besides starts the Pythons. Without one that has torch and transformers it records why and
// returns none.
func besides(ctx context.Context, s *subject, python *Python) (sides, error) {
	if python.Missing != "" {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "reprise-speed-")
	if err != nil {
		return nil, fmt.Errorf("write the policy for torch: %w", err)
	}
	defer os.RemoveAll(dir) // it is read at the start
	if err := writeTorch(dir, s); err != nil {
		return nil, fmt.Errorf("write the policy for torch: %w", err)
	}
	var out sides
	for _, environment := range [][]string{asItComes: nil, heldToAVX2: avx2} {
		t, err := startTorch(ctx, python.Path, dir, environment)
		if err != nil {
			out.end()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			python.Missing = err.Error()
			return nil, nil
		}
		out = append(out, t)
	}
	hello := out[asItComes].hello
	python.Version, python.Torch, python.Transformers, python.Capability = hello.Python, hello.Torch, hello.Transformers, hello.Capability
	return out, nil
}

func (s sides) end() {
	for _, t := range s {
		t.end()
	}
}

// turn times each kind of work on each side. The order of the sides alternates.
func (s *subject) turn(ctx context.Context, beside sides, number int) (turn, error) {
	var t turn
	for kind := range kinds {
		works := []func() error{func() (err error) {
			t.here[kind], err = s.here(ctx, kind)
			if kind == training {
				t.apply = s.clock.applyOverBackward()
			}
			return err
		}}
		for side, python := range beside {
			if kind > unequal {
				t.beside[side][kind] = t.beside[side][unequal]
				continue
			}
			works = append(works, func() (err error) {
				t.beside[side][kind], err = s.torch(python, kind)
				return err
			})
		}
		if number%2 == 1 {
			slices.Reverse(works)
		}
		for _, work := range works {
			if err := work(); err != nil {
				return t, err
			}
		}
	}
	begin := time.Now()
	_, err := s.state.Fingerprint()
	t.fingerprint = time.Since(begin).Seconds()
	return t, err
}

// torch repeats a kind of work of torch.
func (s *subject) torch(python *torch, kind int) (timing, error) {
	var all timing
	times := 0
	for times == 0 || all.seconds < s.Least.Seconds() {
		a, err := python.work(kindNames[kind])
		if err != nil {
			return all, fmt.Errorf("%w: %w", errTorch, err)
		}
		if kind == training && !python.trained {
			python.trained = true
			if math.Abs(a.Result-s.loss) > lossTolerance {
				return all, fmt.Errorf("%w: the loss of its first step is %v, ours %v", errTorch, a.Result, s.loss)
			}
		}
		all.seconds, all.processor = all.seconds+a.Seconds, all.processor+a.Processor
		times++
	}
	return timing{all.seconds / float64(times), all.processor / float64(times)}, nil
}

// lossTolerance is how much the loss of the first step may differ: both sides must do the
// same work.
const lossTolerance = 1e-3
