package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Status is the answer to the query "status".
type Status struct {
	Run         string `json:"run"`
	Phase       string `json:"phase"`
	Branch      int    `json:"branch"`
	Iteration   int    `json:"iteration"`
	Iterations  int    `json:"iterations"`
	Environment string `json:"environment"`
	Paused      bool   `json:"paused"`
	// Fingerprint is the device fingerprint the run belongs to.
	Fingerprint string `json:"fingerprint"`
	// Waiting is set while no device serves it: what is wanted, and what is there.
	Waiting  *Waiting           `json:"waiting,omitempty"`
	Head     *store.Ref         `json:"head,omitempty"`
	State    string             `json:"state"`
	Settings spec.Settings      `json:"settings"`
	Metrics  activities.Metrics `json:"metrics,omitempty"`
	First    *Evaluated         `json:"first_evaluation,omitempty"`
	Last     *Evaluated         `json:"last_evaluation,omitempty"`
	// PausedBy is why the run has paused by itself, Failing the steps that have failed in
	// a row so far.
	PausedBy    *PausedBy `json:"paused_by,omitempty"`
	Failing     []Failing `json:"failing,omitempty"`
	LostDevices int       `json:"lost_devices"`
	// SilentDevices counts sessions that ended because their worker was silent for too long, and then was there again:
	// its machine had too much to do.
	SilentDevices int `json:"silent_devices,omitempty"`
	// DrainedDevices counts devices that their workers gave up by themselves, because they stopped.
	DrainedDevices int `json:"drained_devices,omitempty"`
	// Recomputed counts updates applied again so far to rebuild the policy, or begun again
	// after some of their pieces were lost.
	Recomputed int `json:"recomputed_updates"`
	// AtRisk is how many updates would be applied again if the device died now.
	AtRisk int `json:"updates_since_snapshot"`
	// RebuildSeconds is about how long loading the last snapshot and applying them again
	// would take, by what these steps took last; without the time to notice and to compile.
	RebuildSeconds float64  `json:"rebuild_seconds,omitempty"`
	Warnings       []string `json:"warnings,omitempty"`
	// Costs are what the run has cost so far, by device kind.
	Costs []activities.Cost `json:"costs,omitempty"`
	// Events are the newest that the detectors of collapse saw.
	Events []collapse.Event `json:"events,omitempty"`
}

// Evaluated is what a person wants to know of an evaluation; the manifest has
// the rest.
type Evaluated struct {
	Version int                `json:"version"`
	Suite   string             `json:"suite,omitempty"`
	Metrics activities.Metrics `json:"metrics"`
}

func evaluated(e *store.EvaluationRef) *Evaluated {
	if e == nil {
		return nil
	}
	return &Evaluated{Version: e.Version, Suite: e.Suite, Metrics: e.Metrics}
}

// Waiting is a wait for a device.
type Waiting struct {
	Wanted  string   `json:"wanted"`
	Present []string `json:"present"`
	// Busy is the run that has the device of a worker with the wanted fingerprint.
	Busy string `json:"busy,omitempty"`
	// Place is the run's place in line, from 1, and Of how many runs stand in it; 0 where they are not known.
	Place int `json:"place,omitempty"`
	Of    int `json:"of,omitempty"`
	// Reason is set where a worker serves the fingerprint and its build lowers other
	// programs than the run's; Programs are those, as recorded and as they are there.
	Programs []activities.OtherProgram `json:"programs,omitempty"`
	Reason   string                    `json:"reason,omitempty"`
}

// InLine says what a run waits for where a worker of its fingerprint is there.
func (w *Waiting) InLine() string {
	has, place := "serves another workflow", "stands in line"
	if w.Busy != "" {
		has = fmt.Sprintf("is busy with %s", w.Busy)
	}
	if w.Place > 0 {
		place = fmt.Sprintf("is number %d of %d in line", w.Place, w.Of)
	}
	return fmt.Sprintf("a device worker with fingerprint %s is there, and %s; this run %s (first come, first served among equal priorities), and "+
		"another worker of that fingerprint would take it at once", w.Wanted, has, place)
}

// StopAfter is the argument of the update "stop-after".
type StopAfter struct {
	// Iteration is the last iteration to do, counted from 0.
	Iteration int `json:"iteration"`
}

// RollBack is the argument of the update "roll-back".
type RollBack struct {
	// Iteration is the last iteration that stays, counted from 0.
	Iteration int `json:"iteration"`
	// Describe asks the run's environments for their descriptions again, and the new branch takes them.
	Describe bool `json:"describe,omitempty"`
}

// errNotReady is the answer to a command before the spec is resolved.
var errNotReady = errors.New("the run has not resolved its spec yet: try again in a moment")

func (t *train) status() Status {
	s := Status{
		Run: t.Run.ID, Phase: t.phase, Branch: t.Branch, Iteration: t.Next, Iterations: t.end(), Environment: t.plan.Environment,
		Paused: t.Paused, Fingerprint: t.Fingerprint, Head: t.headRef(), State: t.State, Settings: t.Settings,
		Metrics: t.Metrics, First: evaluated(t.First), Last: evaluated(t.Last), LostDevices: t.LostDevices,
		SilentDevices: t.SilentDevices, DrainedDevices: t.DrainedDevices, Recomputed: t.Recomputed, PausedBy: t.pausedBy(), Failing: t.Failures,
		AtRisk: t.atRisk(), RebuildSeconds: t.rebuildSeconds(), Warnings: t.Warnings, Events: t.Events,
	}
	s.Waiting, s.Costs = t.waiting(), t.costsNow()
	return s
}

