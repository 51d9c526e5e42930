// Package workflows decides what happens next in a run, an evaluation and a sweep
// of runs: Train, Evaluate and Sweep.
//
// Workflow code is deterministic and does no I/O: it calls the activities of
// package activities, keeps their names, digests and small numbers, and answers
// queries and updates. An iteration is a list of steps whose results are kept in
// iteration as they arrive, so that a lost device costs the step that was
// running and nothing else.
package workflows

import (
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
)

// Workflows holds the worker's settings that do not belong to a run. A run that was
// resolved with flags uses those: see with.
type Workflows struct {
	// SessionHeartbeat is how long a worker may be silent before the session or
	// the activity it runs is lost: 5 s in development, 20 s in production. It must
	// outlast a restart of the Temporal server.
	SessionHeartbeat time.Duration
	// LeaseHeartbeat is how long it may be silent before a lease of its device is lost; 0 is SessionHeartbeat.
	LeaseHeartbeat time.Duration
	// ContinueAfter makes a run continue as new after so many iterations; 0
	// leaves it to the server's suggestion.
	ContinueAfter int
	// Converter is the worker's data converter; nil is the SDK's default. Workflows that
	// decode a payload themselves use it.
	Converter converter.DataConverter
	// PagesURL is where the pages of runs are served, for the links in the details; "" for none.
	PagesURL string
}

// decode reads a payload into value, as the SDK does for the workflow of ctx.
func (w *Workflows) decode(ctx workflow.Context, payload *common.Payload, value any) error {
	c := w.Converter
	if c == nil {
		c = converter.GetDefaultDataConverter()
	}
	if aware, ok := c.(workflow.ContextAware); ok {
		c = aware.WithWorkflowContext(ctx)
	}
	return c.FromPayload(payload, value)
}

// with returns the settings of a run that was resolved with flags. A run that began under a
// release without flags uses the worker's.
func (w *Workflows) with(f *activities.Flags) *Workflows {
	if f == nil {
		return w
	}
	own := *w
	own.SessionHeartbeat, own.LeaseHeartbeat, own.ContinueAfter = f.SessionHeartbeat, f.LeaseHeartbeat, f.ContinueAfter
	return &own
}

const (
	// describeWait is how long the question which devices exist waits for an answer while
	// another wait is running; describeSeconds bounds the answer itself.
	describeWait    = 4 * time.Second
	describeSeconds = 10
	// sessionWait is how long one try for a session lasts. After it the status is
	// refreshed with the existing fingerprints, and the next try waits longer, up to
	// sessionWaitMax.
	sessionWait    = 10 * time.Second
	sessionWaitMax = 5 * time.Minute
	// drainWait bounds the wait for a worker that has announced its end.
	drainWait = 5 * time.Second
	// commitWait bounds the wait of a cancelled run for the commit that is under way: a store that
	// does not answer must not keep it.
	commitWait = 5 * time.Second
	// sessionLife bounds a session nobody ends.
	sessionLife = 10 * 365 * 24 * time.Hour
)
