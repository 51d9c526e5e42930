package workflows

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/iteration"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// TrainResult is a run's last word.
type TrainResult struct {
	Run         string             `json:"run"`
	Branch      int                `json:"branch"`
	Iterations  int                `json:"iterations"`
	Manifest    *store.Ref         `json:"manifest,omitempty"`
	State       string             `json:"state"`
	First       *Evaluated         `json:"first_evaluation,omitempty"`
	Last        *Evaluated         `json:"last_evaluation,omitempty"`
	Metrics     activities.Metrics `json:"metrics,omitempty"`
	LostDevices int                `json:"lost_devices"`
	Recomputed  int                `json:"recomputed_updates"`
}

// Carry is what a run takes across continue-as-new: names, digests and counters,
// under 64 KiB. A person starting a run leaves it out.
type Carry struct {
	Run         activities.Run    `json:"run"`
	Branch      int               `json:"branch"`
	Next        int               `json:"next"` // the iteration to do next
	Head        *activities.Head  `json:"head,omitempty"`
	State       string            `json:"state"` // state fingerprint of version Next
	Settings    spec.Settings     `json:"settings"`
	Fingerprint string            `json:"fingerprint"`
	Device      json.RawMessage   `json:"device,omitempty"`
	Programs    map[string]string `json:"programs,omitempty"`
	Frozen      string            `json:"frozen,omitempty"` // fingerprint of the base model below adapters
	Flags       *activities.Flags `json:"flags,omitempty"`
	Attributes  bool              `json:"attributes"` // the server knows our search attributes
	Paused      bool              `json:"paused"`
	StopAfter   *int              `json:"stop_after,omitempty"`
	// Current is the running iteration, with the steps that are done.
	Current *iteration.State `json:"current,omitempty"`
	// WarmStartBase is the model that a warm start teaches; nil for a starter. WarmStart
	// is how far it got, and Pace the updates of its next chunk.
	WarmStartBase *store.Ref `json:"taught,omitempty"`
	// Imported is the model that WarmStartBase began as, for a warm start that is done again; nil for a starter.
	Imported    *store.Ref           `json:"imported,omitempty"`
	WarmStart   *store.SnapshotRef   `json:"warm_start,omitempty"`
	Pace        int                  `json:"pace,omitempty"`
	Snapshot    int                  `json:"snapshot"` // version of the newest snapshot
	First       *store.EvaluationRef `json:"first,omitempty"`
	Last        *store.EvaluationRef `json:"last,omitempty"`
	Metrics     activities.Metrics   `json:"metrics,omitempty"`
	LostDevices int                  `json:"lost_devices"`
	// DrainedDevices counts devices that their workers gave up by themselves, because they stopped.
	DrainedDevices int `json:"drained_devices,omitempty"`
	// SilentDevices counts sessions that were lost by silence while their worker lived, and LostSession is the last
	// lost one, of which it is not known yet whether it lives.
	SilentDevices int          `json:"silent_devices,omitempty"`
	LostSession   *LostSession `json:"lost_session,omitempty"`
	Recomputed    int          `json:"recomputed"`
	Warnings      []string     `json:"warnings,omitempty"`
	// Costs are what the run has cost by device kind.
	Costs costs `json:"costs,omitzero"`
	// Rebuilding is how long rebuilding the policy takes, as far as it was measured.
	Rebuilding rebuilding `json:"rebuilding,omitzero"`
	// Detected is what the detectors of collapse know, Events the newest they saw.
	Detected activities.Detected `json:"detected"`
	Events   []collapse.Event    `json:"events,omitempty"`
	// Failures are the steps that have failed in a row, Stuck the one for which the run
	// has paused.
	Failures []Failing `json:"failures,omitempty"`
	Stuck    *Failing  `json:"stuck,omitempty"`
	// DoneAgain is one more than the iteration that is done again because an artifact of it was damaged.
	DoneAgain int `json:"done_again,omitempty"`
	// SnapshotNow says that the next commit has a snapshot.
	SnapshotNow bool `json:"snapshot_now,omitempty"`
	// Adopt is an adoption that is asked for and not done; Wants is the fingerprint that a
	// run without one looks for, "" for any.
	Adopt *Adoption `json:"adopt,omitempty"`
	Wants string    `json:"wants,omitempty"`
	// RollTo is where the run goes back to next; Opened why its branch was opened,
	// until the branch's first commit has it.
	RollTo *RollTo            `json:"roll_to,omitempty"`
	Opened *activities.Opened `json:"opened,omitempty"`
}

