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

	"github.com/reprise-rl/reprise/activities"
)

// Workflows holds the worker's settings that are no part of any run. A run that was
// resolved with flags has those in their place: see with.
type Workflows struct {
	// SessionHeartbeat is how long a worker may be silent before the session or
	// the activity it runs is lost: 5 s in development, 20 s in production. A
	// restart of the Temporal server has to fit into it.
	SessionHeartbeat time.Duration
	// ContinueAfter makes a run continue as new after so many iterations; 0
	// leaves it to the server's suggestion.
	ContinueAfter int
}

// with are the settings for a run that was resolved with flags. A run that was begun by a
// release without them decides by those of the worker.
func (w *Workflows) with(f *activities.Flags) *Workflows {
	if f == nil {
		return w
	}
	return &Workflows{SessionHeartbeat: f.SessionHeartbeat, ContinueAfter: f.ContinueAfter}
}

const (
	// describeWait is how long the question what devices there are waits for one
	// to answer, where it is asked beside another wait; describeSeconds bounds the
	// answer itself.
	describeWait    = 4 * time.Second
	describeSeconds = 10
	// sessionWait is how long one try for a session lasts: after it the status
	// is refreshed with the fingerprints that are there, and the next try waits
	// longer, up to sessionWaitMax.
	sessionWait    = 10 * time.Second
	sessionWaitMax = 5 * time.Minute
	// drainWait bounds the wait for a worker that has said that it is about to stop.
	drainWait = 5 * time.Second
	// sessionLife bounds a session nobody ends.
	sessionLife = 10 * 365 * 24 * time.Hour
)
