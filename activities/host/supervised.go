package host

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// supervise adds the supervised rows of an iteration to its batch, or puts them in its place:
// the solver's episodes, or successes of the policy, which are those of the rollout and those
// that the replay buffer has. Which ones is drawn from the iteration's address, without
// repetition. Or each fresh row has one with its observations.
func supervise(rc *run.Context, in activities.CreditInput, out []batch.Row, all []episode.TrajectoryRow, buffer []batch.Row,
	metrics activities.Metrics) ([]batch.Row, error) {
	s, at := in.Settings.Update.Supervised, rc.Drawn(draw.Supervised, in.Branch, in.Iteration)
	like, wanted := out[0], s.Rows(len(out))
	var added []batch.Row
	switch s.From {
	case spec.Demonstrations:
		shown, err := rc.Demonstrations(wanted, in.Settings.Rollout, at)
		if err != nil {
			return nil, fmt.Errorf("supervised rows: %w", err)
		}
		added = run.SupervisedRows(shown, in.Iteration, like)
	case spec.Observations:
		added = run.Observations(out, origin(in))
	case spec.OwnSuccesses:
		pool := run.SupervisedRows(episode.Stretches(successes(rc, in, all)), origin(in), like)
		metrics["supervised/successes"] = canon.Float(len(pool))
		for _, r := range buffer {
			if r.Supervised {
				pool = append(pool, r)
			}
		}
		for _, i := range some(at, min(wanted, len(pool)), len(pool)) {
			added = append(added, pool[i])
		}
	}
	metrics["supervised/rows"] = canon.Float(len(added))
	if s.Alone() {
		return added, nil
	}
	return append(out, added...), nil
}

// successes are the successful episodes of the groups that the iteration learns from, selected
// or not.
func successes(rc *run.Context, in activities.CreditInput, all []episode.TrajectoryRow) []episode.TrajectoryRow {
	var out []episode.TrajectoryRow
	for _, r := range all {
		own := in.Rollout == nil || rc.Train.Freshness.Online == 1 || int(r.Group)/rc.Training.Groups == in.Rollout.Update
		if r.Success && own {
			out = append(out, r)
		}
	}
	return out
}
