package activities

import (
	"context"
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// keyOf addresses an update by its inputs.
func keyOf(in UpdateInput) (updateKey, error) {
	digest, err := digestOf(in.Settings)
	return updateKey{
		parent: in.Policy.State, batch: in.Batch.Digest, settings: digest, branch: in.Policy.Branch, iteration: in.Policy.Version,
	}, err
}

// apply runs an update on the resident state and holds the result: an optimizer
// step on each minibatch of each epoch, in the order that the address of the
// iteration draws.
func (w *work) apply(ctx context.Context, s store.Store, in UpdateInput) (UpdateResult, error) {
	u, b := in.Settings.Update, w.train.Update.MicroBatch
	shapes := w.shapes(w.training, 1)
	raw, err := store.GetArtifact(ctx, s, in.Batch)
	if err != nil {
		return UpdateResult{}, fmt.Errorf("batch: %w", err)
	}
	rows, err := decodeBatch(raw, b, shapes.Sequence)
	if err != nil {
		return UpdateResult{}, fmt.Errorf("batch %s: %w", in.Batch.Key, err)
	}
	p, err := w.engine.programsFor(w.kit, in.Policy.Run, shapes)
	if err != nil {
		return UpdateResult{}, err
	}
	size := len(rows)
	if u.Minibatch > 0 {
		size = min(size, u.Minibatch)
	}
	steps, err := loss.Minibatches(len(rows), size, u.Epochs, draw.Address{
		Seed: w.train.Seed, Branch: int64(in.Policy.Branch), Iteration: int64(in.Policy.Version),
	})
	if err != nil {
		return UpdateResult{}, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	settings := modelSettings(in.Settings, u.Rate(in.Policy.Version, w.train.Iterations))
	total := stepped{rows: len(rows)}
	for n, members := range steps {
		part := make([]learntRow, len(members))
		for i, at := range members {
			part[i] = rows[at]
		}
		batch, err := minibatch(part, b, u, w.divisor(u))
		if err != nil {
			return UpdateResult{}, fmt.Errorf("step %d: %w", n, err)
		}
		next, m, err := p.Update(ctx, w.engine.state, batch, settings)
		if err != nil {
			return UpdateResult{}, fmt.Errorf("step %d: %w", n, err)
		}
		w.engine.hold(next, "") // until all steps are made it is no version
		w.took.Tokens += m.Tokens
		total.add(m, len(batch))
	}
	if w.engine.print, err = w.engine.state.Fingerprint(); err != nil {
		return UpdateResult{}, fmt.Errorf("state fingerprint: %w", err)
	}
	metrics := total.metrics()
	metrics["actor/lr"] = canon.Float(settings.LearningRate)
	return UpdateResult{State: w.engine.print, Counts: total.counts(), Metrics: metrics}, nil
}

// divisor is the constant of the aggregation: Dr. GRPO's is the most a trajectory
// can sample.
func (k *kit) divisor(u spec.Update) float64 {
	if u.Divisor > 0 {
		return u.Divisor
	}
	return float64(k.training.turns * k.training.maxNewTokens)
}

// modelSettings are the knobs as the update's program takes them.
func modelSettings(s spec.Settings, rate float64) model.Settings {
	u := s.Update
	return model.Settings{
		Optimizer: model.Optimizer{
			LearningRate: float32(rate), Beta1: float32(u.Beta1), Beta2: float32(u.Beta2),
			AdamEpsilon: float32(u.AdamEpsilon), WeightDecay: float32(u.WeightDecay), MaxGradNorm: float32(u.MaxGradNorm),
		},
		ClipLow: float32(u.ClipLow), ClipHigh: float32(u.ClipHigh), DualClip: float32(u.DualClip),
		EntropyCoefficient: float32(u.EntropyCoefficient), Temperature: float32(s.Rollout.Temperature),
	}
}

// stepped adds up the optimizer steps of an update.
type stepped struct {
	rows  int
	micro int64
	made  []model.UpdateMetrics
}

func (t *stepped) add(m model.UpdateMetrics, microBatches int) {
	t.made = append(t.made, m)
	t.micro += int64(microBatches)
}

func (t *stepped) counts() store.UpdateCounts {
	c := store.UpdateCounts{Rows: int64(t.rows), MicroBatches: t.micro}
	for _, m := range t.made {
		c.Tokens += int64(m.Tokens)
		if m.Skipped {
			c.SkippedTotal++
		} else {
			c.Steps++
		}
	}
	c.Skipped = c.Steps == 0
	return c
}

// metrics are the means over the steps, as verl's, and the largest ratio.
func (t *stepped) metrics() Metrics {
	mean := func(of func(model.UpdateMetrics) float64) canon.Float {
		sum := 0.0
		for _, m := range t.made {
			sum += of(m)
		}
		return canon.Float(sum / float64(len(t.made)))
	}
	ratio := 0.0
	for _, m := range t.made {
		ratio = math.Max(ratio, m.RatioMax)
	}
	return Metrics{
		"actor/loss":              mean(func(m model.UpdateMetrics) float64 { return m.Loss }),
		"actor/pg_loss":           mean(func(m model.UpdateMetrics) float64 { return m.PolicyLoss }),
		"actor/grad_norm":         mean(func(m model.UpdateMetrics) float64 { return m.GradNorm }),
		"actor/pg_clipfrac":       mean(func(m model.UpdateMetrics) float64 { return m.ClipFraction }),
		"actor/pg_clipfrac_lower": mean(func(m model.UpdateMetrics) float64 { return m.DualClipFraction }),
		"actor/ppo_kl":            mean(func(m model.UpdateMetrics) float64 { return m.BehaviourKL }),
		"actor/approx_kl":         mean(func(m model.UpdateMetrics) float64 { return m.ApproxKL }),
		"actor/ratio_max":         canon.Float(ratio),
		"actor/skipped":           canon.Float(float64(t.counts().SkippedTotal)),
	}
}
