package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// StateOf says in a word how a workflow is: its phase while it runs, as "training" or "paused", where the namespace has
// Reprise's search attributes, or else as in [Run]. It is "" of a workflow that the server does not know (any more).
func StateOf(ctx context.Context, c client.Client, id string) (string, error) {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look %s up: %w", id, err)
	}
	info := described.GetWorkflowExecutionInfo()
	state := runOf(info).State
	if state == "running" {
		phase := attribute[string](info.GetSearchAttributes().GetIndexedFields(), "ReprisePhase")
		state = cmp.Or(*orZero(phase), state)
	}
	return state, nil
}
