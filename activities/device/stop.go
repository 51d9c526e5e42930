package device

import (
	"math"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
)

// tooFar measures the step whose micro-batches were all added, if the run has update.stop_kl. It returns true, and gives the
// step up, if the policy has gone too far from the one that sampled: LOOP's high_kl_threshold, by which its authors' code
// skips the step and ends the iteration.
func (u *update) tooFar(w *work, b *begunUpdate) (bool, error) {
	stop := u.knobs.StopKL
	if stop == 0 || b.policy.Left() > 0 {
		return false, nil
	}
	m, err := b.policy.Measure(w.engine.state)
	if err != nil {
		return false, err
	}
	kl := trajectoryKL(m, run.Picked(u.rows, u.steps[b.step]))
	b.made.furthest = max(b.made.furthest, kl)
	if !(kl > stop) {
		return false, nil
	}
	b.policy.Free()
	b.policy, b.valued, b.made.stopped = nil, false, &m
	b.of = b.done // the steps that are left are not made
	return true, nil
}

// trajectoryKL is the absolute value of the mean, over the trajectories of a minibatch, of the sum of log π_old − log π over
// their tokens, in nats (apple/ml-loop, train.py, kl_estimate of log_importance_weights). A trajectory may have several rows.
func trajectoryKL(m model.UpdateMetrics, rows []batch.Row) float64 {
	type trajectory struct{ row, origin int32 }
	of := map[trajectory]bool{}
	tokens := 0
	for _, r := range rows {
		if r.Supervised {
			continue
		}
		of[trajectory{r.Row, r.Origin}] = true
		for _, trained := range r.Mask {
			if trained {
				tokens++
			}
		}
	}
	return math.Abs(m.BehaviourKL) * float64(tokens) / float64(max(len(of), 1))
}
