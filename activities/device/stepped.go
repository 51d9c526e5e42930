package device

import (
	"math"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// stepped are the optimizer steps of an update that were made so far.
type stepped struct {
	rows   int
	micro  int64
	policy []model.UpdateMetrics
	// critic has the metrics of the critic's steps; empty without a critic.
	critic []model.CriticMetrics
	// prm has the metrics of the process reward model's step; nil before it, and without one.
	prm *model.UpdateMetrics
	// stopped has the metrics of the step that update.stop_kl left out; nil without one. furthest is the largest
	// distance that it measured.
	stopped  *model.UpdateMetrics
	furthest float64
}

func (t *stepped) counts() store.UpdateCounts {
	c := store.UpdateCounts{Rows: int64(t.rows), MicroBatches: t.micro}
	for _, m := range t.policy {
		c.Tokens += int64(m.Tokens)
		if m.Skipped {
			c.SkippedTotal++
		} else {
			c.Steps++
		}
	}
	// With a second network that made its steps the state is another, whatever the policy did.
	c.Skipped = c.Steps == 0 && t.criticSkipped() == len(t.critic) && (t.prm == nil || t.prm.Skipped)
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

// mean is a figure's mean over the policy's steps; if none was made, that of the step that was left out.
func (t *stepped) mean(of func(model.UpdateMetrics) float64) canon.Float {
	if len(t.policy) == 0 && t.stopped != nil {
		return meanOf([]model.UpdateMetrics{*t.stopped}, of)
	}
	return meanOf(t.policy, of)
}

// likelihood is the mean supervised part of the loss over the policy's steps that had one.
func (t *stepped) likelihood() float64 {
	sum, n := 0.0, 0.0
	for _, m := range t.policy {
		if own := m.Own[terms.SupervisedLoss]; own != 0 {
			sum, n = sum+own, n+1
		}
	}
	return sum / max(n, 1)
}

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
	for _, m := range t.policy {
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
	if t.prm != nil {
		out["prm/grad_norm"], out["prm/skipped"] = canon.Float(t.prm.GradNorm), 0
		if t.prm.Skipped {
			out["prm/skipped"] = 1
		}
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
