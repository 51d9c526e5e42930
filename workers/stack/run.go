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
	w, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: run, TaskQueue: activities.WorkflowQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, "Train", json.RawMessage(text))
	if err != nil {
		return nil, fmt.Errorf("start run %s: %w", run, err)
	}
	return w, nil
}
