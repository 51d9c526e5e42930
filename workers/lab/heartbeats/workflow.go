package heartbeats

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workflows"
)

// The names by which a watched lease is started, stopped and asked.
const (
	queue        = "lab-heartbeats"
	workflowName = "WatchLease"
	stopSignal   = "stop"
	heldQuery    = "held"
)

// Held is one lease of a device. The times are the server's, at which the workflow learned of it.
type Held struct {
	// From is when Acquire had answered, Until when Hold had ended: zero while it lasts.
	From  time.Time `json:"from"`
	Until time.Time `json:"until,omitzero"`
	// End is how it ended.
	End End `json:"end,omitempty"`
	// Reason is what the end says of itself.
	Reason string `json:"reason,omitempty"`
}

// End is how a lease ended: as its worker said, or one of these.
type End = activities.LeaseEnd

const (
	// Silent: the server had no heartbeat for as long as the time-out.
	Silent End = "silent"
	// ByHolder: the worker had no answer to its heartbeats for as long, and ended the lease by itself.
	ByHolder End = "ended by its holder"
)

// watchLease has a device by a lease as a run does, asks for another one when that ends, and notes the ends, until it is told to stop.
func watchLease(ctx workflow.Context, heartbeat time.Duration, held []Held) ([]Held, error) {
	if err := workflow.SetQueryHandler(ctx, heldQuery, func() ([]Held, error) { return held, nil }); err != nil {
		return nil, err
	}
	stopped := false
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, stopSignal).Receive(ctx, nil)
		stopped = true
	})
	fingerprint, err := describe(ctx)
	if err != nil {
		return nil, err
	}
	for !stopped {
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return nil, workflow.NewContinueAsNewError(ctx, workflowName, heartbeat, held)
		}
		lease, ok, err := acquire(ctx, fingerprint, &stopped)
		if err != nil || !ok {
			return held, err
		}
		held = append(held, Held{From: workflow.Now(ctx)})
		last := &held[len(held)-1]
		hold := activities.HoldInput{Lease: lease.ID, Run: workflow.GetInfo(ctx).WorkflowExecution.ID}
		end := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflows.HoldOptions(lease.Holder, heartbeat)), steps.Hold.Name, hold)
		if err := workflow.Await(ctx, func() bool { return stopped || end.IsReady() }); err != nil {
			return held, err
		}
		if !end.IsReady() {
			release := workflow.WithActivityOptions(ctx, workflows.ReleaseOptions(lease.Holder))
			// A holder that is gone cannot be told: then its silence ends the lease.
			_ = workflow.ExecuteActivity(release, steps.Release.Name, hold).Get(ctx, nil)
		}
		var how activities.HoldResult
		err = end.Get(ctx, &how)
		last.Until = workflow.Now(ctx)
		last.End, last.Reason = endOf(how, err)
	}
	return held, nil
}

// endOf is how a Hold has ended, by its result or its error.
func endOf(how activities.HoldResult, err error) (End, string) {
	if late, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return Silent, late.Error()
	}
	if err != nil {
		return ByHolder, err.Error()
	}
	return how.End, how.Reason
}

// describe asks a device worker for its fingerprint.
func describe(ctx workflow.Context) (string, error) {
	var info activities.DeviceInfo
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: activities.AnyDeviceQueue, StartToCloseTimeout: time.Minute})
	err := workflow.ExecuteActivity(ctx, steps.Describe.Name).Get(ctx, &info)
	return info.Fingerprint, err
}

// acquire stands in line until a worker gives a lease; ok is false when it was told to stop before.
func acquire(ctx workflow.Context, fingerprint string, stopped *bool) (lease activities.Lease, ok bool, err error) {
	line, leave := workflow.WithCancel(workflow.WithActivityOptions(ctx, workflows.AcquireOptions(ctx, fingerprint)))
	defer leave()
	in := activities.AcquireInput{Run: workflow.GetInfo(ctx).WorkflowExecution.ID}
	answer := workflow.ExecuteActivity(line, steps.Acquire.Name, in)
	if err := workflow.Await(ctx, func() bool { return *stopped || answer.IsReady() }); err != nil || !answer.IsReady() {
		return lease, false, err
	}
	err = answer.Get(ctx, &lease)
	return lease, err == nil, err
}
