package device

import (
	"context"
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// keyOf addresses an update by its inputs.
func keyOf(in activities.UpdateInput) (updateKey, error) {
	digest, err := run.DigestOf(in.Settings)
	return updateKey{
		parent: in.Policy.State, batch: in.Batch.Digest, settings: digest, branch: in.Policy.Branch, iteration: in.Policy.Version,
	}, err
}

// apply runs an update on the resident state and holds the result: an optimizer
// step on each minibatch of each epoch, in the order that the address of the
// iteration draws. The steps are made in the memory of the state: after an error on the way
// the worker holds no version, and the error is an ErrNotResident.
func (w *work) apply(ctx context.Context, s store.Store, in activities.UpdateInput) (_ activities.UpdateResult, err error) {
	defer func() {
		if err != nil && w.engine.abandon(err) {
			err = fmt.Errorf("%w: %w", activities.ErrNotResident, err)
		}
	}()
	u, b := in.Settings.Update, w.Train.Update.MicroBatch
	shapes := w.Shapes(w.Training, 1)
	rows, err := w.ReadBatch(ctx, s, in.Batch)
	if err != nil {
		return activities.UpdateResult{}, err
	}
	p, err := w.engine.programsFor(w.Context, in.Policy.Run, shapes)
	if err != nil {
		return activities.UpdateResult{}, err
	}
	size := len(rows)
	if u.Minibatch > 0 {
		size = min(size, u.Minibatch)
	}
	steps, err := loss.Minibatches(len(rows), size, u.Epochs, w.Drawn(draw.Shuffle, in.Policy.Branch, in.Policy.Version))
	if err != nil {
		return activities.UpdateResult{}, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	settings := modelSettings(in.Settings, u.Rate(in.Policy.Version, w.Train.Iterations))
	value := criticSettings(in.Settings)
	var c *model.Programs
	if w.engine.critic != nil {
		if c, err = w.engine.criticFor(w.Context, in.Policy.Run); err != nil {
			return activities.UpdateResult{}, err
		}
	}
	total := stepped{rows: len(rows)}
	for n, members := range steps {
		part := make([]run.BatchRow, len(members))
		for i, at := range members {
			part[i] = rows[at]
		}
		batch, err := run.Minibatch(part, b, u, divisor(w.Context, u))
		if err != nil {
			return activities.UpdateResult{}, fmt.Errorf("step %d: %w", n, err)
		}
		critic := w.engine.critic
		if critic != nil {
			next, m, err := c.CriticUpdate(ctx, critic, batch, value)
			if err != nil {
				return activities.UpdateResult{}, fmt.Errorf("step %d: %w", n, err)
			}
			critic, total.critic = next, append(total.critic, m)
			w.engine.hold(w.engine.state, critic)
		}
		next, m, err := p.Update(ctx, w.engine.state, batch, settings)
		if err != nil {
			return activities.UpdateResult{}, fmt.Errorf("step %d: %w", n, err)
		}
		w.engine.hold(next, critic)
		w.measured.Tokens += m.Tokens
		total.add(m, len(batch))
	}
	if err := w.engine.computeFingerprint(); err != nil {
		return activities.UpdateResult{}, err
	}
	metrics := total.metrics()
	metrics["actor/lr"] = canon.Float(settings.LearningRate)
	if w.Train.Update.KLIn == spec.KLLoss {
		metrics["actor/kl_loss"], metrics["actor/kl_coef"] = total.mean(func(m model.UpdateMetrics) float64 { return m.KL }), canon.Float(u.KLCoefficient)
	}
	if w.engine.critic != nil {
		metrics["critic/lr"] = canon.Float(value.LearningRate)
	}
	return activities.UpdateResult{State: w.engine.fingerprint, Counts: total.counts(), Metrics: metrics}, nil
}

// divisor is the constant of the aggregation: Dr. GRPO's is the most a trajectory
// can sample.
func divisor(rc *run.Context, u spec.Update) float64 {
	if u.Divisor > 0 {
		return u.Divisor
	}
	return float64(rc.Training.Turns * rc.Training.MaxNewTokens)
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
		EntropyCoefficient: float32(u.EntropyCoefficient), KLCoefficient: klCoefficient(u), Temperature: float32(s.Rollout.Temperature),
	}
}

// klCoefficient is the loss's: in the rewards the distance has been counted.
func klCoefficient(u spec.Update) float32 {
	if u.KLIn != spec.KLLoss {
		return 0
	}
	return float32(u.KLCoefficient)
}

// criticSettings are the critic's knobs; what it shares is the policy's.
func criticSettings(s spec.Settings) model.CriticSettings {
	u, c := s.Update, s.Critic
	return model.CriticSettings{
		Optimizer: model.Optimizer{
			LearningRate: float32(c.LearningRate), Beta1: float32(u.Beta1), Beta2: float32(u.Beta2),
			AdamEpsilon: float32(u.AdamEpsilon), WeightDecay: float32(c.WeightDecay), MaxGradNorm: float32(c.MaxGradNorm),
		},
		Clip: float32(c.Clip),
	}
}

// stepped adds up the optimizer steps of an update.
type stepped struct {
	rows  int
	micro int64
	made  []model.UpdateMetrics
	// critic has the metrics of the critic's steps; empty without a critic.
	critic []model.CriticMetrics
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
	// With a critic that made its steps the state is another, whatever the policy did.
	c.Skipped = c.Steps == 0 && t.criticSkipped() == len(t.critic)
	return c
}

// criticSkipped counts the critic's steps that were not finite.
func (t *stepped) criticSkipped() int {
	skipped := 0
	for _, m := range t.critic {
		if m.Skipped {
			skipped++
		}
	}
	return skipped
}

// mean is a figure's mean over the policy's steps.
func (t *stepped) mean(of func(model.UpdateMetrics) float64) canon.Float { return meanOf(t.made, of) }

func meanOf[M any](made []M, of func(M) float64) canon.Float {
	sum := 0.0
	for _, m := range made {
		sum += of(m)
	}
	return canon.Float(sum / float64(len(made)))
}

// metrics are the means over the steps, as verl's, and the largest ratio.
func (t *stepped) metrics() activities.Metrics {
	ratio := 0.0
	for _, m := range t.made {
		ratio = math.Max(ratio, m.RatioMax)
	}
	out := activities.Metrics{
		"actor/loss":              t.mean(func(m model.UpdateMetrics) float64 { return m.Loss }),
		"actor/pg_loss":           t.mean(func(m model.UpdateMetrics) float64 { return m.PolicyLoss }),
		"actor/grad_norm":         t.mean(func(m model.UpdateMetrics) float64 { return m.GradNorm }),
		"actor/pg_clipfrac":       t.mean(func(m model.UpdateMetrics) float64 { return m.ClipFraction }),
		"actor/pg_clipfrac_lower": t.mean(func(m model.UpdateMetrics) float64 { return m.DualClipFraction }),
		"actor/ppo_kl":            t.mean(func(m model.UpdateMetrics) float64 { return m.BehaviourKL }),
		"actor/approx_kl":         t.mean(func(m model.UpdateMetrics) float64 { return m.ApproxKL }),
		"actor/ratio_max":         canon.Float(ratio),
		"actor/skipped":           canon.Float(float64(t.counts().SkippedTotal)),
	}
	if len(t.critic) == 0 {
		return out
	}
	out["critic/vf_loss"] = meanOf(t.critic, func(m model.CriticMetrics) float64 { return m.Loss })
	out["critic/vf_clipfrac"] = meanOf(t.critic, func(m model.CriticMetrics) float64 { return m.ClipFraction })
	out["critic/vpred_mean"] = meanOf(t.critic, func(m model.CriticMetrics) float64 { return m.ValueMean })
	out["critic/grad_norm"] = meanOf(t.critic, func(m model.CriticMetrics) float64 { return m.GradNorm })
	out["critic/skipped"] = canon.Float(float64(t.criticSkipped()))
	return out
}
