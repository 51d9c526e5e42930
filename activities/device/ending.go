package device

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model/xla/failure"
)

// Cause is why a device can no longer be used in a process. Only a new process can
// use it again.
type Cause string

// The causes.
const (
	OutOfMemory Cause = "out of memory"
	Failed      Cause = "failed"
	Stuck       Cause = "stuck"
	Refused     Cause = "refused" // it failed the self-test
)

// Ending tells that the process of a device worker has to end.
type Ending struct {
	Cause  Cause
	Reason string // what happened, in one line
}

// Error implements error.
func (e *Ending) Error() string { return fmt.Sprintf("device %s: %s", e.Cause, e.Reason) }

// end refuses new work from now on, and reports that the process has to end.
func (e *Engine) end(cause Cause, reason string) {
	e.draining.Store(true)
	end := &Ending{Cause: cause, Reason: reason}
	e.ended.CompareAndSwap(nil, end)
	if e.Ends != nil {
		e.Ends(end)
	}
}

// Alive is why no run can count on the device: it has ended, or an execution has ended nothing for longer than its
// step's bound. nil if all is well.
func (e *Engine) Alive() error {
	if end := e.ended.Load(); end != nil {
		return end
	}
	if s := e.still.Load(); s != nil {
		return s
	}
	return nil
}

// standstill is an execution that has ended nothing for its step's bound. The watchdog ends it somewhat later.
type standstill struct {
	step  string
	bound time.Duration
}

// Error implements error.
func (s *standstill) Error() string {
	return fmt.Sprintf("%s: the device has ended nothing for %s, the step's bound", s.step, s.bound)
}

// deviceError is an error of the device as a history keeps it.
type deviceError struct {
	kind error
	text string
}

func (e *deviceError) Error() string { return e.text }

func (e *deviceError) Unwrap() error { return e.kind }

const (
	// maxErrorText bounds what is kept of an error of XLA, in bytes: where memory is
	// exhausted, it may list every buffer.
	maxErrorText = 600
	// unclearTries is how often a step is tried again after errors that do not tell
	// whether the device has failed.
	unclearTries = 2
)

func cut(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + " …"
}

// unclear counts the unclear errors of one step.
type unclear struct {
	step  string
	times int
}

// settle decides what an activity's error says about the device. If the device ran out of
// memory or has failed, the error gets the kind that says so, and the process has to end.
// rc may be nil. The caller holds the lease.
func (e *Engine) settle(ctx context.Context, rc *run.Context, err error) error {
	switch {
	case err == nil:
		if e.unclear.step == repeatedStep(ctx) {
			e.unclear = unclear{}
		}
	case errors.Is(err, failure.ErrOutOfMemory):
		e.forget()
		e.trim(0)
		err = &deviceError{activities.ErrOutOfMemory, cut(err.Error()) + advice(rc)}
		e.end(OutOfMemory, stepOf(ctx)+": "+err.Error())
	case errors.Is(err, failure.ErrDeviceFailed), errors.Is(err, errPanicked):
		// Nothing is freed: the device may not answer.
		err = &deviceError{activities.ErrDeviceFailed, cut(err.Error())}
		e.end(Failed, stepOf(ctx)+": "+err.Error())
	case errors.Is(err, errUnrepeatable), errors.Is(err, errDisagree):
		err = &deviceError{activities.ErrDeviceFailed, cut(err.Error())}
		e.end(Refused, stepOf(ctx)+": "+err.Error())
	case errors.Is(err, failure.ErrDeviceUnclear):
		if step := repeatedStep(ctx); e.unclear.step != step {
			e.unclear = unclear{step: step}
		}
		if e.unclear.times++; e.unclear.times <= unclearTries {
			return err
		}
		err = &deviceError{activities.ErrDeviceFailed, fmt.Sprintf("%d times in a row: %s", e.unclear.times, cut(err.Error()))}
		e.end(Failed, stepOf(ctx)+": "+err.Error())
	}
	return err
}

// errPanicked says that a step panicked: a mistake of the program, after which nobody knows
// what the engine holds.
var errPanicked = errors.New("the step panicked")

// errUnrepeatable says that the device computes other bits when it computes the same again.
var errUnrepeatable = errors.New("self-test: device does not repeat its bits")

// errDisagree says that two devices of the process compute different bits.
var errDisagree = errors.New("self-test: devices do not compute the same bits")

// panicked is a panic as an error. The log has where it was.
func panicked(ctx context.Context, p any) error {
	activity.GetLogger(ctx).Error("a step panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return fmt.Errorf("%w: %v (the worker's log has where)", errPanicked, p)
}

// advice says what the memory of the device is needed for.
func advice(rc *run.Context) string {
	if rc == nil {
		return ""
	}
	return "; " + derived(rc).MemoryAdvice(rc.Train)
}

// stepOf names the activity of a context, the same for each of its attempts.
func stepOf(ctx context.Context) string {
	if !activity.IsActivity(ctx) {
		return "a step without a workflow"
	}
	info := activity.GetInfo(ctx)
	return fmt.Sprintf("%s (activity %s) of run %s", info.ActivityType.Name, info.ActivityID, info.WorkflowExecution.ID)
}

// repeatedStep names the activities that a run repeats when one of them fails: an update that
// failed while it wrote is scheduled anew, after the version was restored.
func repeatedStep(ctx context.Context) string {
	if !activity.IsActivity(ctx) {
		return stepOf(ctx)
	}
	info := activity.GetInfo(ctx)
	return info.ActivityType.Name + " of run " + info.WorkflowExecution.ID
}

// stuckTicks is the number of looks at the device after which it is stuck. Looks are
// counted, not time: a process that was suspended has looked once meanwhile.
const stuckTicks = 30

// stillTicks is the number of looks after which the bound of a step is over: see watchdog.
const stillTicks = stuckTicks * 2 / 3

// stillness counts the looks at a device that ends nothing.
type stillness struct {
	progress int64
	looks    int
}

// look notes the device's progress; it answers whether the device is stuck.
func (s *stillness) look(progress int64) (stuck bool) {
	if progress != s.progress {
		*s = stillness{progress: progress}
		return false
	}
	s.looks++
	return s.looks >= stuckTicks
}

// boundOf is the time that one attempt of an activity may take; 0 without a limit.
func boundOf(ctx context.Context) time.Duration {
	if !activity.IsActivity(ctx) {
		return 0
	}
	return activity.GetInfo(ctx).StartToCloseTimeout
}

// watchdog ends the process if the device ends nothing for one and a half times a bound.
// Nothing else ends a PJRT execution that is stuck, or frees its device. The caller holds
// the lease, and calls stop before it gives the lease back.
func (e *Engine) watchdog(step string, bound time.Duration) (stop func()) {
	if bound <= 0 {
		return func() {}
	}
	limit := bound + bound/2
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(limit / stuckTicks)
		defer tick.Stop()
		defer e.still.Store(nil)
		looks := stillness{progress: e.device.Progress()}
		for stuck := false; !stuck; {
			select {
			case <-done:
				return
			case <-tick.C:
				stuck = looks.look(e.device.Progress())
			}
			if looks.looks < stillTicks {
				e.still.Store(nil)
			} else {
				e.still.Store(&standstill{step, bound})
			}
		}
		e.end(Stuck, fmt.Sprintf("%s: the device has ended nothing for %s; the step's bound is %s", step, limit, bound))
	}()
	return func() { close(done) }
}
