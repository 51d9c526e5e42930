package workflows

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

// byLease: a run has its device by a lease, no longer by a session of the SDK.
var byLease = changed("lease", "v0.1.0", "a device is had by Acquire, Hold and Release, in place of a session of the SDK")

const (
	// leaseWait is how long a run waits in line before it asks what devices there are, and what they do. It waits twice as long
	// before each question more, up to sessionWaitMax; its place in line stays.
	leaseWait = 4 * time.Second
	// leaseAnswer bounds Acquire, which answers at once, and Release.
	leaseAnswer = 10 * time.Second
)

// lease is a run's right to a device. The worker that gave it holds it for the run, by an activity that lasts as long and
// sends heartbeats; it is in another process than what computes.
type lease struct {
	activities.Lease
	hold workflow.Context // of Hold and Release
	drop workflow.CancelFunc
	work workflow.Context
	run  string
	end  *loss // nil while the lease lasts
}

// openLease waits in line for a device.
func (w *Workflows) openLease(ctx workflow.Context, fingerprint string, commanded func() bool, run inLine) (given, error) {
	var there present
	wait := leaseWait
	for {
		answer, leave := w.standInLine(ctx, fingerprint)
		for !answer.IsReady() {
			if err := left(ctx, commanded); err != nil {
				leave()
				return nil, err
			}
			came, err := workflow.AwaitWithTimeout(ctx, wait, func() bool { return answer.IsReady() || left(ctx, commanded) != nil })
			if err == nil && !came {
				run.begins()
				there.ask(ctx, fingerprint, func() bool { return answer.IsReady() || commanded() }, run)
				wait = min(wait*2, sessionWaitMax)
			}
		}
		var got activities.Lease
		if err := answer.Get(ctx, &got); err == nil {
			return w.hold(ctx, got), nil
		}
		run.begins()
		// Nobody who serves the line has refused for good: what answers is a worker that stops, or of another build.
		there.ask(ctx, fingerprint, commanded, run)
		if _, err := workflow.AwaitWithTimeout(ctx, wait, func() bool { return left(ctx, commanded) != nil }); err != nil {
			return nil, err
		}
		wait = min(wait*2, sessionWaitMax)
	}
}

// left is why a run leaves the line without a device; nil while it waits.
func left(ctx workflow.Context, commanded func() bool) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case commanded():
		return errCommanded
	case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
		return errLongHistory
	}
	return nil
}

// standInLine takes the last place in the line of a fingerprint, until leave.
func (w *Workflows) standInLine(ctx workflow.Context, fingerprint string) (answer workflow.Future, leave workflow.CancelFunc) {
	root, _ := workflow.NewDisconnectedContext(ctx)
	root, leave = workflow.WithCancel(root)
	in := activities.AcquireInput{Run: workflow.GetInfo(ctx).WorkflowExecution.ID}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(root, AcquireOptions(ctx, fingerprint)), steps.Acquire.Name, in), leave
}

// AcquireOptions are the options by which a run stands in line for a device with a fingerprint.
func AcquireOptions(ctx workflow.Context, fingerprint string) workflow.ActivityOptions {
	o := options(steps.Acquire.Routing, "wait in line for a device", 0, 0)
	o.TaskQueue, o.StartToCloseTimeout, o.HeartbeatTimeout = activities.LeaseQueue(fingerprint), leaseAnswer, 0
	o.Priority = linePriority(workflow.GetInfo(ctx))
	return o
}

// fairnessKeyMax is the most bytes of a fairness key that the server takes.
const fairnessKeyMax = 64

// linePriority is the priority of a run's place in line. The trials of a sweep have one fairness key together, so that a server that
// deals fairly does not keep another run waiting for all of them. What a person has said when the run, or its sweep, was started goes
// before: the server adds what is left open here.
func linePriority(of *workflow.Info) temporal.Priority {
	if of.Priority.FairnessKey != "" {
		return temporal.Priority{}
	}
	key := of.WorkflowExecution.ID
	if sweep := of.ParentWorkflowExecution; sweep != nil {
		key = sweep.ID
	}
	if len(key) > fairnessKeyMax {
		sum := sha256.Sum256([]byte(key))
		key = hex.EncodeToString(sum[:])
	}
	return temporal.Priority{FairnessKey: key}
}

