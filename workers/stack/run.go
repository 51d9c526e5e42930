package stack

import (
	"context"
	"encoding/json"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
)

// StartTrain starts a Train workflow, or returns the running one with that id.
func StartTrain(ctx context.Context, c client.Client, run string, text []byte) (client.WorkflowRun, error) {
	return start(ctx, c, "Train", run, text)
}

// StartSweep starts a Sweep workflow, or returns the running one with that id.
func StartSweep(ctx context.Context, c client.Client, sweep string, text []byte) (client.WorkflowRun, error) {
	return start(ctx, c, "Sweep", sweep, text)
}

func start(ctx context.Context, c client.Client, workflow, id string, text []byte) (client.WorkflowRun, error) {
	w, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: activities.WorkflowQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, workflow, json.RawMessage(text))
	if err != nil {
		return nil, fmt.Errorf("start %s %s: %w", workflow, id, err)
	}
	return w, nil
}