// waiting is what the workflow waits for, nil while it does not.
func (t *train) waiting() *Waiting {
	w := new(t.wait)
	if w.Wanted == "" {
		return nil
	}
	if p := t.programs; p != nil {
		w.Programs, w.Reason = p.Programs, p.reason
	}
	return w
}

// handle registers the query and the commands. Commands are updates with
// validators: Temporal makes them idempotent by update id.
func (t *train) handle(ctx workflow.Context) error {
	queries := []command{question("status", func(nothing) (Status, error) {
		s := t.status()
		s.Warnings = append(slices.Clip(s.Warnings), unheard(ctx)...)
		return s, nil
	}, "where the run is, what it measured last, what a kill would cost now", "")}
	return register(ctx, queries, []command{
		order("pause", func(workflow.Context) (string, error) {
			t.Paused = true
			return "pauses when the step that runs has ended; the device is given back", nil
		}, t.validReady, "stop after the running step and give the device back"),
		order("resume", t.askResume, t.validResume, "go on after pause"),
		update("stop-after", func(_ workflow.Context, s StopAfter) (string, error) {
			t.StopAfter = &s.Iteration
			return fmt.Sprintf("the run ends after iteration %d", t.end()-1), nil
		}, t.validStop, "end the run after an iteration", `{"iteration": 12}`),
		update("roll-back", t.askRollBack, t.validRollBack, "go back to a committed iteration and on in a new branch; with describe, the branch takes "+
			"what the environments now say of themselves", `{"iteration": 12}`),
		order("snapshot-now", t.askSnapshot, t.validReady, "end the iteration that runs with a snapshot"),
		update("adopt-programs", t.askAdoption, t.validAdopt, "go on in a new branch, from the newest snapshot, under the programs of the workers that are there, "+
			"or on another device", `{"fingerprint": "9386b8a1e66d"}`),
		order("report", t.report, t.validReady, "write the run's page for people to the store"),
		update("change-knob", func(ctx workflow.Context, c spec.Change) (string, error) {
			s, err := t.Settings.Apply(c)
			if err != nil {
				return "", temporal.NewNonRetryableApplicationError(err.Error(), activities.KindSpecInvalid, err)
			}
			t.Settings = s
			from := t.Next
			if t.Current != nil {
				from++
			}
			if t.nextBegun() {
				from++
			}
			if t.plan.Freshness.Updates() > 1 && (strings.HasPrefix(c.Path, "rollout.") || strings.HasPrefix(c.Path, "selection.")) {
				return c.Path + " holds from the next rollout on", nil
			}
			return fmt.Sprintf("%s holds from iteration %d on", c.Path, from), nil
		}, func(_ workflow.Context, c spec.Change) error {
			if !t.ready {
				return errNotReady
			}
			if spec.SetBySchedule(t.plan.Schedule, c.Path) {
				return fmt.Errorf("%s: the run's schedule sets it; a fork of the run (from) can have another schedule", c.Path)
			}
			s, err := t.Settings.Apply(c)
			if err != nil {
				return err
			}
			if limit := s.Rollout.TurnLimit; limit > t.plan.Turns {
				return fmt.Errorf("rollout.turn_limit: found %d; allowed: at most %d (rollout.turns)", limit, t.plan.Turns)
			}
			return spec.Ahead(t.plan.Schedule, t.plan.Settings, s, t.Next)
		}, "change a knob from the next iteration on", `{"path": "update.learning_rate", "value": 1e-4}`),
	})
}

// nextBegun reports whether the iteration that would begin next has its settings already: it has begun
// beside the commit, or the one before makes its rollout.
func (t *train) nextBegun() bool {
	if t.Current == nil {
		return t.Head != nil && t.Head.NextRollout != nil
	}
	return t.ahead != nil || t.Current.Next != nil
}

func (t *train) validReady(workflow.Context) error {
	if !t.ready {
		return errNotReady
	}
	return nil
}

func (t *train) validRollBack(_ workflow.Context, r RollBack) error {
	switch {
	case !t.ready:
		return errNotReady
	case t.Next <= t.plan.First && t.plan.First == 0:
		return fmt.Errorf("iteration %d is not committed in this run: none is yet", r.Iteration)
	case r.Iteration < max(t.plan.First-1, 0) || r.Iteration >= t.Next:
		return fmt.Errorf("iteration %d is not committed in this run; committed are %d to %d", r.Iteration, t.plan.First, t.Next-1)
	case t.RollTo != nil:
		return fmt.Errorf("the run is about to go back to iteration %d already", t.RollTo.Iteration)
	case r.Describe && !t.plan.AsksEnvironments():
		return errors.New("describe: the run plays no environment that describes itself")
	case r.Describe && t.describing:
		return errDescribing
	}
	return nil
}

func (t *train) validStop(_ workflow.Context, s StopAfter) error {
	if !t.ready {
		return errNotReady
	}
	first := t.Next
	if t.committing {
		first = min(first+1, t.plan.Iterations-1)
	}
	if s.Iteration < first || s.Iteration >= t.plan.Iterations {
		return fmt.Errorf("iteration %d: the run is at iteration %d of %d, so it must be from %d to %d",
			s.Iteration, t.Next, t.plan.Iterations, first, t.plan.Iterations-1)
	}
	return nil
}