// HoldOptions are the options by which a run has a device: holder is the queue of the process that gave the lease, which may be
// silent for as long as heartbeat.
func HoldOptions(holder string, heartbeat time.Duration) workflow.ActivityOptions {
	o := options(steps.Hold.Routing, "has the device", 0, heartbeat)
	// It has no time-out while it has not begun: if nobody is there, no step begins either, and those have one. After a reset of the
	// workflow, Temporal 1.29 would fire neither that nor any later time-out of an activity.
	o.TaskQueue, o.StartToCloseTimeout = holder, sessionLife
	return o
}

// ReleaseOptions are the options by which a run gives a device back.
func ReleaseOptions(holder string) workflow.ActivityOptions {
	o := options(steps.Release.Routing, "gives the device back", 0, 0)
	o.TaskQueue, o.StartToCloseTimeout, o.ScheduleToStartTimeout, o.HeartbeatTimeout = holder, leaseAnswer, leaseAnswer, 0
	return o
}

// hold has the worker hold a lease from now on.
func (w *Workflows) hold(ctx workflow.Context, got activities.Lease) *lease {
	l := &lease{Lease: got, run: workflow.GetInfo(ctx).WorkflowExecution.ID}
	root, _ := workflow.NewDisconnectedContext(ctx)
	var end workflow.CancelFunc
	l.work, end = workflow.WithCancel(root)
	l.hold, l.drop = workflow.WithCancel(root)
	o := HoldOptions(got.Holder, w.leaseHeartbeat())
	held := workflow.ExecuteActivity(workflow.WithActivityOptions(l.hold, o), steps.Hold.Name, activities.HoldInput{Lease: got.ID, Run: l.run})
	workflow.Go(root, func(own workflow.Context) {
		var r activities.HoldResult
		err := held.Get(own, &r)
		if l.end == nil {
			l.end = ended(r, err, o.HeartbeatTimeout)
		}
		end()
	})
	return l
}

// leaseHeartbeat is how long a worker may be silent before its lease is lost.
func (w *Workflows) leaseHeartbeat() time.Duration {
	return cmp.Or(w.LeaseHeartbeat, w.SessionHeartbeat)
}

// ended is how a lease has ended: by what Hold gave, or its error.
func ended(r activities.HoldResult, err error, heartbeat time.Duration) *loss {
	var late *temporal.TimeoutError
	switch {
	case errors.As(err, &late):
		return &loss{kind: kindSessionLost, text: fmt.Sprintf("its worker was silent for more than %s: the worker, its machine or the network is gone", heartbeat)}
	case err != nil:
		return &loss{uncounted: errNotHeld}
	case r.End == activities.LeaseDrained:
		return &loss{uncounted: errDrained}
	case r.End == activities.LeaseLost:
		return &loss{kind: kindWorkerLost, text: "the process that computes was lost: " + r.Reason}
	}
	return &loss{uncounted: errNotHeld} // given back, or refused
}

func (l *lease) context() workflow.Context { return l.work }

func (l *lease) queue() string { return l.Queue }

func (l *lease) worker() string { return l.Worker }

func (l *lease) over() *loss { return l.end }

func (l *lease) gone() {
	if l.end == nil {
		l.end = &loss{uncounted: errNotHeld}
		l.drop()
	}
}

// giveBack ends the lease, and waits until the worker has heard it: the next in line need not wait for a time-out.
func (l *lease) giveBack() {
	if l.end != nil {
		return
	}
	root, _ := workflow.NewDisconnectedContext(l.work)
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(root, ReleaseOptions(l.Holder)), steps.Release.Name,
		activities.HoldInput{Lease: l.ID, Run: l.run}).Get(root, nil)
	if err != nil { // nobody is there
		l.drop()
		return
	}
	_ = workflow.Await(root, func() bool { return l.end != nil })
}
