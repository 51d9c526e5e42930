package workflows

import (
	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/iteration"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// upserts is how often a run sets its search attributes in an iteration: at its commit.
const upserts = 1

// Actions counts what Temporal Cloud bills for an iteration of a plan, whose steps are made
// in pieces: its activities and its search attributes. Retries, heartbeats, the session and a trial's report to its
// sweep come besides.
func Actions(plan activities.Plan, pieces spec.Pieces) (*spec.Actions, error) {
	c, err := iteration.Count(plan, pieces)
	if err != nil {
		return nil, err
	}
	out := &spec.Actions{Iteration: c.Iteration + upserts, Snapshot: c.Snapshot}
	if plan.EvaluateEvery > 0 {
		out.Evaluation = c.Evaluation
	}
	if plan.Diagnostics.Every > 0 {
		out.Diagnosis = c.Diagnosis
	}
	return out, nil
}
