package workflows

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// failure is a step of a session that failed together with its session or its device. It
// is an errDeviceLost that counts: the same step failing again and again pauses the run.
type failure struct{ step, kind, text string }

// Kinds of failures besides those of activities.
const (
	kindSessionLost = "SessionLost" // the worker is gone, or was silent for too long
	kindWorkerLost  = "WorkerLost"  // the process that computes has ended
	kindDrained     = "Drained"     // the worker stops: no failure
	kindTimedOut    = "TimedOut"    // the step ran longer than its time limit
)

// Error says which step failed, and why.
func (f *failure) Error() string { return f.step + ": " + f.text }

// Is lets the failure be handled as a lost device.
func (f *failure) Is(target error) bool { return target == errDeviceLost }

// stepName names a step to people: equal names are the same step of the same iteration
// and turn.
func stepName(r steps.Routing, summary string) string { return r.Name + ": " + summary }

// Failing is a step that has failed in a row.
type Failing struct {
	// Step is the step's name, and which iteration and turn it works on.
	Step string `json:"step"`
	// Count is how often it has failed in a row, OutOfMemory how often of these the
	// device had too little memory.
	Count       int `json:"count"`
	OutOfMemory int `json:"out_of_memory,omitempty"`
	// Silent is how often its worker was silent for too long and then there again, which is no failure of the
	// step, and Load how busy the worker's machine was then.
	Silent int              `json:"silent,omitempty"`
	Load   *activities.Load `json:"load,omitempty"`
	// Kind and Error are the last failure's.
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

// maxFailure bounds the text of a failure, because it is carried.
const maxFailure = 1000

// mostOutOfMemory is how often a step may find too little memory: once, because a new
// process has memory that is not fragmented.
const mostOutOfMemory = 2

// count counts a failure of a step, and returns the step's failures in a row.
func (t *train) count(f *failure) Failing {
	of := t.failing(f.step)
	if of == nil {
		t.Failures = append(t.Failures, Failing{Step: f.step})
		of = t.failing(f.step)
	}
	of.Count++
	if f.kind == activities.KindOutOfMemory {
		of.OutOfMemory++
	}
	of.Kind, of.Error = f.kind, shortenTo(f.text, maxFailure)
	return *of
}

// stepEnded sets a step's failures back to 0.
func (t *train) stepEnded(step string) {
	t.Failures = slices.DeleteFunc(t.Failures, func(of Failing) bool { return of.Step == step })
}

// failedTooOften counts a failure, if err is one, and returns its step where it has now
// failed as often in a row as the spec allows; nil otherwise.
func (t *train) failedTooOften(err error) *Failing {
	var f *failure
	if !errors.As(err, &f) {
		return nil
	}
	of := t.count(f)
	limit := t.plan.StepFailures
	if limit == 0 { // the run was resolved by a release without the field
		limit = spec.DefaultStepFailures
	}
	if of.Count < limit && of.OutOfMemory < mostOutOfMemory && f.kind != activities.KindNotExact { // which is the same again
		return nil
	}
	return &of
}

// correctable are the failures that a person can correct, with what they are called: of a foreign environment or a judge
// during a run, of which nothing of the turn is stored, and of the bucket. The run pauses, and the step is done again after it is
// resumed.
var correctable = map[string]string{
	activities.KindEnvironmentBroke: "the environment broke too often",
	activities.KindEnvironment:      "the environment cannot be used",
	activities.KindStoreDenied:      "the bucket denies access",
	activities.KindNoBucket:         "there is no such bucket",
}

// ofEnvironments tells whether a foreign environment or a judge has failed.
func (of Failing) ofEnvironments() bool {
	return of.Kind == activities.KindEnvironmentBroke || of.Kind == activities.KindEnvironment
}

// corrected is a failure that a person can correct, if err is one; nil otherwise.
func corrected(err error) *Failing {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || correctable[app.Type()] == "" {
		return nil
	}
	return &Failing{Step: correctable[app.Type()], Count: 1, Kind: app.Type(), Error: shortenTo(app.Error(), maxFailure)}
}

// untilCorrected does a step that a run needs before it has its plan, and pauses the run while a person has to correct what failed.
func (t *train) untilCorrected(ctx workflow.Context, do func() error) error {
	for {
		err := do()
		of := corrected(err)
		if of == nil {
			return err
		}
		t.Run.ID = workflow.GetInfo(ctx).WorkflowExecution.ID
		phase := t.phase
		t.pauseBy(ctx, of)
		if err := t.rest(ctx); err != nil {
			return err
		}
		t.show(ctx, phase)
	}
}

// Text says how often the step has failed, and why the last time.
func (of Failing) Text() string { return fmt.Sprintf("%s; the last error: %s", of.phase(), of.Error) }

// phase says how often the step has failed.
func (of Failing) phase() string {
	if correctable[of.Kind] != "" {
		return of.Step
	}
	if of.Count == 0 {
		return fmt.Sprintf("the worker of %s was silent %d times in a row", of.Step, of.Silent)
	}
	if of.OutOfMemory >= mostOutOfMemory {
		return fmt.Sprintf("%s was out of memory %d times", of.Step, of.OutOfMemory)
	}
	if of.Count == 1 {
		return of.Step + " failed"
	}
	return fmt.Sprintf("%s failed %d times in a row", of.Step, of.Count)
}

// waitingForMemory is the phase of a run that a device with too little memory has refused.
const waitingForMemory = "waiting for a device with more memory"

// awaitMemory waits, if err says that a device has too little memory for the run, before
// another session is asked for: the same device might take it. Each wait in a row is twice as
// long. The session is closed meanwhile, so that the worker serves others.
func (t *train) awaitMemory(ctx workflow.Context, err error) error {
	var f *failure
	if !errors.As(err, &f) || f.kind != activities.KindDeviceTooSmall || t.Paused {
		return nil
	}
	defer t.waitedSince(ctx, workflow.Now(ctx))
	t.show(ctx, waitingForMemory)
	wait := programsWaitMin
	for _, of := range t.Failures {
		if of.Step == f.step {
			wait = min(programsWaitMin<<min(of.Count-1, 10), sessionWaitMax)
		}
	}
	_, err = workflow.AwaitWithTimeout(ctx, wait, func() bool { return t.Paused || t.adopts() })
	return err
}

// PausedBy is why a run has paused by itself, and what to do.
type PausedBy struct {
	Failing
	Do string `json:"do"`
}

// pausedBy is why the run has paused by itself; nil where it has not.
func (t *train) pausedBy() *PausedBy {
	if t.Stuck == nil || !t.Paused {
		return nil
	}
	advice := remedyOf(t.Stuck.Kind)
	if t.Stuck.ofEnvironments() && t.plan.AsksEnvironments() {
		advice = t.adviceOnEnvironments()
	}
	return &PausedBy{Failing: *t.Stuck, Do: fmt.Sprintf("%s Then resume: temporal workflow update execute -w %s --name resume", advice, t.Run.ID)}
}

// whyPaused says why the run rests; "" while it does not.
func (t *train) whyPaused() string {
	switch {
	case !t.resting:
		return ""
	case t.Stuck != nil:
		return t.Stuck.Text()
	}
	return "by the update pause"
}

// pauseBy pauses the run because of a step.
func (t *train) pauseBy(ctx workflow.Context, of *Failing) {
	t.Paused, t.Stuck = true, of
	t.phaseAttribute(ctx, "paused")
}

// resume lets the run go on, with no failures counted.
func (t *train) resume() { t.Paused, t.Stuck, t.Failures = false, nil, nil }

// rest waits until the run is resumed, or has nothing left to do.
func (t *train) rest(ctx workflow.Context) error {
	t.resting, t.programs = true, nil
	stuck := t.Stuck != nil
	if stuck {
		t.show(ctx, "paused: "+t.Stuck.phase())
	} else {
		t.show(ctx, "paused")
	}
	t.sweep.pauses(ctx, t)
	err := workflow.Await(ctx, func() bool { return !t.Paused || t.ready && t.Next >= t.end() && t.RollTo == nil })
	t.resting = false
	if err != nil {
		return err
	}
	t.sweep.pauses(ctx, t)
	if stuck {
		t.phaseAttribute(ctx, "training")
	}
	return nil
}
