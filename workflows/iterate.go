package workflows

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

// iterate does iteration Next, or what is left of it, up to its commit. Package iteration
// defines an iteration; here its calls become activities.
func (t *train) iterate(ctx workflow.Context, s *session) error {
	if t.Current == nil {
		t.Current = t.begin()
		if t.restored != nil {
			t.Current.Record("restore", *t.restored)
			t.restored = nil
		}
	}
	it := iteration.New(t.start(), t.Current)
	return t.drive(ctx, s, it)
}

// begin is the state of the next iteration: it rolls out, or it continues learning from
// the previous rollout with that rollout's settings.
func (t *train) begin() *iteration.State {
	t.Settings = t.plan.SettingsAt(t.Settings, t.Next)
	return iteration.BeginAfter(t.Head, t.Settings)
}

// start is what iteration Next begins with.
func (t *train) start() iteration.Start {
	return iteration.Start{
		Run: t.Run, Plan: t.plan, Branch: t.Branch, Number: t.Next, Policy: t.State,
		Head: t.Head, Previous: t.Metrics, Before: t.Detected, Opened: t.Opened,
		Fingerprint: t.Fingerprint, Device: t.Device, Programs: t.Programs, Frozen: t.Frozen,
	}
}

// drive runs an iteration's calls one after the other, but the blocks of a turn at once, until it is
// done or the run is paused. The first call of the next iteration may run beside the commit, and its rollout beside
// all that follows the selection.
func (t *train) drive(ctx workflow.Context, s *session, it *iteration.Iteration) (err error) {
	o := &beside{}
	defer func() {
		if ended := o.end(ctx); err == nil {
			err = ended
		}
	}()
	for !it.Done() {
		if !t.measuring {
			it.Due = t.due(it.Number)
		}
		calls, err := it.Ready()
		if err != nil {
			return err
		}
		if calls, err = t.callsNow(ctx, s, it, o, calls); err != nil {
			return err
		}
		if (t.Paused || t.adopts()) && !calls[0].Completes {
			return nil // the rest follows after resume, or is given up
		}
		if calls[0].Name == steps.Commit.Name {
			return t.commit(ctx, s, it, calls[0])
		}
		if calls[0].Name == steps.Block.Name {
			err = t.deal(ctx, s, it, calls)
		} else {
			err = t.do(ctx, s, it, calls[0])
		}
		if err != nil {
			return err
		}
		t.evaluated(it)
	}
	return nil
}

// due is what is due in an iteration now: commands move the end, and ask for a snapshot.
func (t *train) due(number int) iteration.Due {
	due := iteration.DueAt(t.plan, t.Branch, number, t.end())
	due.Snapshot = due.Snapshot || t.SnapshotNow
	return due
}

// do runs one call and applies its result.
func (t *train) do(ctx workflow.Context, s *session, it *iteration.Iteration, c iteration.Call) error {
	if c.Phase != "" {
		t.show(ctx, c.Phase)
	}
	result := c.NewResult()
	var err error
	switch c.Place {
	case steps.OnSession:
		if err = t.onSession(ctx, s)(c.Routing, c.Summary, c.Input, result); err == nil {
			t.pieceEnded(c, result)
		}
	case steps.OnHost:
		err = t.onHost(ctx, t.plan.ActivitySeconds)(c.Routing, c.Summary, t.withCosts(ctx, s, c.Input), result)
	}
	if err == nil {
		if !t.measuring {
			it.NextSettings = t.plan.NextSettings(t.Settings, it.Number)
		}
		it.Apply(c, result)
	}
	return err
}

// pieceEnded notes that a call of a session has ended. An update has failed nowhere only when
// its last piece has ended, since one that is lost is made again from its first piece.
func (t *train) pieceEnded(c iteration.Call, result any) {
	u, ok := result.(*activities.UpdateResult)
	if ok {
		t.Recomputed += u.Telemetry.Recomputed
	}
	if !ok || u.Begun == nil {
		t.stepEnded(stepName(c.Routing, c.Summary))
	}
}

// evaluated notes the evaluations that an iteration has completed.
func (t *train) evaluated(it *iteration.Iteration) {
	if e := it.Evaluated(it.Number); e != nil && t.First == nil {
		t.First, t.Last = brief(e), brief(e)
	}
	if e := it.Evaluated(it.Number + 1); e != nil && (t.Last == nil || t.Last.Version != e.Version) {
		t.Last = brief(e)
	}
}

// brief is an evaluation without the list of its tables, which grows with the turns. The
// manifest has the list, and carried state must stay small.
func brief(e *store.EvaluationRef) *store.EvaluationRef {
	short := *e
	short.Turns = nil
	return &short
}

// committed moves the run to the next iteration.
func (t *train) committed(ctx workflow.Context, it *iteration.Iteration) {
	n := it.Number
	t.Head = it.Committed(t.Snapshot)
	t.Snapshot, t.State, t.Metrics = t.Head.Snapshot, t.Head.State, it.Metrics
	t.Rebuilding.updated(it.Timings["update"], len(it.Passes))
	t.Current, t.ahead, t.Opened = t.ahead, nil, nil
	t.SnapshotNow = t.SnapshotNow && it.State.Snapshot == nil
	t.Next, t.here = n+1, t.here+1
	t.act(n, it.Detected)
	t.attributes(ctx)
	t.memo(ctx)
	t.sweep.spends(t.costsCommitted())
	t.sweep.committed(ctx, t, it.Evaluations)
	t.show(ctx, fmt.Sprintf("iteration %d committed", n))
}

// missing marks a metric that was not recorded.
const missing = "–"

// metric formats a metric that may be missing.
func metric(m activities.Metrics, name string) string {
	v, ok := m[name]
	if !ok {
		return missing
	}
	return number(v)
}

// number is a metric's value: four digits after the point, or four that count where it is small, since
// a gradient norm of 5e-07 is not 0.
func number(v canon.Float) string {
	if x := math.Abs(float64(v)); x > 0 && x < 0.1 {
		return strconv.FormatFloat(float64(v), 'g', 4, 64)
	}
	s := fmt.Sprintf("%.4f", float64(v))
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
