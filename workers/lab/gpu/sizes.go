package gpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/hf/families"
	"github.com/reprise-rl/reprise/workers/lab/speed"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// peaks are the most floating-point operations a second of devices, by a part of their kind:
// dense bfloat16, and float32 without tf32, as NVIDIA's data sheets have them.
var peaks = []struct {
	kind              string
	bfloat16, float32 float64
}{
	{"H200", 989e12, 67e12}, {"H100 PCIe", 756e12, 51e12}, {"H100", 989e12, 67e12}, {"A100", 312e12, 19.5e12},
}

// peakOf is the most operations a second of a kind of device; 0 if it is not known.
func peakOf(kind, dtype string) float64 {
	for _, p := range peaks {
		if strings.Contains(kind, p.kind) {
			if dtype == "bfloat16" {
				return p.bfloat16
			}
			return p.float32
		}
	}
	return 0
}

// kernels times single operations.
func kernels(ctx context.Context, m *machine) error {
	d, err := m.open()
	if err != nil {
		return err
	}
	defer d.Close()
	sizes := model.KernelSizes{Side: 4096, Vocabulary: 151_936, Hidden: 896, Tokens: 8192, Repeats: 5}
	if m.Tiny {
		sizes = model.KernelSizes{Side: 128, Vocabulary: 256, Hidden: 32, Tokens: 128, Repeats: 1}
	}
	got, err := d.MeasureKernels(ctx, sizes)
	for _, k := range got {
		f := Figure{Name: fmt.Sprintf("%s, %d wide", k.Name, sizes.Side), Value: k.Operations / k.Seconds / 1e12, Unit: "TFLOP/s"}
		if k.Operations == 0 {
			f = Figure{Name: fmt.Sprintf("%s [%d, %d], %d rows", k.Name, sizes.Vocabulary, sizes.Hidden, sizes.Tokens), Value: 1e3 * k.Seconds, Unit: "ms"}
		}
		if err := m.found(f); err != nil {
			return err
		}
	}
	return err
}

// work is a policy's programs on a probe, with rows.
type work struct {
	programs *model.Programs
	state    *model.State
	batches  []batch.MicroBatch
	generate model.GenerateInput
	compile  float64 // seconds
}

func newWork(ctx context.Context, d *model.Device, c model.Config, shape speed.Shape, dtype string, keep bool) (*work, error) {
	w := &work{generate: model.GenerateInput{Temperature: 1, IgnoreStop: true}}
	for i := range shape.MicroBatches {
		w.batches = append(w.batches, speed.Rows(c, shape, i))
	}
	for row := range shape.Rows {
		u := make([]float32, shape.NewTokens)
		draw.Address{Purpose: draw.Sample, Member: int64(row)}.Uniforms(u)
		w.generate.Uniforms = append(w.generate.Uniforms, u)
		w.generate.Prompts = append(w.generate.Prompts, w.batches[row/shape.MicroBatch%shape.MicroBatches].IDs[row%shape.MicroBatch])
	}
	var err error
	w.programs, err = d.Programs(c, nil, model.Shapes{
		GenerateRows: shape.Rows, PromptTokens: shape.Tokens, MaxNewTokens: shape.NewTokens,
		MicroBatch: shape.MicroBatch, Sequence: shape.Tokens, ComputeDtype: dtype, Keep: keep,
	})
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := w.programs.Compile(ctx, nil); err != nil {
		w.free()
		return nil, fmt.Errorf("compile: %w", err)
	}
	w.compile = time.Since(begin).Seconds()
	if w.state, err = w.programs.Probe(); err != nil {
		w.free()
		return nil, err
	}
	return w, nil
}

func (w *work) free() {
	if w.state != nil {
		w.state.Free()
	}
	w.programs.Free()
}

func (w *work) update(ctx context.Context, batches []batch.MicroBatch) (model.UpdateMetrics, error) {
	next, metrics, err := w.programs.Learner.Update(ctx, w.state, batches, model.Settings{
		Optimizer: speed.Optimizer, ClipLow: 0.2, ClipHigh: 0.28, Temperature: 1,
	})
	w.state = next // nil after an error: an update consumes its state
	return metrics, err
}