// train is a Train workflow in memory.
type train struct {
	*Workflows
	Carry
	input json.RawMessage // the spec as a person wrote it
	plan  activities.Plan
	ready bool // the spec is resolved: commands can be judged
	// describing: a command has asked the environments for their descriptions, and waits for the answer.
	describing bool
	phase      string
	wait       Waiting // for a device; Wanted is "" while there is none
	marked     bool    // others find that it waits
	// programs are those of the worker that was tried last, where they are not the run's.
	programs *wrongPrograms
	resting  bool // paused, and nothing runs
	here     int  // iterations committed since the last continue-as-new
	// restored is what a restore before an iteration took: part of its telemetry.
	restored *activities.Telemetry
	// committing: the iteration's snapshot and evaluation are decided.
	committing bool
	// sent are the costs in the commit that is under way: what comes meanwhile goes with the next
	// one. A run never continues as new before the commit has ended.
	sent []activities.Cost
	// ahead is the next iteration, if it has begun beside the commit of the running one.
	ahead *iteration.State
	// helpers are the other workers that sample blocks of the running rollout.
	helpers helpers
	// measuring: this is an Evaluate workflow, nothing is learned.
	measuring bool
	// sweep reports the run's progress to its sweep; nil if the run is not a trial.
	sweep *reporter
}

// Train is a run: roll out, select, update, commit, iteration after iteration.
// input is the spec's JSON as a person wrote it; carry is nil but after
// continue-as-new. Start it with workflow id = run id on queue "reprise".
func (w *Workflows) Train(ctx workflow.Context, input json.RawMessage, carry *Carry) (*TrainResult, error) {
	t := &train{Workflows: w, input: input}
	if carry != nil {
		t.Carry, t.Workflows = *carry, w.with(carry.Flags)
	}
	if err := t.handle(ctx); err != nil {
		return nil, err
	}
	t.sweep = w.newReporter(ctx, carry != nil)
	err := t.run(ctx, input, carry != nil)
	if err != nil && !workflow.IsContinueAsNewError(err) {
		t.show(ctx, "ended: "+reason(ctx, err))
		t.sweep.ended(ctx, t, err)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	t.reportAtEnd(ctx)
	t.show(ctx, "done")
	t.sweep.ended(ctx, t, nil)
	_ = workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
	return &TrainResult{
		Run: t.Run.ID, Branch: t.Branch, Iterations: t.Next, Manifest: t.headRef(), State: t.State,
		First: evaluated(t.First), Last: evaluated(t.Last), Metrics: t.Metrics, LostDevices: t.LostDevices, Recomputed: t.Recomputed,
	}, nil
}

func reason(ctx workflow.Context, err error) string {
	if ctx.Err() != nil {
		return "cancelled; the run's end is its last committed iteration"
	}
	return err.Error()
}

func (t *train) run(ctx workflow.Context, input json.RawMessage, again bool) error {
	if err := t.resolve(ctx, input, again); err != nil {
		return err
	}
	if err := t.chooseDevice(ctx); errors.Is(err, errLongHistory) {
		return t.continueAsNew(ctx, input)
	} else if err != nil && !errors.Is(err, errCommanded) {
		return err
	}
	for t.Next < t.end() || t.RollTo != nil {
		if t.Paused {
			if err := t.rest(ctx); err != nil {
				return err
			}
			continue
		}
		err := t.adopt(ctx)
		if err == nil {
			err = t.withDevice(ctx)
		}
		if errors.Is(err, errCommanded) && t.RollTo != nil && !t.Paused && !t.adopts() {
			err = t.rollBack(ctx)
		}
		if errors.Is(err, errDeviceLost) {
			t.countLoss(err)
			if step := t.failedTooOften(err); step != nil {
				t.pauseBy(ctx, step)
			}
			if err := cmp.Or(t.awaitMemory(ctx, err), t.awaitCalm(ctx, err)); err != nil {
				return err
			}
		} else if errors.Is(err, errOtherPrograms) {
			if err := t.awaitPrograms(ctx); err != nil {
				return err
			}
		} else if of := corrected(err); of != nil {
			t.pauseBy(ctx, of)
		} else if damage := t.damaged(err); damage != "" {
			t.doAgain(ctx, damage)
		} else if err != nil && !errors.Is(err, errLongHistory) && !errors.Is(err, errCommanded) {
			return err
		}
		if t.dueToContinue(ctx) && (t.Next < t.end() || t.RollTo != nil) {
			return t.continueAsNew(ctx, input)
		}
	}
	return nil
}

func (t *train) continueAsNew(ctx workflow.Context, input json.RawMessage) error {
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	t.sweep.flush(ctx)
	return workflow.NewContinueAsNewError(ctx, "Train", input, t.Carry)
}

// dueToContinue says whether the history is long enough to begin a new one.
func (t *train) dueToContinue(ctx workflow.Context) bool { return t.dueToContinueAfter(ctx, 0) }

// dueToContinueAfter says whether it is so when more iterations are committed.
func (t *train) dueToContinueAfter(ctx workflow.Context, more int) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() || t.ContinueAfter > 0 && t.here+more >= t.ContinueAfter
}

