package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workers/lab/medians"
	"github.com/reprise-rl/reprise/workers/lab/speed"
	"github.com/reprise-rl/reprise/workers/train"
)

// Exactness is what policy.exact costs a policy: each kind of work in turns with it and without.
type Exactness struct {
	Model string `json:"model"`
	Dtype string `json:"dtype"`
	// Decoding, Score and Update are seconds of all processors.
	Decoding Exacted `json:"decoding"`
	Score    Exacted `json:"score"`
	Update   Exacted `json:"update"`
	// Iteration is the seconds of an iteration of bandit-demo, called directly; of the starter in float32 alone. With policy.exact
	// it has no Score.
	Iteration Exacted `json:"iteration,omitzero"`
}

// Exacted is a kind of work with policy.exact and without.
type Exacted struct {
	With    float64 `json:"with_seconds"`
	Without float64 `json:"without_seconds"`
	// Ratio is the median of the turns' ratios.
	Ratio float64 `json:"ratio"`
}

// exactness measures the starter and the wide policy, or that of a folder, in both dtypes.
func (s *benchmark) exactness(ctx context.Context) error {
	subjects := []speed.Subject{
		{Name: "starter", Config: device.StarterConfig(s.starter), Shape: starterShape},
		{Name: "wide", Config: speed.Wide(), Shape: wideShape},
	}
	if s.Model != "" {
		c, err := architecture(s.Model)
		if err != nil {
			return err
		}
		subjects = []speed.Subject{{Name: filepath.Base(s.Model), Config: c, Shape: folderShape}}
	}
	return s.onDevice(func(d *model.Device) error {
		for _, of := range subjects {
			for _, dtype := range []string{"float32", "bfloat16"} {
				s.say(fmt.Sprintf("measuring policy.exact: %s in %s", of.Name, dtype))
				e, err := s.exactnessOf(ctx, d, of, dtype)
				if err == nil && of.Name == "starter" && dtype == "float32" {
					e.Iteration, err = s.iterations(ctx, d)
				}
				if err != nil {
					return fmt.Errorf("%s in %s: %w", of.Name, dtype, err)
				}
				s.r.Exact = append(s.r.Exact, e)
			}
		}
		return nil
	})
}

// exactSide is a policy with policy.exact or without.
type exactSide struct {
	programs *model.Programs
	state    *model.State
}

func newExactSide(ctx context.Context, d *model.Device, of speed.Subject, dtype string, exact bool) (*exactSide, error) {
	p, err := d.Programs(of.Config, nil, model.Shapes{
		GenerateRows: of.Shape.Rows, PromptTokens: of.Shape.PromptTokens, MaxNewTokens: of.Shape.NewTokens,
		MicroBatch: of.Shape.MicroBatch, Sequence: of.Shape.Tokens, ComputeDtype: dtype, Exact: exact, Keep: true,
	})
	if err != nil {
		return nil, err
	}
	side := &exactSide{programs: p}
	if err = p.Compile(ctx, nil); err == nil {
		side.state, err = p.NewState(model.NewParams(of.Config, draw.Address{Purpose: draw.Weights}))
	}
	if err != nil {
		side.free()
		return nil, err
	}
	return side, nil
}

func (e *exactSide) free() {
	if e.state != nil {
		e.state.Free()
	}
	e.programs.Free()
}

