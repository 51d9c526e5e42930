package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

const (
	// lineTime bounds the look at a line, and lineMost the runs of it that are told.
	lineTime = 3 * time.Second
	lineMost = 50
)

// standard is the priority of what has none: 1 comes before it, and 5 after it.
const standard = 3

// place is a run's in line.
type place struct {
	run      string
	priority int32
	since    time.Time
}

// Line is the runs that stand in line for a device with a fingerprint, the first one first; nil where the server does not
// say, as without the search attributes. A place in line is an activity that waits, so the server knows since when it does. Those of
// a better priority come first where the server heeds priorities; if it also deals fairly among fairness keys, which it does not tell,
// a run may come sooner or later than here.
func Line(ctx context.Context, c client.Client, namespace, fingerprint string) (ids []string) {
	ctx, cancel := context.WithTimeout(ctx, lineTime)
	defer cancel()
	listed, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query:    fmt.Sprintf("ExecutionStatus = 'Running' AND ReprisePhase = 'waiting' AND RepriseFingerprint = '%s'", fingerprint),
		PageSize: lineMost,
	})
	if err != nil {
		return nil
	}
	var places []place
	for _, e := range listed.GetExecutions() {
		id := e.GetExecution().GetWorkflowId()
		d, err := c.DescribeWorkflowExecution(ctx, id, e.GetExecution().GetRunId())
		if err != nil {
			continue // it has ended
		}
		of := d.GetWorkflowExecutionInfo().GetPriority().GetPriorityKey()
		for _, a := range d.GetPendingActivities() {
			if a.GetActivityType().GetName() == steps.Acquire.Name && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
				places = append(places, place{id, cmp.Or(a.GetPriority().GetPriorityKey(), of, standard), a.GetScheduledTime().AsTime()})
			}
		}
	}
	unequal := slices.ContainsFunc(places, func(p place) bool { return p.priority != places[0].priority })
	heeded := unequal && heedsPriorities(ctx, c, namespace, activities.LeaseQueue(fingerprint))
	slices.SortStableFunc(places, func(a, b place) int {
		if heeded && a.priority != b.priority {
			return cmp.Compare(a.priority, b.priority)
		}
		return a.since.Compare(b.since)
	})
	for _, p := range places {
		ids = append(ids, p.run)
	}
	return ids
}

// heedsPriorities tells whether the server keeps apart the priorities of what waits in a queue where not all have the standard one.
// Temporal 1.29 does so only where it was told to.
func heedsPriorities(ctx context.Context, c client.Client, namespace, queue string) bool {
	d, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue}, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true,
	})
	if err != nil {
		return false
	}
	for priority, of := range d.GetStatsByPriorityKey() {
		// One that does not heed priorities notes them of what comes, but has all that waits under the standard one.
		if priority != standard && of.GetApproximateBacklogCount() > 0 {
			return true
		}
	}
	return false
}
