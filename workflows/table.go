package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
)

// place is where an activity runs.
type place int

const (
	onHost    place = iota // any host worker
	onSession              // the worker that holds the run's session
	onDevice               // any device worker: only to ask what it is
)

// routing is one activity's queue, timeouts and retries.
type routing struct {
	place place
	// bound is the activity's start-to-close timeout in units of the spec's
	// limits.activity_seconds; the device's have room to wait for a program of
	// the run before to end, since a PJRT execution cannot be interrupted.
	bound int
	// attempts limits the tries; 0 means until it works, with backoff.
	attempts int32
}

// table is the one place that says how each activity runs. Names are those of
// the methods of activities.Host and activities.Device.
var table = map[string]routing{
	"Resolve": {place: onHost, bound: 2},
	"Load":    {place: onHost, bound: 1},
	"Find":    {place: onHost, bound: 1},

	"ResolveEvaluation": {place: onHost, bound: 2},

	"ResolveSweep": {place: onHost, bound: 5}, // it imports the models that trials start from
	"ExtendSweep":  {place: onHost, bound: 5},
	"SweepTrials":  {place: onHost, bound: 1},
	"LookUp":       {place: onHost, bound: 1},
	"Summarize":    {place: onHost, bound: 5},
	"WriteTable":   {place: onHost, bound: 5},
	"ReportSweep":  {place: onHost, bound: 5, attempts: 3},

	"Step":     {place: onHost, bound: 1},
	"Select":   {place: onHost, bound: 1},
	"Credit":   {place: onHost, bound: 1},
	"Measure":  {place: onHost, bound: 1},
	"Commit":   {place: onHost, bound: 1},
	"Report":   {place: onHost, bound: 5, attempts: 3},
	"Describe": {place: onDevice, bound: 1, attempts: 1},

	"WarmStart": {place: onSession, bound: 3},
	"Restore":   {place: onSession, bound: 3},
	"Generate":  {place: onSession, bound: 2},
	"Score":     {place: onSession, bound: 2},
	"Diagnose":  {place: onSession, bound: 2},
	"Update":    {place: onSession, bound: 2},
	"Snapshot":  {place: onSession, bound: 2},
}

const (
	// heartbeatTimeout holds where the worker was given no session heartbeat:
	// activities heartbeat every second from a goroutine of their own, so a longer
	// silence means that the process or the network is gone.
	heartbeatTimeout = 10 * time.Second
	// startWait is the least time a step of a session may wait to begin: a
	// restart of the Temporal server is no lost device.
	startWait    = 10 * time.Second
	retryInitial = 300 * time.Millisecond
	retryMaximum = 15 * time.Second
)

// options are the activity options of one call. seconds is the spec's bound,
// heartbeat the silence after which the worker is taken for dead.
func options(name, summary string, seconds int, heartbeat time.Duration) workflow.ActivityOptions {
	p, ok := table[name]
	if !ok {
		panic("workflows: activity " + name + " is not in the table")
	}
	if seconds <= 0 {
		seconds = 120
	}
	if heartbeat <= 0 {
		heartbeat = heartbeatTimeout
	}
	o := workflow.ActivityOptions{
		TaskQueue:           activities.HostQueue,
		StartToCloseTimeout: time.Duration(p.bound*seconds) * time.Second,
		HeartbeatTimeout:    heartbeat,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        retryInitial,
			BackoffCoefficient:     2,
			MaximumInterval:        retryMaximum,
			MaximumAttempts:        p.attempts,
			NonRetryableErrorTypes: activities.NonRetryable,
		},
	}
	switch p.place {
	case onDevice:
		o.TaskQueue = activities.AnyDeviceQueue
	case onSession:
		o.TaskQueue = "" // the session's own queue takes its place
		// Its worker serves nobody else, so a step begins at once or not at all:
		// after a reset of the workflow a session can look open whose worker is gone.
		o.ScheduleToStartTimeout = max(2*heartbeat, startWait)
	}
	return o
}