// firstTokens is a generation whose rows end with their first token: the draw 0 selects the first
// id, which ends a row.
func (w *work) firstTokens() model.GenerateInput {
	of := w.generate
	of.IgnoreStop, of.Stop = false, []int32{0}
	of.Uniforms = nil
	for _, u := range w.generate.Uniforms {
		of.Uniforms = append(of.Uniforms, make([]float32, len(u)))
	}
	return of
}

// told is what a generation and an update give: the state's fingerprint first.
func (w *work) told(ctx context.Context) (string, error) {
	generated, err := w.programs.Sampler.Generate(ctx, w.state, w.generate)
	if err != nil {
		return "", fmt.Errorf("generate: %w", err)
	}
	metrics, err := w.update(ctx, w.batches)
	if err != nil {
		return "", err
	}
	state, err := w.state.Fingerprint()
	return fmt.Sprint(state, " ", metrics, generated.Tokens, generated.LogProbs), err
}

// sized measures a known model's shape.
func sized(name, dtype string) func(ctx context.Context, m *machine) error {
	return func(ctx context.Context, m *machine) error { return m.measure(ctx, name, dtype) }
}

// Goals for an H100 or H200 at 0.5B in bfloat16.
const (
	generationGoal = 20_000 // new tokens a second
	updateGoal     = 0.17   // of the device's most operations a second
)

func (m *machine) measure(ctx context.Context, name, dtype string) error {
	known, err := families.ByName(name)
	if err != nil {
		return err
	}
	c, repeats := known.Config, 3
	shape := speed.Shape{Tokens: 512, MicroBatch: 8, MicroBatches: 4, Rows: 128, NewTokens: 128}
	if m.Tiny {
		c, shape = m.starterShape()
		repeats = 1
	}
	estimate, keep, err := estimated(c, shape, dtype)
	if err != nil {
		return err
	}
	d, err := m.open()
	if err != nil {
		return err
	}
	defer d.Close()
	w, err := newWork(ctx, d, c, shape, dtype, keep)
	if err != nil {
		return err
	}
	defer w.free()
	built := d.Built()
	if err := errors.Join(
		m.number("parameters", float64(c.Parameters())/1e6, "M"),
		m.text("activations are kept", fmt.Sprint(keep)),
		m.number("programs, compiled or loaded", w.compile, "s"),
		m.text("compiled, loaded, not kept", fmt.Sprintf("%d in %.1f s, %d in %.1f s, %d", built.Compiled, built.CompileSeconds, built.Loaded, built.LoadSeconds, built.CacheFaults)),
	); err != nil {
		return err
	}
	generate, err := fastest(repeats, func() error { _, err := w.programs.Sampler.Generate(ctx, w.state, w.generate); return err })
	if err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	speedOf := float64(shape.Rows*shape.NewTokens) / generate
	f := Figure{Name: fmt.Sprintf("generation, %d rows × (%d + %d)", shape.Rows, shape.Tokens, shape.NewTokens), Value: speedOf, Unit: "new tokens/s"}
	goal := name == "qwen2.5-0.5b" && dtype == "bfloat16" && !m.Tiny
	if goal {
		f.Goal, f.Missed = "20,000", speedOf < generationGoal
	}
	if err := m.found(f); err != nil {
		return err
	}
	prefill, err := fastest(repeats, func() error { _, err := w.programs.Sampler.Generate(ctx, w.state, w.firstTokens()); return err })
	if err != nil {
		return fmt.Errorf("prefill: %w", err)
	}
	if err := errors.Join(
		m.number(fmt.Sprintf("of it the prefill of %d tokens and a step", shape.Rows*shape.Tokens), 1e3*prefill, "ms"),
		m.number("of it each further step of decoding", 1e3*(generate-prefill)/float64(shape.NewTokens-1), "ms"),
	); err != nil {
		return err
	}
	score, err := fastest(repeats, func() error { _, _, err := w.programs.Scorer.Score(ctx, w.state, w.batches[0], 1); return err })
	if err != nil {
		return fmt.Errorf("score: %w", err)
	}
	if err := m.number("scoring", float64(shape.MicroBatch*shape.Tokens)/score, "tokens/s"); err != nil {
		return err
	}
	update, err := fastest(repeats, func() error { _, err := w.update(ctx, w.batches); return err })
	if err != nil {
		return err
	}
	one, err := fastest(repeats, func() error { _, err := w.update(ctx, w.batches[:1]); return err })
	if err != nil {
		return err
	}
	trained := float64(shape.MicroBatches*shape.MicroBatch*shape.Tokens) / update
	if err := m.number(fmt.Sprintf("update, %d × %d × %d", shape.MicroBatches, shape.MicroBatch, shape.Tokens), trained, "tokens/s"); err != nil {
		return err
	}
	batch := (update - one) / float64(shape.MicroBatches-1)
	if err := errors.Join(m.number("of it each micro-batch", 1e3*batch, "ms"), m.number("of it the optimizer's step", 1e3*(one-batch), "ms")); err != nil {
		return err
	}
	if peak := peakOf(d.Fingerprint().DeviceKind, dtype); peak > 0 {
		mfu := 6 * float64(c.Parameters()) * trained / peak
		f := Figure{Name: "update, 6 operations a parameter and token, MFU", Value: 100 * mfu, Unit: "%"}
		if goal {
			f.Goal, f.Missed = "17 %", mfu < updateGoal
		}
		if err := m.found(f); err != nil {
			return err
		}
	}
	begin := time.Now()
	state, err := w.state.Fingerprint()
	if err != nil {
		return err
	}
	if err := m.text("state after the updates", fmt.Sprintf("%s, in %.2f s", state, time.Since(begin).Seconds())); err != nil {
		return err
	}
	return m.memory(d, w, estimate)
}

