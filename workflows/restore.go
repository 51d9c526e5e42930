package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

// The first chunk of a warm start shows how fast this device is. The workflow decides
// here what each chunk does, so that an activity is a function of its input.
const (
	firstPace  = 4
	fasterPace = 16 // the most by which a chunk is longer than the one before
)

// warmStart makes version 0, in chunks with a snapshot between.
func (t *train) warmStart(ctx workflow.Context, s *session) error {
	for t.Run.Base.Digest == "" && !t.Paused && !t.adopts() {
		done := 0
		if t.WarmStart != nil {
			done = t.WarmStart.Version
		}
		if t.Pace == 0 {
			t.Pace = firstPace
		}
		t.show(ctx, fmt.Sprintf("warm start, step %d of %d", done, t.plan.WarmStartSteps))
		summary := fmt.Sprintf("warm start from step %d of %d", done, t.plan.WarmStartSteps)
		r, err := steps.WarmStart.Do(t.onSession(ctx, s), summary, activities.WarmStartInput{
			Run: t.Run.ID, Spec: t.Run.Spec, Base: t.WarmStartBase, From: t.WarmStart, Steps: t.Pace,
		})
		if err != nil {
			return err
		}
		t.stepEnded(stepName(steps.WarmStart.Routing, summary))
		if r.Base != nil {
			t.Run.Base, t.WarmStartBase, t.WarmStart = *r.Base, nil, nil
			continue
		}
		t.WarmStart = r.Snapshot
		t.Pace = nextPace(r.Steps-done, r.Telemetry, t.plan.ActivitySeconds)
	}
	return nil
}

// nextPace is how many updates of a warm start fit into half of an activity's
// time, as the last chunk took them.
func nextPace(steps int, took activities.Telemetry, activitySeconds int) int {
	seconds := took.Seconds - took.CompileSeconds - took.WaitSeconds
	most := steps * fasterPace
	if seconds <= 0 {
		return most
	}
	return max(1, min(most, int(float64(steps)*float64(activitySeconds)/2/seconds)))
}

// restore makes the session's worker hold version Next, with the update of the running
// iteration if it was made already.
func (t *train) restore(ctx workflow.Context, s *session) error {
	in := activities.RestoreInput{
		Version:    activities.Version{Run: t.Run, Branch: t.Branch, Version: t.Next, State: t.State},
		Head:       t.headRef(),
		MaxSeconds: t.plan.ActivitySeconds / 2, Evaluate: t.measuring,
		Adopt: t.Opened != nil && t.Opened.Adopted != nil,
	}
	if it := t.Current; it != nil {
		in.Passed, in.Pending, in.Updating = it.Made()
		if it.Updating != nil {
			it.Updating = it.Updating.Again()
		}
	}
	summary := fmt.Sprintf("restore version %d", t.Next)
	phase := "restoring"
	var took activities.Telemetry
	for {
		t.show(ctx, phase)
		r, err := steps.Restore.Do(t.onSession(ctx, s), summary, in)
		if t.otherPrograms(ctx, err) {
			return errOtherPrograms
		}
		if err != nil {
			return err
		}
		t.Recomputed += r.Telemetry.Recomputed
		t.recordRestore(r.Telemetry)
		t.busy(r.Load)
		for _, version := range r.Damaged {
			t.Warnings = append(t.Warnings, fmt.Sprintf("the snapshot of version %d is damaged or gone, and counts as removed: the policy was rebuilt from "+
				"the one before. reprise verify %s names its objects", version, t.Run.ID))
		}
		took = took.Plus(r.Telemetry)
		if !r.Done {
			phase = restoring(r)
			continue // the step has not ended: another worker begins it anew
		}
		t.Rebuilding.restored(took)
		t.stepEnded(stepName(steps.Restore.Routing, summary))
		t.programs = nil
		if t.State == "" {
			t.State = r.Before
		}
		t.Programs, t.Frozen = r.Programs, r.Frozen
		return nil
	}
}

// restoring says how far a restore is that has not ended.
func restoring(r activities.RestoreResult) string {
	out := fmt.Sprintf("restoring, version %d", r.Reached)
	if b := r.Begun; b != nil {
		out += fmt.Sprintf(" and %d of %d micro-batches of its update", b.Done, b.Of)
	}
	return out
}

// recordRestore adds a restore's telemetry to the running iteration, or to the next.
func (t *train) recordRestore(took activities.Telemetry) {
	if t.Current != nil {
		t.Current.Record("restore", took)
		return
	}
	if t.restored != nil {
		took = t.restored.Plus(took)
	}
	t.restored = &took
}
