package device

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

const (
	// selfTestBatches are the micro-batches of the self-test's update.
	selfTestBatches = 2
	// selfTestTokens is the most that the self-test samples in a row.
	selfTestTokens = 8
)

// selfTestName is what the record of a passed self-test says. A test that finds more has
// another name.
const selfTestName = "self-test 2: an update of two micro-batches and a generation, twice each, and its scores"

// selfTest has the device repeat itself with the programs that train a run: an update of two
// micro-batches and a generation, twice each, on probes. Programs are tested once before they
// train in a process, unless the cache of programs has the record that this device has
// passed. Where the process has several devices, each computes the same once, and they must agree.
// The test needs the memory of a version, so it drops the version in memory.
func (w *work) selfTest(ctx context.Context, run activities.Run, second bool) error {
	begin := time.Now()
	defer func() {
		took := time.Since(begin).Seconds()
		w.measured.CompileSeconds += took
		w.measured.SelfTestSeconds += took
	}()
	draws := draw.Address{Purpose: "self-test"}.Rand()
	settings := spec.SettingsOf(w.Train)
	shapes := w.Shapes(w.Training, 1)
	p, err := w.engine.programsFor(w.Context, run, shapes)
	if err != nil {
		return err
	}
	if err := w.testOnce(policyKey(w.Context, run, shapes), p, func() error {
		generate := w.selfTestPrompts(shapes, draws)
		if err := w.repeatsGeneration(ctx, p, generate); err != nil {
			return err
		}
		batches, knobs := w.selfTestRows(shapes, draws), modelSettings(settings, settings.Update.LearningRate)
		if err := w.repeats(ctx, "an update", p, func(probe *model.State) (string, *model.State, error) {
			next, m, err := p.Learner.Update(ctx, probe, batches, knobs)
			return fmt.Sprint(m), next, err
		}); err != nil {
			return err
		}
		if err := w.generationsAgree(ctx, p.Sampler, generate); err != nil {
			return err
		}
		if err := w.scoresAgree(ctx, p.Scorer, batches[0]); err != nil {
			return err
		}
		return updatesAgree(ctx, w, "an update", p, batches, func(b []batch.MicroBatch) (*model.Gradient[model.UpdateMetrics], error) {
			return p.Learner.Gradient(b, knobs)
		})
	}); err != nil || !second {
		return err
	}
	c, err := w.engine.secondFor(w.Context, run)
	if err != nil {
		return err
	}
	return w.testOnce(secondKey(w.Context, run), c, func() error {
		batches := w.selfTestRows(shapes, draws)
		if values := w.Train.Credit.Values(); values > 1 {
			valuedRows(batches, values)
		}
		if w.Train.Credit.PRM() {
			return updatesAgree(ctx, w, "an update of the process reward model", c, batches, func(b []batch.MicroBatch) (*model.Gradient[model.UpdateMetrics], error) {
				return c.Learner.Gradient(b, prmSettings(settings))
			})
		}
		knobs := criticSettings(settings)
		if err := w.repeats(ctx, "an update of the critic", c, func(probe *model.State) (string, *model.State, error) {
			next, m, err := c.Learner.CriticUpdate(ctx, probe, batches, knobs)
			return fmt.Sprint(m), next, err
		}); err != nil {
			return err
		}
		if err := w.scoresAgree(ctx, c.Scorer, batches[0]); err != nil {
			return err
		}
		return updatesAgree(ctx, w, "an update of the critic", c, batches, func(b []batch.MicroBatch) (*model.Gradient[model.CriticMetrics], error) {
			return c.Learner.CriticGradient(b, knobs)
		})
	})
}

// testOnce tests programs, unless they have passed in this process or are recorded to have
// passed.
func (w *work) testOnce(key programsKey, p *model.Programs, test func() error) error {
	tested := w.engine.programs[key]
	if tested.tested || w.engine.trusted {
		return nil
	}
	hashes, err := p.Hashes()
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	if device, record := w.engine.device, w.engine.selfTestRecord(); !device.HasPassed(record, hashes) {
		w.engine.dropAll() // the probes have a base model of their own
		if err := test(); err != nil {
			return err
		}
		device.RecordPass(record, hashes)
	}
	tested.tested = true
	return nil
}

// repeatsGeneration samples from prompts on two probes, and compares; see scoresAsSampled too.
func (w *work) repeatsGeneration(ctx context.Context, p *model.Programs, in model.GenerateInput) error {
	return w.repeats(ctx, "a generation", p, func(probe *model.State) (string, *model.State, error) {
		got, err := p.Sampler.Generate(ctx, probe, in)
		if err == nil {
			err = w.scoresAsSampled(ctx, p, probe, in, got)
		}
		return fmt.Sprint(got.Tokens, got.LogProbs), probe, err
	})
}

// repeats computes something on two probes, which are alike, and compares what it tells and
// the states that it leaves.
func (w *work) repeats(ctx context.Context, what string, p *model.Programs,
	compute func(probe *model.State) (told string, left *model.State, err error)) error {
	var got [2]string
	for i := range got {
		var err error
		if got[i], err = onProbe(p, compute); err != nil {
			return fmt.Errorf("self-test: %s: %w", what, err)
		}
	}
	return same(what, got[0], w.planted(ctx, got[1]))
}

