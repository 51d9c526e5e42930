package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// maxReason bounds the reason of a failure, in bytes.
const maxReason = 500

// look asks the server for the state of a trial's workflow.
func look(ctx context.Context, c client.Client, id string) (activities.Found, error) {
	d, err := c.DescribeWorkflow(ctx, id, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return activities.Found{}, nil
	}
	if err != nil {
		return activities.Found{}, err
	}
	out := activities.Found{State: stateOf(d.Status)}
	// Another memo of the name, or none, is no sweep's; one that is encrypted is not guessed at.
	var of workflows.TrialOf
	if err := d.GetMemoValue("sweep", &of); errors.Is(err, codec.ErrUnreadable) {
		return activities.Found{}, fmt.Errorf("read the memo of %s: %w", id, err)
	} else if err == nil {
		out.Sweep = of.Sweep
	}
	if out.State == sweep.Failed {
		err := c.GetWorkflow(ctx, id, d.WorkflowExecution.RunID).Get(ctx, nil)
		if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
			out.Reason = app.Message()
		} else if err != nil {
			out.Reason = err.Error()
		}
		if len(out.Reason) > maxReason {
			out.Reason = strings.ToValidUTF8(out.Reason[:maxReason], "") + "…"
		}
	}
	return out, nil
}

func stateOf(status enumspb.WorkflowExecutionStatus) sweep.State {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return sweep.Done
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return sweep.Cancelled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return sweep.Terminated
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return sweep.Failed
	}
	return sweep.Running
}
