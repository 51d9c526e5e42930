package workers

import (
	"context"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/reprise-rl/reprise/activities/steps"
)

const (
	// lineTime bounds the look at the line, and lineMost the runs of it that are told.
	lineTime = 3 * time.Second
	lineMost = 50
)

// line gives the runs that stand in line for a device with a fingerprint, the first one first; nil where the server does not
// say, as without the search attributes. A place in line is an activity that waits, so the server knows since when it does.
func (p *process) line(ctx context.Context, fingerprint string) (runs []string) {
	ctx, cancel := context.WithTimeout(ctx, lineTime)
	defer cancel()
	listed, err := p.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query:    fmt.Sprintf("ExecutionStatus = 'Running' AND ReprisePhase = 'waiting' AND RepriseFingerprint = '%s'", fingerprint),
		PageSize: lineMost,
	})
	if err != nil {
		return nil
	}
	since := map[string]time.Time{}
	for _, e := range listed.GetExecutions() {
		run := e.GetExecution().GetWorkflowId()
		d, err := p.Client.DescribeWorkflowExecution(ctx, run, e.GetExecution().GetRunId())
		if err != nil {
			continue
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetActivityType().GetName() == steps.Acquire.Name && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
				since[run] = a.GetScheduledTime().AsTime()
				runs = append(runs, run)
			}
		}
	}
	slices.SortStableFunc(runs, func(a, b string) int { return since[a].Compare(since[b]) })
	return runs
}
