package workflows

import "go.temporal.io/sdk/workflow"

// change is a change of what a workflow does next: of its commands. Runs that were begun
// before it must decide as they did, so a workflow asks holds before it decides in the new
// way. A history that passed the place before the change decides in the old way to its
// end; the one after its next continue-as-new decides in the new way.
//
// Versions of workers (docs/upgrading.md) do not replace it: they are optional, and a run that is moved to another build has its history
// replayed there.
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

// changes are all changes since the first release, oldest first. testdata/before has
// ID.json.gz of each: a history recorded without the change that reaches its place.
var changes []change

// changed adds a change to the table: var inNewWay = changed("id", "v1.1.0", "what is different").
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