// end is the number of iterations after which the run is done.
func (t *train) end() int {
	end := t.plan.Iterations
	if t.StopAfter != nil {
		end = min(end, *t.StopAfter+1)
	}
	if t.plan.Reached(t.Metrics) {
		end = min(end, t.Next)
	}
	return end
}

// resolve checks and writes the spec, or reads it again after continue-as-new.
func (t *train) resolve(ctx workflow.Context, input json.RawMessage, again bool) error {
	t.show(ctx, "resolving")
	if again {
		var r activities.LoadResult
		err := t.untilCorrected(ctx, func() (err error) {
			r, err = steps.Load.Do(t.onHost(ctx, 0), "read the spec", activities.LoadInput{Run: t.Run.ID, Spec: t.Run.Spec})
			return err
		})
		if err != nil {
			return err
		}
		t.planned(r.Plan)
		return nil
	}
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	var r activities.ResolveResult
	err := t.untilCorrected(ctx, func() (err error) {
		r, err = steps.Resolve.Do(t.onHost(ctx, 0), "check the spec and write it down", activities.ResolveInput{Run: id, Spec: input})
		return err
	})
	if err != nil {
		return err
	}
	t.planned(r.Plan)
	t.Run = activities.Run{ID: id, Spec: r.Spec}
	t.Flags, t.Workflows = r.Flags, t.with(r.Flags)
	t.Attributes = r.SearchAttributes
	t.Settings = r.Plan.Settings
	if err := workflow.UpsertMemo(ctx, map[string]any{"artifacts": r.Location, "spec": r.Spec.Digest}); err != nil {
		workflow.GetLogger(ctx).Warn("memo was not set", "error", err)
	}
	if !r.SearchAttributes {
		t.Warnings = append(t.Warnings, "the Reprise* search attributes are not registered: run `reprise doctor --register`")
	}
	t.Warnings = append(t.Warnings, r.Warnings...)
	if r.Base != nil && r.Plan.Prepare {
		t.WarmStartBase, t.Imported = r.Base, r.Base
	} else if r.Base != nil {
		t.Run.Base = *r.Base
	}
	if f := r.From; f != nil {
		t.Next, t.State, t.Fingerprint, t.Device, t.Snapshot = f.Iteration+1, f.State, f.Fingerprint, f.Device, f.Snapshot
		t.Head = f.Carried()
	}
	if h := r.Head; h != nil {
		// The store has iterations of this run: Temporal's database was lost, or
		// the run was cancelled and is started again. It continues after them.
		t.Branch, t.Next, t.State = h.Branch, h.Iteration+1, h.State
		t.Run.Base, t.Fingerprint, t.Settings = h.Base, h.Fingerprint, h.Settings
		if h.NextRollout != nil { // a command may have changed them since
			t.Settings = h.NextRollout.Settings
		}
		t.Metrics, t.Snapshot, t.First, t.Last, t.Device = h.Metrics, h.Snapshot, h.First, h.Last, h.Device
		if h.Detected != nil {
			// A requested branch does not exist yet; a run that was stopped and is
			// started again continues.
			t.Detected, t.Events = *h.Detected, h.Detected.Events
			t.rollOn(h.Detected)
		}
		t.Head = h.Carried()
	}
	return nil
}

