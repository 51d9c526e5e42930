// Package host is the activities that need no device: resolving a spec, the environments'
// answers, selection, credit, figures of an evaluation, the commit of an iteration, and
// pages for people.
package host

import (
	"context"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/store"
)

// Host is the activities that need no device.
type Host struct {
	Store store.Store
	// Attributes asks the server whether it knows the Reprise* search
	// attributes; nil means it does not.
	Attributes func(context.Context) bool
	// WriteReport writes a run's page for people, file by file; nil if the
	// worker has none.
	WriteReport run.ReportWriter
	// Environments are the ways to the foreign environments that this worker serves, by their
	// names.
	Environments map[string]foreign.Way
	// More finds an environment that is none of Environments, and that may have been added since the
	// worker began; nil if none is added to this worker.
	More func(name string) (foreign.Way, bool, error)
	// Tools ask outside tools, by their kinds.
	Tools map[string]ToolAsker
	// Judges ask language models that judge, by the names that specs have for them.
	Judges map[string]ModelJudge
	// Flags are those of this worker; a run keeps the flags of the worker that resolves
	// it. Without a session heartbeat it gets none.
	Flags activities.Flags

	Contexts   run.Contexts
	references run.References
}
