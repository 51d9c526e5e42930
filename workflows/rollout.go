package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// rolled is a rollout's progress: the turns that are done, and the generate
// table of the turn under way.
type rolled struct {
	Turns    []store.TurnRefs `json:"turns,omitempty"`
	Generate *store.Ref       `json:"generate,omitempty"`
	Alive    int              `json:"alive"`
	Done     bool             `json:"done"`
}

// rollout makes the iteration's trajectories, and selects. A rollout that serves
// several iterations has a round for each, and one whose groups vary too little has
// more.
func (t *train) rollout(ctx workflow.Context, s *session, it *iteration, n int) error {
	for it.Selected == nil {
		what := activities.Rollout{Iteration: n, Round: it.Round}
		if err := t.roll(ctx, s, it, &it.Rollout, what, t.version(n, t.State), t.plan.Rows, t.plan.Turns); err != nil || !it.Rollout.Done {
			return err
		}
		if it.Round+1 >= t.plan.Freshness.Rounds() {
			if more, err := t.selectGroups(ctx, it, n); err != nil || !more {
				return err
			}
		}
		it.Turns = append(it.Turns, it.Rollout.Turns...)
		it.Round, it.Rollout = it.Round+1, rolled{}
	}
	return nil
}

// roll makes the episodes of a rollout, turn by turn, at most so many turns.
func (t *train) roll(ctx workflow.Context, s *session, it *iteration, r *rolled, what activities.Rollout, policy activities.Version, rows, turns int) error {
	var d *activities.Device
	var h *activities.Host
	kind, label := "", fmt.Sprintf("iteration %d", what.Iteration)
	if what.Round > 0 {
		label += fmt.Sprintf(" · round %d", what.Round+1)
	}
	if what.Evaluation != nil {
		kind, label = "evaluation.", fmt.Sprintf("version %d · %s", policy.Version, what.Evaluation.Suite)
	}
	for !r.Done && !t.Paused {
		turn := len(r.Turns) + 1
		if r.Generate == nil {
			t.show(ctx, fmt.Sprintf("%s · turn %d · generate", label, turn))
			var out activities.GenerateResult
			err := s.run(ctx, "Generate", fmt.Sprintf("%s · turn %d · %d rows", label, turn, rows), d.Generate, activities.GenerateInput{
				Policy: policy, Rollout: what, Settings: it.Settings, Turn: turn, Turns: r.Turns,
			}, &out)
			if err != nil {
				return err
			}
			it.record(kind+"generate", out.Telemetry)
			r.Generate = &out.Table
		}
		t.show(ctx, fmt.Sprintf("%s · turn %d · step", label, turn))
		var out activities.StepResult
		err := t.host(ctx, t.plan.ActivitySeconds, "Step", fmt.Sprintf("%s · turn %d · environment", label, turn), h.Step, activities.StepInput{
			Run: t.Run, Branch: t.Branch, Rollout: what, Turn: turn, Turns: r.Turns, Generate: *r.Generate,
		}, &out)
		if err != nil {
			return err
		}
		it.record(kind+"step", out.Telemetry)
		r.Turns = append(r.Turns, store.TurnRefs{Round: what.Round, Generate: *r.Generate, Step: out.Table})
		r.Generate, r.Alive = nil, out.Alive
		r.Done = turn >= turns || out.Alive == 0
	}
	return nil
}

// selectGroups puts the rollout together and selects; it tells whether another round
// is wanted first.
func (t *train) selectGroups(ctx workflow.Context, it *iteration, n int) (more bool, err error) {
	var h *activities.Host
	var out activities.SelectResult
	t.show(ctx, fmt.Sprintf("iteration %d · select", n))
	err = t.host(ctx, t.plan.ActivitySeconds, "Select", fmt.Sprintf("iteration %d · select groups", n), h.Select, activities.SelectInput{
		Run: t.Run, Branch: t.Branch, Rollout: activities.Rollout{Iteration: n}, Settings: it.Settings, Turns: it.turns(),
	}, &out)
	if err != nil {
		return false, err
	}
	it.record("select", out.Telemetry)
	if out.More {
		return true, nil
	}
	it.add(&out.Metrics)
	it.Selected, it.Shared = &out, out.Shared(t.Branch, n)
	return false, nil
}

// turns are those of all rounds.
func (it *iteration) turns() []store.TurnRefs {
	return append(it.Turns[:len(it.Turns):len(it.Turns)], it.Rollout.Turns...)
}

func (t *train) score(ctx workflow.Context, s *session, it *iteration, n int) error {
	// Of a shared rollout all rows are scored at once, by the policy that rolled out.
	if it.Scored != nil || it.Selected.Rows == 0 {
		return nil
	}
	var d *activities.Device
	var out activities.ScoreResult
	t.show(ctx, fmt.Sprintf("iteration %d · score", n))
	err := s.run(ctx, "Score", fmt.Sprintf("iteration %d · old log-probs of %d rows", n, it.Selected.Rows), d.Score, activities.ScoreInput{
		Policy: t.version(n, t.State), Iteration: n, Settings: it.Settings, Trajectories: it.Selected.Trajectories,
	}, &out)
	if err != nil {
		return err
	}
	it.record("score", out.Telemetry)
	it.add(&out.Metrics)
	it.Scored = &out
	return nil
}

// diagnose looks at the reasonings of the iteration's own rollout, where it is due.
func (t *train) diagnose(ctx workflow.Context, s *session, it *iteration, n int) error {
	if it.Diagnosed || !t.plan.Diagnostics.Due(n) || it.Shared != nil && it.Shared.Update > 0 {
		return nil
	}
	var d *activities.Device
	var out activities.DiagnoseResult
	t.show(ctx, fmt.Sprintf("iteration %d · diagnose", n))
	err := s.run(ctx, "Diagnose", fmt.Sprintf("iteration %d · mutual information of prompts and reasonings", n), d.Diagnose, activities.DiagnoseInput{
		Policy: t.version(n, t.State), Iteration: n, Settings: it.Settings, Trajectories: it.Selected.Trajectories, Before: activities.Averages(t.Metrics),
	}, &out)
	if err != nil {
		return err
	}
	it.record("diagnose", out.Telemetry)
	it.add(&out.Metrics)
	it.Diagnosed = true
	return nil
}
