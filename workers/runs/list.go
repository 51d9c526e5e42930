// Package runs says how the runs, sweeps and evaluations of a namespace are: all of them
// in a list, one of them in some lines.
package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// Run is a run, a sweep or an evaluation as the list shows it. Numbers that the server
// does not know are nil: of a sweep, of a run that has not committed, and of all where
// the namespace lacks Reprise's search attributes.
type Run struct {
	ID string `json:"id"`
	// Kind is the workflow's type: Train, Sweep or Evaluate.
	Kind string `json:"kind"`
	// State is "running", "done", "cancelled", "failed", "terminated" or "timed out".
	State string `json:"state"`
	// Sweep is the sweep that the run is a trial of.
	Sweep       string `json:"sweep,omitempty"`
	Environment string `json:"environment,omitempty"`
	// Build is the version of the workers that decide, as DEPLOYMENT:BUILD, or Unversioned; empty before any has.
	Build string `json:"build,omitempty"`
	// Trials are a sweep's.
	Trials *Trials `json:"trials,omitempty"`
	// Iterations are committed. Reward and Success are of the last one, or what an
	// evaluation measured on its first suite.
	Iterations *int64   `json:"iterations,omitempty"`
	Reward     *float64 `json:"reward,omitempty"`
	Success    *float64 `json:"success,omitempty"`
	// Started is when the workflow, or what it continues as, was started; Ended when it
	// ended, nil while it runs.
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	// Pending is the activity that is tried again most often: see AddPending.
	Pending *Pending `json:"pending,omitempty"`
}

// Since is when the run entered its state.
func (r Run) Since() time.Time {
	if r.Ended != nil {
		return *r.Ended
	}
	return r.Started
}

// Wanted selects what List returns.
type Wanted struct {
	// Trials includes the trials of sweeps.
	Trials bool
	// Query is a further condition, in the server's list filter: "RepriseSuccess > 0.5".
	Query string
}

// pageOfList is how many executions one request lists.
const pageOfList = 500

// List returns the runs, sweeps and evaluations of the client's namespace, the newest
// first: of each id the newest execution.
func List(ctx context.Context, c client.Client, wanted Wanted) ([]Run, error) {
	query := `WorkflowType IN ("Train", "Sweep", "Evaluate") AND ExecutionStatus != "ContinuedAsNew"`
	if wanted.Query != "" {
		query += " AND (" + wanted.Query + ")"
	}
	newest, trials := map[string]Run{}, map[string]Run{}
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: pageOfList}
	for {
		page, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the workflows: %w", err)
		}
		for _, e := range page.GetExecutions() {
			r := runOf(e)
			if r.Sweep != "" {
				keepNewer(trials, r)
			}
			if e.GetParentExecution() == nil || wanted.Trials {
				keepNewer(newest, r)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	out := make([]Run, 0, len(newest))
	for _, r := range newest {
		if r.Kind == "Sweep" && wanted.Query == "" {
			r.Trials = trialsOf(r.ID, trials)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Run) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// keepNewer keeps the newest execution of a run's id.
func keepNewer(all map[string]Run, r Run) {
	if before, ok := all[r.ID]; !ok || r.Started.After(before.Started) {
		all[r.ID] = r
	}
}

func runOf(e *workflowpb.WorkflowExecutionInfo) Run {
	r := Run{
		ID: e.GetExecution().GetWorkflowId(), Kind: e.GetType().GetName(), State: stateOf(e.GetStatus()), Started: e.GetStartTime().AsTime(),
		Build: buildOf(e),
	}
	if e.GetCloseTime() != nil {
		r.Ended = new(e.GetCloseTime().AsTime())
	}
	fields := e.GetSearchAttributes().GetIndexedFields()
	r.Environment = *orZero(attribute[string](fields, "RepriseEnvironment"))
	r.Iterations = attribute[int64](fields, "RepriseIteration")
	r.Reward = attribute[float64](fields, "RepriseReward")
	r.Success = attribute[float64](fields, "RepriseSuccess")
	if sweep := *orZero(attribute[string](fields, "RepriseSweep")); sweep != r.ID {
		r.Sweep = sweep
	}
	if parent := e.GetParentExecution(); r.Sweep == "" && parent != nil {
		r.Sweep = parent.GetWorkflowId()
	}
	return r
}

// attribute is a search attribute's value; nil if it is not set.
func attribute[T any](fields map[string]*commonpb.Payload, name string) *T {
	payload, ok := fields[name]
	if !ok {
		return nil
	}
	var v T
	// Search attributes are never encoded: the server itself reads them.
	if err := converter.GetDefaultDataConverter().FromPayload(payload, &v); err != nil {
		return nil // of another type: not ours
	}
	return &v
}

func orZero[T any](v *T) *T {
	if v == nil {
		v = new(T)
	}
	return v
}

func stateOf(status enumspb.WorkflowExecutionStatus) string {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return "running"
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return "done"
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return "cancelled"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return "timed out"
	}
	return strings.ToLower(status.String())
}
