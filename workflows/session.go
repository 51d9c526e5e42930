package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

// errDeviceLost says that the session ended during the work: open another one and
// continue with the same iteration.
var errDeviceLost = errors.New("device lost")

// errDrained says that the worker gave the device up by itself, because it stops: no device was lost.
var errDrained = fmt.Errorf("the worker stops: %w", errDeviceLost)

// errNotHeld says that a lease ended before anything was computed under it, or that nobody lost anything: another one is asked for.
var errNotHeld = fmt.Errorf("the lease was not held: %w", errDeviceLost)

// sessionLost is how a session that a step needs was lost.
const sessionLost = "its session was lost: the worker is gone, or was silent for too long"

// tooLong is the server's name for the error of an activity that was cut off at its time
// limit. It would be cut off again, so it is not retried in its session: the run counts it.
const tooLong = "TemporalTimeout:StartToClose"

// errLongHistory says that a wait has made the history so long that the run should
// continue as new.
var errLongHistory = errors.New("the history is long")

// inLine is told of a run that stands in line for a device.
type inLine struct {
	// begins is called when it has to wait.
	begins func()
	// told is called with what is known of the wait.
	told func(Waiting)
}

// openDevice is openSession by a lease, or by a session of the SDK.
type openDevice func(ctx workflow.Context, fingerprint string, commanded func() bool, run inLine) (given, error)

// present are the fingerprints that were there when a run asked.
type present []string

// ask asks what devices there are, and tells it.
func (p *present) ask(ctx workflow.Context, fingerprint string, commanded func() bool, run inLine) {
	w := Waiting{Wanted: fingerprint}
	if info, err := describe(ctx, describeWait, commanded); err == nil {
		if !slices.Contains(*p, info.Fingerprint) {
			*p = append(*p, info.Fingerprint)
			slices.Sort(*p)
		}
		if info.Fingerprint == fingerprint {
			w.Busy, w.Of = info.Busy, len(info.Line)
			w.Place = 1 + slices.Index(info.Line, workflow.GetInfo(ctx).WorkflowExecution.ID)
		}
	}
	w.Present = *p
	run.told(w)
}

// session is the time in which a run has a device. It has it by a lease or, in runs of earlier builds, by a session of the SDK.
type session struct {
	given
	work      workflow.Context // of the activities: it ends with the session, and when the workflow is cancelled
	bound     int              // the spec's activity bound, seconds
	heartbeat time.Duration    // how long an activity may be silent
	closed    bool
	used      usage
}

// given is what a run has a device by.
type given interface {
	// context is that of the session's activities: it is disconnected from the workflow's, and ends with the session.
	context() workflow.Context
	// queue is that of the process which computes; "" where context says it.
	queue() string
	// over is how the session has ended; nil while it lasts.
	over() *loss
	// worker names the process that gave the device.
	worker() string
	// gone says that nobody is there: a step was not begun.
	gone()
	// giveBack gives the device back. It may be called when the session is over.
	giveBack()
}

// loss is how a session has ended: the kind of the failure, and a text. errDrained and errNotHeld count as no failure
// of a step; their text is for the log.
type loss struct {
	uncounted  error
	kind, text string
}

// error is the loss as the error of a step.
func (l *loss) error(step string) error {
	if l.uncounted != nil {
		return l.uncounted
	}
	return &failure{step: step, kind: l.kind, text: l.text}
}

// describe asks any device worker for its fingerprint, and waits so long for a worker to
// take the question, but not when commanded says that there is something else to do.
func describe(ctx workflow.Context, wait time.Duration, commanded func() bool) (activities.DeviceInfo, error) {
	var info activities.DeviceInfo
	ctx, cancel := workflow.WithCancel(ctx)
	answered := false
	workflow.Go(ctx, func(own workflow.Context) {
		if err := workflow.Await(own, func() bool { return answered || commanded() }); err == nil && !answered {
			cancel()
		}
	})
	defer func() { answered = true }()
	o := options(steps.Describe.Routing, "which devices are there", describeSeconds, 0)
	o.ScheduleToStartTimeout = wait
	o.ScheduleToCloseTimeout = wait + o.StartToCloseTimeout
	ctx = workflow.WithActivityOptions(ctx, o)
	err := workflow.ExecuteActivity(ctx, steps.Describe.Name).Get(ctx, &info)
	return info, err
}

