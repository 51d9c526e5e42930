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

// sessionLost is how a session that a step needs was lost.
const sessionLost = "its session was lost: the worker is gone, or was silent for too long"

// tooLong is the server's name for the error of an activity that was cut off at its time
// limit. It would be cut off again, so it is not retried in its session: the run counts it.
const tooLong = "TemporalTimeout:StartToClose"

// errLongHistory says that a wait has made the history so long that the run should
// continue as new.
var errLongHistory = errors.New("the history is long")

// waiting receives the fingerprint that is wanted and those that are present.
type waiting func(wanted string, present []string)

// session is a Temporal session on one device worker. Its root context is
// disconnected from the workflow's, so that a cancelled workflow can still give
// the device back in order.
type session struct {
	ctx      workflow.Context // the session's; activities run in work
	work     workflow.Context
	stopWork workflow.CancelFunc
	info     *workflow.SessionInfo
	bound    int // the spec's activity bound, seconds
	// heartbeat is how long an activity may be silent.
	heartbeat time.Duration
	closed    bool
	used      usage
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

// openSession waits for a device with the fingerprint, without limit. It calls tell after
// the first failed try. It fails only when the workflow is cancelled, with errLongHistory,
// or with errCommanded when commanded says so.
func (w *Workflows) openSession(
	ctx workflow.Context, fingerprint string, bound int, commanded func() bool, tell waiting,
) (*session, error) {
	var present []string
	for wait := sessionWait; ; wait = min(wait*2, sessionWaitMax) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return nil, errLongHistory
		}
		s, err := w.trySession(ctx, fingerprint, bound, wait, commanded)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if commanded() {
			return nil, errCommanded
		}
		if info, err := describe(ctx, describeWait, commanded); err == nil && !slices.Contains(present, info.Fingerprint) {
			present = append(present, info.Fingerprint)
			slices.Sort(present)
		}
		tell(fingerprint, present)
	}
}

func (w *Workflows) trySession(
	ctx workflow.Context, fingerprint string, bound int, wait time.Duration, commanded func() bool,
) (*session, error) {
	root, _ := workflow.NewDisconnectedContext(ctx)
	root = workflow.WithActivityOptions(root, workflow.ActivityOptions{
		TaskQueue:           activities.DeviceQueue(fingerprint),
		StartToCloseTimeout: sessionLife,
	})
	creation, stopCreation := workflow.WithCancel(root)
	open := false
	// A cancelled workflow must not sit out the wait for a device, nor one that has something else to do.
	workflow.Go(root, func(own workflow.Context) {
		_ = workflow.Await(own, func() bool { return open || ctx.Err() != nil || commanded() })
		if !open {
			stopCreation()
		}
	})
	sctx, err := workflow.CreateSession(creation, &workflow.SessionOptions{
		CreationTimeout:  wait,
		ExecutionTimeout: sessionLife,
		HeartbeatTimeout: w.SessionHeartbeat,
	})
	open = true
	if err != nil {
		return nil, err
	}
	s := &session{ctx: sctx, info: workflow.GetSessionInfo(sctx), bound: bound, heartbeat: w.SessionHeartbeat}
	s.used.opened = workflow.Now(ctx)
	s.used.counted = s.used.opened
	s.work, s.stopWork = workflow.WithCancel(sctx)
	// Cancelling the workflow cancels the activity that runs; the session is
	// closed by its opener.
	workflow.Go(root, func(own workflow.Context) {
		_ = workflow.Await(own, func() bool { return s.closed || ctx.Err() != nil })
		s.stopWork()
	})
	return s, nil
}

// close gives the device back. It may be called on a lost session.
func (s *session) close() {
	s.closed = true
	workflow.CompleteSession(s.ctx)
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
	if s.info.SessionState != workflow.SessionStateOpen {
		return failed(kindSessionLost, sessionLost)
	}
	o := options(r, summary, s.bound, s.heartbeat)
	o.StartToCloseTimeout *= time.Duration(times)
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
			return s.ending(ctx, errDeviceLost)
		case activities.KindDeviceTooSmall, activities.KindNotExact:
			return failed(app.Type(), "%s", app.Message())
		case activities.KindOutOfMemory, activities.KindDeviceFailed:
			return s.ending(ctx, failed(app.Type(), "%s", app.Message()))
		}
	}
	if s.info.SessionState != workflow.SessionStateOpen || errors.Is(err, workflow.ErrSessionFailed) {
		return failed(kindSessionLost, sessionLost)
	}
	if late, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		if late.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
			return failed(kindSessionLost, "no worker began it")
		}
		return failed(kindTimedOut, "it ran longer than its time limit of %s, which follows from limits.activity_seconds (%d)", o.StartToCloseTimeout, s.bound)
	}
	return err
}

// ending returns lost when the worker has ended the session, which it does in a moment:
// another session before that would find the same worker.
func (s *session) ending(ctx workflow.Context, lost error) error {
	if s.info.SessionState != workflow.SessionStateOpen {
		return lost
	}
	if _, err := workflow.AwaitWithTimeout(ctx, drainWait, func() bool {
		return s.info.SessionState != workflow.SessionStateOpen
	}); err != nil {
		return err
	}
	return lost
}
