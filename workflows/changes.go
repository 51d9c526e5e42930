package workflows

import "go.temporal.io/sdk/workflow"

// change is a change of what a workflow does next: of its commands. Runs that were begun
// before it must decide as they did, so a workflow asks holds before it decides in the new
// way. A history that passed the place before the change decides in the old way to its
// end; the one after its next continue-as-new decides in the new way.
//
// A change needs no entry here if histories from before cannot reach it: for example what
// follows from an update, a result's field or a kind of error that did not exist.
type change struct {
	// id is in the histories and never changes.
	id string
	// since is the first release that has it.
	since string
	// what is different.
	what string
}

// changes are all changes, oldest first. testdata/histories has before-ID of each, a
// history recorded without the change that reaches its place.
var changes []change

func changed(id, since, what string) change {
	c := change{id: id, since: since, what: what}
	changes = append(changes, c)
	return c
}

// getVersion is a variable for the test that every history from before reaches its change.
var getVersion = workflow.GetVersion

// holds tells whether the history decides in the new way.
func (c change) holds(ctx workflow.Context) bool {
	return getVersion(ctx, c.id, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

var pausesAfterFailures = changed("step-failures", "v0.2.0",
	"a step of a session that fails limits.step_failures times in a row pauses the run, or ends an evaluation; before, it was tried without end")

var programsWait = changed("programs-differ", "v0.2.0",
	"a worker with other programs is the wrong one, and the run waits for another; before, the run failed")

var pausedTrials = changed("paused-trials", "v0.2.0",
	"a trial tells its sweep that it is paused, and that it was resumed; before, it told nothing")

var coalescedReports = changed("coalesced-reports", "v0.2.0",
	"a trial's reports to its sweep are 5 s apart, but a rung, an awaited version 0 and the end are reported at once; before, each change was reported by itself")

var commitsBeside = changed("commit-beside", "v0.2.0",
	"an iteration is committed beside the first samples of the next one, and a cancelled run waits for its commit; before, the device waited for the commit, and a cancelled run did not")
