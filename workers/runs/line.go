package runs

import (
	"context"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities/steps"
)

const (
	// lineTime bounds the look at a line, and lineMost the runs of it that are told.
	lineTime = 3 * time.Second
	lineMost = 50
)

// Line is the runs that stand in line for a device with a fingerprint, the first one first; nil where the server does not
// say, as without the search attributes. A place in line is an activity that waits, so the server knows since when it does.
func Line(ctx context.Context, c client.Client, fingerprint string) (ids []string) {
	ctx, cancel := context.WithTimeout(ctx, lineTime)
	defer cancel()
	listed, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query:    fmt.Sprintf("ExecutionStatus = 'Running' AND ReprisePhase = 'waiting' AND RepriseFingerprint = '%s'", fingerprint),
		PageSize: lineMost,
	})
	if err != nil {
		return nil
	}
	since := map[string]time.Time{}
	for _, e := range listed.GetExecutions() {
		id := e.GetExecution().GetWorkflowId()
		d, err := c.DescribeWorkflowExecution(ctx, id, e.GetExecution().GetRunId())
		if err != nil {
			continue // it has ended
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetActivityType().GetName() == steps.Acquire.Name && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
				since[id] = a.GetScheduledTime().AsTime()
				ids = append(ids, id)
			}
		}
	}
	slices.SortStableFunc(ids, func(a, b string) int { return since[a].Compare(since[b]) })
	return ids
}
