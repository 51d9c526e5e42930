package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

const (
	// heartbeatTimeout is used if the worker has no session heartbeat. Activities send
	// heartbeats every second from their own goroutine, so a longer silence means that
	// the process or the network is gone.
	heartbeatTimeout = 10 * time.Second
	// startWait is the least time a step of a session may wait to begin: a restart of the
	// Temporal server is not a lost device.
	startWait    = 10 * time.Second
	retryInitial = 300 * time.Millisecond
	retryMaximum = 15 * time.Second
)

// options are the activity options of one call. seconds is the spec's bound,
// heartbeat the silence after which the worker counts as dead.
func options(r steps.Routing, summary string, seconds int, heartbeat time.Duration) workflow.ActivityOptions {
	if seconds <= 0 {
		seconds = 120
	}
	if heartbeat <= 0 {
		heartbeat = heartbeatTimeout
	}
	o := workflow.ActivityOptions{
		TaskQueue:           activities.WorkflowQueue,
		StartToCloseTimeout: time.Duration(r.Bound*seconds)*time.Second + r.Import,
		HeartbeatTimeout:    heartbeat,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        retryInitial,
			BackoffCoefficient:     2,
			MaximumInterval:        retryMaximum,
			MaximumAttempts:        r.Attempts,
			NonRetryableErrorTypes: activities.NonRetryable,
		},
	}
	if r.Patient {
		o.RetryPolicy.NonRetryableErrorTypes = slices.DeleteFunc(slices.Clone(activities.NonRetryable), func(kind string) bool {
			return slices.Contains(activities.Correctable, kind)
		})
	}
	switch r.Place {
	case steps.OnDevice:
		o.TaskQueue = activities.AnyDeviceQueue
	case steps.OnLine, steps.OnHolder:
		o.TaskQueue = "" // each lease has its own
	case steps.OnSession:
		o.TaskQueue = "" // the session's own queue takes its place
		// Its worker serves no other run, so a step begins at once or not at all. After a
		// reset of the workflow a session can look open although its worker is gone.
		o.ScheduleToStartTimeout = max(2*heartbeat, startWait)
	}
	return o
}

// onHost runs activities on any host worker.
func (w *Workflows) onHost(ctx workflow.Context, seconds int) steps.Runner {
	return func(r steps.Routing, summary string, input, result any) error {
		ctx := workflow.WithActivityOptions(ctx, options(r, summary, seconds, w.SessionHeartbeat))
		return workflow.ExecuteActivity(ctx, r.Name, input).Get(ctx, result)
	}
}
