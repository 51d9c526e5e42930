// Package sweep reads the input of a Sweep workflow and makes its result, as pure
// functions. A document is decoded strictly and expanded into trials, the trials'
// outcomes become a table, and two rules stop trials early.
//
// A sweep is a base spec and settings over it, times seeds:
//
//	{
//	  "base": "chaos",
//	  "grid": {"selection.keep": [0.25, 0.5, 1]},
//	  "seeds": [1, 2],
//	  "parallel": 4
//	}
//
// Each trial is a run of its own, whose id is the sweep's and the trial's label:
// "fig7/selection.keep=0.25,seed=2". Decode reports all that is wrong at once,
// what the trials' specs have wrong included. The package does no I/O and knows
// no environment; docs/sweeps.md is the manual.
package sweep

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/workflows/spec"
)

const (
	// MaxTrials is the most trials of a sweep.
	MaxTrials = 10_000
	// MaxParallel is the most trials at once.
	MaxParallel = 500
	// DefaultParallel is how many trials run at once by default. Fewer devices serve them
	// in turn.
	DefaultParallel = 4
	// MaxNumbers bounds trials × (metrics + rungs): the workflow carries that many
	// numbers along, in a payload of at most 2 MiB.
	MaxNumbers = 24_000
	// MaxMetrics is the most metrics of a table.
	MaxMetrics = 16
	// MaxSeeds is the most seeds of a setting.
	MaxSeeds = 1000
)

// The values of OnFailure: what happens to the other trials when one fails.
const (
	// Continue lets the others continue; the table says what failed.
	Continue = "continue"
	// Stop cancels them, writes the table and fails the sweep.
	Stop = "stop"
)

// Goals of a metric.
const (
	Maximize = "maximize"
	Minimize = "minimize"
)

// EvaluationPrefix begins the name of a metric of the newest evaluation's first
// suite: "evaluation/success/mean".
const EvaluationPrefix = "evaluation/"

// Definition is a decoded sweep, with every default filled in.
type Definition struct {
	// Description is free text for people.
	Description string `json:"description,omitempty"`
	// Base is the spec all trials share: an object, not yet with its defaults.
	Base json.RawMessage `json:"base"`
	// Parallel is how many trials run at once, at most.
	Parallel int `json:"parallel"`
	// OnFailure is Continue or Stop.
	OnFailure string `json:"on_failure"`
	// Metrics are what the table shows of each trial. Trials are judged by the first.
	Metrics []string `json:"metrics"`
	// Goal says whether the first metric should be high or low: Maximize or Minimize.
	Goal string `json:"goal"`
	// Stopping is the rule that stops trials early; nil: none.
	Stopping *Stopping `json:"early_stopping,omitempty"`
	// Report says when the sweep's page is written; absent if it is not.
	Report spec.Report `json:"report,omitzero"`
	// MaxIterations is the most iterations of any trial.
	MaxIterations int `json:"max_iterations"`
}

// Trial is one run of a sweep.
type Trial struct {
	// Label is the trial's name within the sweep: "selection.keep=0.25,seed=2".
	Label string `json:"label"`
	// Setting is the label without the seed: trials of one setting differ in it alone.
	Setting string `json:"setting"`
	// Seed is the run's seed.
	Seed uint64 `json:"seed"`
	// Iterations is the spec's number of iterations.
	Iterations int `json:"iterations"`
	// Before is how many of them belong to the other run of a fork.
	Before int `json:"before,omitempty"`
	// Shared is the digest of everything in the spec that the trial's warm start depends
	// on: trials with the same digest share the warm-started policy. It is empty if there
	// is no warm start.
	Shared string `json:"shared,omitempty"`
	// Spec is the run's spec as canonical JSON: the base with the changes made.
	Spec json.RawMessage `json:"spec,omitempty"`
}

// Known is what a sweep cannot know by itself.
type Known struct {
	// Spec is what each trial's spec is checked against.
	Spec spec.Known
	// Base gives a preset's spec by its name; nil knows none.
	Base func(name string) ([]byte, error)
}

// ID is the workflow id, and the run's id, of a sweep's trial.
func ID(sweep, label string) string { return sweep + "/" + label }
