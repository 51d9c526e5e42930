package workflows

import (
	"errors"
	"fmt"
	"regexp"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/strict"
)

// Adopt is the argument of the update "adopt-programs".
type Adopt struct {
	// Fingerprint is the fingerprint of the device to continue on. If it is left out, a run that waits for its
	// programs keeps its fingerprint, and any other takes the first device that answers.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Adoption is an adoption that was requested and not done yet.
type Adoption struct {
	// Fingerprint is the fingerprint of the device to continue on; "" for any.
	Fingerprint string `json:"fingerprint,omitempty"`
	// After is how many iterations are committed before: the last of them has a snapshot.
	After int `json:"after,omitempty"`
}

// errCommanded says that a wait for a device was left because a command gives the run something else to do.
var errCommanded = errors.New("a command came while the run waited for a device")

// adopts tells whether the run is to adopt other programs now.
func (t *train) adopts() bool { return t.Adopt != nil && t.Next >= t.Adopt.After }

// fingerprint is the form of a device's fingerprint.
var fingerprint = regexp.MustCompile(`^[0-9a-f]{12}$`)

func (t *train) validAdopt(_ workflow.Context, a Adopt) error {
	switch {
	case !t.ready:
		return errNotReady
	case a.Fingerprint != "" && !fingerprint.MatchString(a.Fingerprint):
		return fmt.Errorf("fingerprint: found %s; allowed: 12 digits from 0 to 9 and a to f, as reprise doctor and the start of a device worker print it", strict.Quote(a.Fingerprint))
	case t.adopts():
		return errors.New("the run is about to adopt other programs already")
	case t.committing:
		return fmt.Errorf("iteration %d is being committed: try again in a moment", t.Next)
	case t.RollTo != nil:
		return fmt.Errorf("the run is about to go back to iteration %d: try again when it has", t.RollTo.Iteration)
	case t.Head != nil && t.snapshotAhead() == "" && (t.Snapshot == 0 || t.Snapshot < t.plan.First):
		return errors.New("the run has no snapshot of its own, and other programs cannot apply its updates again: send snapshot-now where a worker of the build that began it is left, or start the run anew under another id")
	}
	return nil
}

// snapshotAhead says when the iteration that runs will have ended with a snapshot, so that
// an adoption follows it; "" where it does not run, or has none.
func (t *train) snapshotAhead() string {
	if t.Current == nil || t.wait.Wanted != "" || t.Paused || !t.due(t.Next).Snapshot {
		return ""
	}
	return fmt.Sprintf("when iteration %d has ended with a snapshot, ", t.Next)
}

// askAdoption notes the request of an adoption, and says what it costs.
func (t *train) askAdoption(_ workflow.Context, a Adopt) (string, error) {
	ahead := t.snapshotAhead()
	if a.Fingerprint == "" && t.programs != nil {
		a.Fingerprint = t.Fingerprint
	}
	t.Adopt = &Adoption{Fingerprint: a.Fingerprint}
	switch {
	case t.Head == nil:
		return "no iteration is committed: the run begins anew", nil
	case ahead != "":
		t.Adopt.After = t.Next + 1
		return fmt.Sprintf("%sbranch %d begins there: no committed iteration is given up", ahead, t.Branch+1), nil
	}
	text := fmt.Sprintf("branch %d begins at the snapshot of version %d: ", t.Branch+1, t.Snapshot)
	switch n := t.Next - t.Snapshot; n {
	case 0:
		text += "no committed iteration is given up"
	case 1:
		text += fmt.Sprintf("1 committed iteration is given up (%d)", t.Snapshot)
	default:
		text += fmt.Sprintf("%d committed iterations are given up (%d to %d)", n, t.Snapshot, t.Next-1)
	}
	if t.Current != nil {
		text += fmt.Sprintf("; iteration %d, which is under way, is done again", t.Next)
	}
	if t.Paused {
		text += "; it happens when the run is resumed"
	}
	return text, nil
}

// adopt opens the requested branch at the newest snapshot, and finds the device that it
// continues on. Updates since the snapshot were computed by other programs,
// so they are never applied again.
func (t *train) adopt(ctx workflow.Context) error {
	if t.dueToContinue(ctx) {
		return nil // the next history does it
	}
	if t.adopts() {
		a := *t.Adopt
		left, err := t.leaveBranch(ctx)
		if err != nil || !left {
			return err
		}
		if t.Adopt = nil; a.Fingerprint != t.Fingerprint {
			t.Fingerprint, t.Device, t.Wants = "", nil, a.Fingerprint
		}
		t.programs, t.Programs, t.Failures = nil, nil, nil
	}
	return t.chooseDevice(ctx)
}

// leaveBranch goes back to the newest snapshot, in a new branch. Where no iteration is
// committed there is none to leave, and what was begun begins anew. It returns false where
// detectors want to go back further than any snapshot, which drops the adoption.
func (t *train) leaveBranch(ctx workflow.Context) (bool, error) {
	if t.Head == nil {
		t.Current, t.WarmStart, t.Pace = nil, nil, 0
		return true, nil
	}
	to := &RollTo{Iteration: t.Snapshot - 1, Adopt: true}
	if r := t.RollTo; r != nil {
		// Detectors have asked to go back meanwhile: to the newest snapshot before that.
		version := r.Iteration + 1
		found, err := steps.Find.Do(t.onHost(ctx, t.plan.ActivitySeconds), fmt.Sprintf("the newest snapshot before iteration %d", version),
			activities.FindInput{Run: t.Run.ID, Version: &version, Head: &t.Head.Manifest})
		if err != nil {
			return false, err
		}
		if found.Head.Snapshot == 0 {
			t.Adopt = nil
			t.Warnings = append(t.Warnings, fmt.Sprintf("the programs were not adopted: the run goes back to iteration %d, before which it has no snapshot", r.Iteration))
			return false, nil
		}
		to.Iteration, to.Events = found.Head.Snapshot-1, r.Events
	}
	t.RollTo = to
	return true, t.rollBack(ctx)
}

// askSnapshot has the next commit include a snapshot.
func (t *train) askSnapshot(workflow.Context) (string, error) {
	if t.Head != nil && t.Snapshot == t.Next && !t.committing {
		return fmt.Sprintf("version %d, the newest, has a snapshot already", t.Next), nil
	}
	t.SnapshotNow = true
	n := t.Next
	if t.committing {
		n++ // the manifest of this one is being written
	}
	text := fmt.Sprintf("iteration %d ends with a snapshot, of version %d", n, n+1)
	if t.Paused {
		text += ", when the run is resumed"
	}
	return text, nil
}
