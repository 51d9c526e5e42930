package device

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// mismatch corrects the rows of an update in the decoupled regime. The rows that were rolled
// out by another version than the one that is updated are scored again first. All of it is a
// function of the version, the batch and the settings, as the update is.
type mismatch struct {
	of      loss.Mismatch
	stale   []int // rows, as run.Context.Arrange gives them
	done    bool  // the rows are corrected
	weighed loss.Weighed
}

// mismatchOf is what is to be corrected in the rows of an update; nil in other regimes.
func mismatchOf(m spec.Mismatch, rows []batch.Row, version int) (*mismatch, error) {
	if m.Regime != spec.Decoupled {
		return nil, nil
	}
	out := &mismatch{of: m.Correction()}
	for i, r := range rows {
		if r.Columns[batch.RolloutLogProbs] == nil {
			return nil, fmt.Errorf("the batch has no log-probs of the sampler, which mismatch weights need: %w", store.ErrInvalid)
		}
		if int(r.Origin) != version && !r.Supervised {
			out.stale = append(out.stale, i)
		}
	}
	return out, nil
}

// scoreAgain scores the next micro-batch of stale rows with the version that the update
// begins with.
func (u *update) scoreAgain(ctx context.Context, w *work, b *begunUpdate) error {
	at := u.mismatch.stale[len(b.scored):]
	at = at[:min(len(at), u.microBatch)]
	rows := run.Picked(u.rows, at)
	batches, err := run.Minibatch(rows, u.policy.Shapes(), u.knobs, u.divisor)
	if err != nil {
		return err
	}
	logProbs, _, err := u.stale.Score(ctx, w.engine.state, batches[0], u.settings.Temperature)
	if err != nil {
		return fmt.Errorf("score stale rows: %w", err)
	}
	b.scored = append(b.scored, logProbs[:len(rows)]...)
	b.done++
	return nil
}

// correct gives the stale rows their new log-probs and all rows their weights, once.
func (m *mismatch) correct(rows []batch.Row, scored [][]float32) error {
	if m.done {
		return nil
	}
	for i, at := range m.stale {
		if at >= 0 {
			rows[at].Columns[batch.OldLogProbs] = scored[i]
		}
	}
	var err error
	if m.weighed, err = run.WeighRows(rows, m.of); err != nil {
		return fmt.Errorf("mismatch weights: %w: %w", err, store.ErrInvalid)
	}
	m.done = true
	return nil
}

// metrics have verl's names.
func (m *mismatch) metrics() activities.Metrics {
	return activities.Metrics{
		"rollout_corr/rollout_is_eff_sample_size": canon.Float(m.weighed.EffectiveSamples),
		"rollout_corr/rollout_is_mean":            canon.Float(m.weighed.Mean),
		"rollout_corr/rollout_is_max":             canon.Float(m.weighed.Max),
		"rollout_corr/rollout_rs_masked_fraction": canon.Float(m.weighed.Dropped),
		"rollout_corr/k3_kl":                      canon.Float(m.weighed.K3),
	}
}