// openSession waits for a device with the fingerprint, without limit. While it waits, it tells from time to time what is
// there. It fails only when the workflow is cancelled, with errLongHistory, or with errCommanded when commanded says so.
func (w *Workflows) openSession(
	ctx workflow.Context, fingerprint string, bound int, commanded func() bool, run inLine,
) (s *session, err error) {
	var open openDevice = w.openSDKSession
	if byLease.holds(ctx) {
		open = w.openLease
	}
	s = &session{bound: bound, heartbeat: w.SessionHeartbeat}
	if s.given, err = open(ctx, fingerprint, commanded, run); err != nil {
		return nil, err
	}
	s.used.opened = workflow.Now(ctx)
	s.used.counted = s.used.opened
	root, _ := workflow.NewDisconnectedContext(ctx)
	var stopWork workflow.CancelFunc
	s.work, stopWork = workflow.WithCancel(s.context())
	// Cancelling the workflow cancels the activity that runs; the session is closed by its opener.
	workflow.Go(root, func(own workflow.Context) {
		_ = workflow.Await(own, func() bool { return s.closed || ctx.Err() != nil })
		stopWork()
	})
	return s, nil
}

// close gives the device back. It may be called on a lost session.
func (s *session) close() {
	s.closed = true
	s.giveBack()
}

// onSession runs activities inside a session, and counts what they cost.
func (t *train) onSession(ctx workflow.Context, s *session) steps.Runner {
	return func(r steps.Routing, summary string, input, result any) error {
		begun := workflow.Now(ctx)
		err := s.run(ctx, r, summary, t.patience(stepName(r, summary)), input, result)
		t.measured(ctx, s, r, summary, begun, result, err)
		return err
	}
}

// run executes a device activity inside the session. The error is errDeviceLost if
// another session can continue, and the workflow's own if it is cancelled. The activity may run
// so many times as long as usual.
func (s *session) run(ctx workflow.Context, r steps.Routing, summary string, times int, input, result any) error {
	failed := func(kind, format string, args ...any) error {
		return &failure{step: stepName(r, summary), kind: kind, text: fmt.Sprintf(format, args...)}
	}
	if l := s.over(); l != nil {
		return l.error(stepName(r, summary))
	}
	o := options(r, summary, s.bound, s.heartbeat)
	o.StartToCloseTimeout *= time.Duration(times)
	o.TaskQueue = s.queue()
	o.RetryPolicy.NonRetryableErrorTypes = append(slices.Clone(activities.NonRetryable), tooLong)
	actx := workflow.WithActivityOptions(s.work, o)
	err := workflow.ExecuteActivity(actx, r.Name, input).Get(ctx, result)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	// What the worker has said counts, though its session may have ended since.
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		switch app.Type() {
		case activities.KindNotResident:
			return errDeviceLost
		case activities.KindDraining:
			return s.ending(ctx, errDrained)
		case activities.KindDeviceTooSmall, activities.KindNotExact:
			return failed(app.Type(), "%s", app.Message())
		case activities.KindOutOfMemory, activities.KindDeviceFailed:
			return s.ending(ctx, failed(app.Type(), "%s", app.Message()))
		}
	}
	if l := s.over(); l != nil {
		return l.error(stepName(r, summary))
	}
	if errors.Is(err, workflow.ErrSessionFailed) {
		return failed(kindSessionLost, sessionLost)
	}
	if late, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		if late.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
			s.gone()
			return failed(kindSessionLost, "no worker began it")
		}
		return failed(kindTimedOut, "it ran longer than its time limit of %s, which follows from limits.activity_seconds (%d)", o.StartToCloseTimeout, s.bound)
	}
	return err
}

// ending returns lost when the worker has ended the session, which it does in a moment:
// another session before that would find the same worker.
func (s *session) ending(ctx workflow.Context, lost error) error {
	if s.over() != nil {
		return lost
	}
	if _, err := workflow.AwaitWithTimeout(ctx, drainWait, func() bool { return s.over() != nil }); err != nil {
		return err
	}
	return lost
}