// exactnessOf measures a policy.
func (s *benchmark) exactnessOf(ctx context.Context, d *model.Device, of speed.Subject, dtype string) (Exactness, error) {
	out := Exactness{Model: of.Name, Dtype: dtype}
	var sides [2]*exactSide // without and with
	for i := range sides {
		side, err := newExactSide(ctx, d, of, dtype, i == 1)
		if err != nil {
			return out, err
		}
		defer side.free()
		sides[i] = side
	}
	var batches []batch.MicroBatch
	for i := range of.Shape.MicroBatches {
		batches = append(batches, speed.Rows(of.Config, of.Shape, i))
	}
	sampled := model.GenerateInput{Temperature: 1, IgnoreStop: true}
	for row := range of.Shape.Rows {
		u := make([]float32, of.Shape.NewTokens)
		draw.Address{Purpose: draw.Sample, Member: int64(row)}.Uniforms(u)
		sampled.Uniforms = append(sampled.Uniforms, u)
		ids := batches[row/of.Shape.MicroBatch%len(batches)].IDs[row%of.Shape.MicroBatch]
		sampled.Prompts = append(sampled.Prompts, ids[:of.Shape.PromptTokens])
	}
	settings := model.Settings{Optimizer: speed.Optimizer, ClipLow: 0.2, ClipHigh: 0.28, Temperature: 1}
	for _, work := range []struct {
		to *Exacted
		do func(*exactSide) error
	}{
		{&out.Decoding, func(e *exactSide) error {
			_, err := e.programs.Sampler.Generate(ctx, e.state, sampled)
			return err
		}},
		{&out.Score, func(e *exactSide) error {
			_, err := e.programs.Scorer.ScoreAll(ctx, e.state, batches, 1)
			return err
		}},
		{&out.Update, func(e *exactSide) (err error) {
			e.state, _, err = e.programs.Learner.Update(ctx, e.state, batches, settings)
			return err
		}},
	} {
		var ratios []float64
		var each [2][]float64
		for range max(s.Repeats, 3) {
			for i, side := range sides {
				took, err := processorOf(leastWork, func() error { return work.do(side) })
				if err != nil {
					return out, err
				}
				each[i] = append(each[i], took)
			}
			ratios = append(ratios, each[1][len(each[1])-1]/each[0][len(each[0])-1])
		}
		*work.to = Exacted{Without: medians.Of(each[0]), With: medians.Of(each[1]), Ratio: medians.Of(ratios)}
	}
	return out, nil
}

// exactIterations are those of a run that is measured, and exactWarm the first of them, which are not.
const (
	exactIterations = 12
	exactWarm       = 2
)

// iterations measures the iterations of bandit-demo with policy.exact and without, a run of each in turns.
func (s *benchmark) iterations(ctx context.Context, d *model.Device) (out Exacted, err error) {
	engine, err := device.NewEngine(d)
	if err != nil {
		return out, err
	}
	var ratios []float64
	var each [2][]float64
	kept := store.NewMemory() // the warm starts are made once
	for turn := range max(s.Repeats, 3) {
		for i := range each { // without and with
			text, err := presets.With("bandit-demo", map[string]any{
				"policy": map[string]any{"exact": i == 1}, "iterations": exactIterations, "evaluation": map[string]any{"every": 0},
			})
			if err != nil {
				return out, err
			}
			trained, err := train.New(engine, kept).Train(ctx, fmt.Sprintf("exact-%d-%d", turn, i), text)
			if err != nil {
				return out, err
			}
			var took []float64
			for _, of := range trained.Iterations[exactWarm:] {
				took = append(took, of.Seconds)
			}
			each[i] = append(each[i], medians.Of(took))
		}
		ratios = append(ratios, each[1][turn]/each[0][turn])
	}
	return Exacted{Without: medians.Of(each[0]), With: medians.Of(each[1]), Ratio: medians.Of(ratios)}, nil
}

// processorOf repeats work for at least so long, and gives the processor seconds of one time.
func processorOf(least time.Duration, work func() error) (float64, error) {
	before, err := processorTime()
	if err != nil {
		return 0, err
	}
	times := 0
	for begin := time.Now(); times == 0 || time.Since(begin) < least; times++ {
		if err := work(); err != nil {
			return 0, err
		}
	}
	after, err := processorTime()
	return (after - before).Seconds() / float64(times), err
}

func printExact(b *strings.Builder, all []Exactness) {
	fmt.Fprint(b, "\npolicy.exact, seconds of all processors with it and without, in turns\n\n")
	table(b, "policy\tdtype\tdecoding\tratio\tscore\tratio\tupdate\tratio\t", func(w io.Writer) {
		for _, e := range all {
			fmt.Fprintf(w, "%s\t%s\t", e.Model, e.Dtype)
			for _, of := range []Exacted{e.Decoding, e.Score, e.Update} {
				fmt.Fprintf(w, "%.3f / %.3f\t%.2f\t", of.With, of.Without, of.Ratio)
			}
			fmt.Fprintln(w)
		}
	})
	for _, e := range all {
		if e.Iteration.Ratio > 0 {
			fmt.Fprintf(b, "\nan iteration of bandit-demo: %.3f / %.3f s, %.2f\n", e.Iteration.With, e.Iteration.Without, e.Iteration.Ratio)
		}
	}
}