// planted is what a computation has told, or something else for tests.
func (w *work) planted(ctx context.Context, told string) string {
	if w.engine.Differ != nil && w.engine.Differ(ctx) {
		return "(planted) " + told
	}
	return told
}

// same is an error unless a computation told the same twice.
func same(what, one, two string) error {
	if one == two {
		return nil
	}
	at := differAt(one, two)
	return fmt.Errorf("%w: %s gave %q, and when repeated %q", errUnrepeatable, what, excerpt(one, at), excerpt(two, at))
}

// onProbe computes on a probe, and gives what it tells and the fingerprint of the state that
// it leaves. Nothing stays on the device.
func onProbe(p *model.Programs, compute func(probe *model.State) (told string, left *model.State, err error)) (string, error) {
	probe, err := p.Probe()
	if err != nil {
		return "", err
	}
	defer probe.Free()
	told, left, err := compute(probe)
	if err != nil {
		return "", err
	}
	defer left.Free()
	fingerprint, err := left.Fingerprint()
	return told + " " + fingerprint, err
}

// excerpt is the part of a text around a place.
func excerpt(text string, at int) string {
	const side = 32
	return text[min(max(at-side, 0), len(text)):min(at+side, len(text))]
}

// selfTestPrompts are prompts of legal ids, as long as there may be, for one pass. Each row
// ends after selfTestTokens: a number of 0 there samples the first id that has a
// probability, which ends a row.
func (w *work) selfTestPrompts(s model.Shapes, draws *rand.Rand) model.GenerateInput {
	in := model.GenerateInput{Temperature: 1, Stop: []int32{int32(slices.Index(w.Legal, true))}}
	for range s.GenerateRows {
		uniforms := make([]float32, s.MaxNewTokens)
		for i := range uniforms[:min(selfTestTokens, s.MaxNewTokens)-1] {
			uniforms[i] = draws.Float32()
		}
		in.Prompts = append(in.Prompts, legalIDs(w.Legal, s.PromptTokens, draws))
		in.Uniforms = append(in.Uniforms, uniforms)
	}
	return in
}

// selfTestRows are micro-batches of full rows of legal ids, whose second halves are trained
// on, with numbers such as a loss may read.
func (w *work) selfTestRows(s model.Shapes, draws *rand.Rand) []batch.MicroBatch {
	fill := func(of func() float32) [][]float32 {
		out := make([][]float32, s.MicroBatch)
		for r := range out {
			out[r] = make([]float32, s.Sequence)
			for t := range out[r] {
				out[r][t] = of()
			}
		}
		return out
	}
	near := func(value float32) func() float32 { return func() float32 { return value + draws.Float32() } }
	var out []batch.MicroBatch
	for range selfTestBatches {
		b := batch.MicroBatch{
			Columns: batch.Columns{
				batch.OldLogProbs: fill(near(-2)), batch.RefLogProbs: fill(near(-2)), batch.Advantages: fill(near(-0.5)),
				batch.Returns: fill(near(0)), batch.OldValues: fill(near(0)),
				batch.KLCoefficients: fill(func() float32 { return 1 }),
			},
		}
		mask := slices.Concat(make([]bool, s.Sequence/2), slices.Repeat([]bool{true}, s.Sequence-s.Sequence/2))
		for range s.MicroBatch {
			b.IDs = append(b.IDs, legalIDs(w.Legal, s.Sequence, draws))
			b.Lengths = append(b.Lengths, int32(s.Sequence))
			b.Mask = append(b.Mask, mask)
			b.Columns[batch.Turns] = append(b.Columns[batch.Turns], slices.Repeat([]float32{1}, s.Sequence))
		}
		for _, c := range s.Loss.PolicyLayout().Columns { // the columns of later terms
			if c.About().Kept && b.Columns[c] == nil {
				b.Columns[c] = fill(func() float32 { return 1 })
			}
		}
		out = append(out, b)
	}
	return out
}

// valuedRows gives each token of rows so many values to learn in place of one.
func valuedRows(batches []batch.MicroBatch, values int) {
	for i := range batches {
		b := &batches[i]
		b.Values = values
		for r, mask := range b.Mask {
			var wide []bool
			var returns, old []float32
			for t, yes := range mask {
				for range values {
					wide, returns, old = append(wide, yes), append(returns, b.Columns[batch.Returns][r][t]), append(old, b.Columns[batch.OldValues][r][t])
				}
			}
			b.Mask[r], b.Columns[batch.Returns][r], b.Columns[batch.OldValues][r] = wide, returns, old
		}
	}
}

// legalIDs draws ids that a tokenizer has.
func legalIDs(legal []bool, n int, draws *rand.Rand) []int32 {
	out := make([]int32, n)
	for i := range out {
		for ok := false; !ok; ok = legal[out[i]] {
			out[i] = int32(draws.IntN(len(legal)))
		}
	}
	return out
}
