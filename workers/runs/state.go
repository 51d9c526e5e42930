package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// StateOf says in a word how a workflow is: its phase while it runs, as "training" or "paused", where the namespace has
// Reprise's search attributes, or else as in [Run]. It is "" of a workflow that the server does not know (any more).
func StateOf(ctx context.Context, c client.Client, id string) (string, error) {
	described, err := lookUp(ctx, c, id)
	if described == nil {
		return "", err
	}
	info := described.GetWorkflowExecutionInfo()
	state := runOf(info).State
	if state == "running" {
		phase := attribute[string](info.GetSearchAttributes().GetIndexedFields(), "ReprisePhase")
		state = cmp.Or(*orZero(phase), state)
	}
	return state, nil
}

// lookUp is what the server says of a workflow; nil without an error if it does not know it.
func lookUp(ctx context.Context, c client.Client, id string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look %s up: %w", id, err)
	}
	return described, nil
}