// fastest is the least time of some calls; one more comes first, which does not count.
func fastest(repeats int, f func() error) (float64, error) {
	least := 0.0
	for i := range repeats + 1 {
		begin := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		if s := time.Since(begin).Seconds(); i > 0 && (least == 0 || s < least) {
			least = s
		}
	}
	return least, nil
}

// memory tells what the device held at most, beside what XLA and `reprise validate` say.
func (m *machine) memory(d *model.Device, w *work, estimate int64) error {
	if err := m.number("memory, as validate --card has it", float64(estimate)/1e9, "GB"); err != nil {
		return err
	}
	if peak := d.PeakMemory(); peak > 0 {
		if err := m.number("memory, the most that was taken", float64(peak)/1e9, "GB"); err != nil {
			return err
		}
	}
	programs, err := w.programs.Memory()
	if err != nil {
		return err
	}
	most, largest := "", int64(0)
	for name, p := range programs {
		if b := p.Bytes(); b > largest || b == largest && name < most {
			most, largest = name, b
		}
	}
	return m.number("memory, the largest program ("+most+"), by XLA", float64(largest)/1e9, "GB")
}

// estimated is what validate says of a run's memory on the device, at a shape, and whether such
// a run keeps activations.
func estimated(c model.Config, shape speed.Shape, dtype string) (peak int64, keep bool, err error) {
	text, err := presets.Read("size-0.5b")
	if err != nil {
		return 0, false, err
	}
	t, err := spec.Decode(text, run.Known())
	if err != nil {
		return 0, false, err
	}
	t.Policy.ComputeDtype = dtype
	t.Rollout.PromptTokens, t.Rollout.MaxNewTokens = []int{shape.Tokens}, shape.NewTokens
	t.Rollout.Groups, t.Rollout.GroupSize, t.Rollout.PassRows = 1, shape.Rows, shape.Rows
	t.Rollout.Prefill = spec.PrefillRows // as here, where no two rows have the same prompt
	t.Update.MicroBatch = shape.MicroBatch
	t.Update.Recompute = spec.RecomputeAuto
	of := run.ShapeOf(c)
	t.Update.Recompute = t.WithSizes(of, text).Update.Recompute
	return spec.Derive(t, of).Memory.Peak, t.Update.Keeps(), nil
}