// commanded tells, in a wait for a device that begins now, whether a command gives the run something else to
// do: it pauses, ends, adopts other programs, or goes back. What was asked before the wait waits for the device.
// An evaluation has no commands.
func (t *train) commanded() func() bool {
	asked := t.RollTo != nil
	return func() bool {
		return !t.measuring && (t.Paused || t.adopts() || t.RollTo != nil && !asked || t.RollTo == nil && t.Next >= t.end())
	}
}

// planned takes the plan over. A worker that does not have the run's methods fails the workflow task, which waits then
// for one that has them.
func (t *train) planned(plan activities.Plan) {
	if err := plan.Settings.Linked(plan.Search); err != nil {
		panic(err)
	}
	t.plan, t.ready = plan, true
}

// chooseDevice binds a new run to the fingerprint of the first device that
// answers: its bits belong to that one (law 8).
func (t *train) chooseDevice(ctx workflow.Context) error {
	defer t.waitedSince(ctx, workflow.Now(ctx))
	// Each question waits longer than the one before, so that a run that waits
	// for days has a short history; a device that comes takes it at once.
	commanded := t.commanded()
	for wait := describeWait; t.Fingerprint == ""; wait = min(wait*2, sessionWaitMax) {
		if commanded() && wait > describeWait {
			return errCommanded
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return errLongHistory
		}
		if wait == describeWait {
			t.show(ctx, "looking for a device")
		} else {
			t.wait.Wanted = cmp.Or(t.Wants, anyDevice)
			t.show(ctx, waitingForDevice)
		}
		info, err := describe(ctx, wait, func() bool { return commanded() && wait > describeWait })
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && t.Wants != "" && t.Wants != info.Fingerprint:
			t.wait.Wanted = t.Wants
			if !slices.Contains(t.wait.Present, info.Fingerprint) {
				t.wait.Present = append(t.wait.Present, info.Fingerprint)
			}
			t.show(ctx, waitingForDevice)
			if _, err := workflow.AwaitWithTimeout(ctx, wait, commanded); err != nil {
				return err
			}
		case err == nil:
			t.Fingerprint, t.Device, t.Wants = info.Fingerprint, info.Fields, ""
		case !temporal.IsTimeoutError(err) && !temporal.IsCanceledError(err):
			if _, err := workflow.AwaitWithTimeout(ctx, wait, commanded); err != nil {
				return err
			}
		}
	}
	return nil
}

// withDevice opens a session, brings the policy onto its device and does
// iterations until the run ends, is paused, or should continue as new.
func (t *train) withDevice(ctx workflow.Context) (err error) {
	t.show(ctx, askingForDevice)
	asked := workflow.Now(ctx)
	s, err := t.openSession(ctx, t.Fingerprint, t.plan.ActivitySeconds, t.commanded(), t.inLine(ctx))
	t.waitedSince(ctx, asked)
	t.served(ctx)
	if err != nil {
		return err
	}
	t.heard(s)
	defer func() {
		t.leaves(ctx, s, err)
		t.noteLoss(s, err)
		s.close()
	}()
	if err := t.warmStart(ctx, s); err != nil || t.Run.Base.Digest == "" {
		return err // paused before the base model is made: the rest follows after resume
	}
	t.sweep.begun(ctx, t)
	restored := false
	for (t.Next < t.end() || t.RollTo != nil) && !t.Paused && !t.adopts() && !t.dueToContinue(ctx) {
		if t.RollTo != nil {
			if err := t.rollBack(ctx); err != nil {
				return err
			}
			restored = false
		}
		if !restored {
			if err := t.restore(ctx, s); err != nil {
				return err
			}
			restored = true
			continue // the end may be nearer than it was
		}
		if err := t.iterate(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (t *train) headRef() *store.Ref {
	if t.Head == nil {
		return nil
	}
	return &t.Head.Manifest
}
