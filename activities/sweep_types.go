package activities

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// ResolveSweepInput asks for a sweep to be checked, expanded and written down.
type ResolveSweepInput struct {
	ID    string          `json:"id"`
	Input json.RawMessage `json:"input"`
}

// ExtendSweepInput asks for trials to be added to a sweep.
type ExtendSweepInput struct {
	ID string `json:"id"`
	// Sweep is the sweep as it is, Input a document of what is added.
	Sweep store.Ref       `json:"sweep"`
	Input json.RawMessage `json:"input"`
}

// SweepResult names a sweep that is written down.
type SweepResult struct {
	// Sweep is the artifact with the definition and all trials.
	Sweep      store.Ref        `json:"sweep"`
	Definition sweep.Definition `json:"definition"`
	// Trials is how many there are.
	Trials int `json:"trials"`
	// Location is where the sweep's artifacts are, for people.
	Location string `json:"location"`
	// SearchAttributes reports whether the server knows the Reprise* attributes.
	SearchAttributes bool `json:"search_attributes"`
}

// SweepTrialsInput asks for a page of a sweep's trials.
type SweepTrialsInput struct {
	Sweep store.Ref `json:"sweep"`
	// From and Count select the page. It has fewer trials if they would be too long for a
	// payload, and none after the end.
	From  int `json:"from"`
	Count int `json:"count"`
	// Specs asks for the trials' specs besides their labels.
	Specs bool `json:"specs,omitempty"`
}

// SweepTrialsResult is the page.
type SweepTrialsResult struct {
	Definition sweep.Definition `json:"definition"`
	Trials     []sweep.Trial    `json:"trials"`
	// Total is how many the sweep has.
	Total int `json:"total"`
}

// LookUpInput requests the states of workflows, by their ids.
type LookUpInput struct {
	IDs []string `json:"ids"`
}

// Found is the state of a workflow.
type Found struct {
	// State is sweep.Running or a final one; "" if the server knows no such workflow and
	// the store no such run.
	State sweep.State `json:"state"`
	// Sweep is the sweep it is a trial of, by its memo; "" for none.
	Sweep string `json:"sweep,omitempty"`
	// Reason is why it failed.
	Reason string `json:"reason,omitempty"`
}

// LookUpResult has an answer for each id, in their order.
type LookUpResult struct {
	Found []Found `json:"found"`
}

// SummarizeInput requests a summary of what trials left in the store.
type SummarizeInput struct {
	Definition sweep.Definition `json:"definition"`
	Trials     []SummarizeTrial `json:"trials"`
}

// SummarizeTrial is one of them.
type SummarizeTrial struct {
	Run string `json:"run"`
	// Until is how many of its iterations count, on the branch that first had so
	// many; 0: all, on the newest.
	Until int `json:"until,omitempty"`
}

// SummarizeResult has an outcome for each trial, in their order.
type SummarizeResult struct {
	Outcomes []Outcome `json:"outcomes"`
}

// Outcome is what a trial's committed iterations say.
type Outcome struct {
	// Branch is the branch of the last iteration that counts; Iterations is the number of
	// iterations that count.
	Branch     int `json:"branch,omitempty"`
	Iterations int `json:"iterations"`
	// Values are of the definition's metrics, in their order.
	Values []sweep.Value `json:"values,omitempty"`
	// Points are at the rungs that it reached, each as it was when it first did.
	Points []sweep.Point `json:"points,omitempty"`
	// Problem says why the chain could not be read.
	Problem string `json:"problem,omitempty"`
}

// WriteTableInput is everything a sweep's table says.
type WriteTableInput struct {
	ID    string    `json:"id"`
	Sweep store.Ref `json:"sweep"`
	// Records are of all trials, in the order of the sweep.
	Records []TrialRecord `json:"records"`
}

// WriteTableResult names the table.
type WriteTableResult struct {
	Table store.Ref `json:"table"`
}

// ReportSweepInput asks for a sweep's page.
type ReportSweepInput struct {
	Sweep string `json:"sweep"`
}
