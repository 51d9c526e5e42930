package runs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

// Census is how the open runs and evaluations of a namespace are.
type Census struct {
	// Waiting are those that wait for a device, by the fingerprint that they belong to; "" where it is not known, as before a
	// run's first commit.
	Waiting map[string]int
	// Paused are those that have paused by themselves. Resting are others of which nothing is under way: a person has paused them,
	// or they wait for a time. Going are all others.
	Paused, Resting, Going int
	// Workers are the device workers that serve the fingerprints of open runs.
	Workers map[string]int
}

// mostCounted is how many open runs a census looks up.
const mostCounted = 500

// TakeCensus asks the server for a census. Nothing of it enters a history, and no worker has to answer.
func TakeCensus(ctx context.Context, c client.Client) (Census, error) {
	listed, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: `WorkflowType IN ("Train", "Evaluate") AND ExecutionStatus = "Running"`, PageSize: mostCounted,
	})
	if err != nil {
		return Census{}, fmt.Errorf("list the open runs: %w", err)
	}
	out := Census{Waiting: map[string]int{}, Workers: map[string]int{}}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookups)
	for _, e := range listed.GetExecutions() {
		fields := e.GetSearchAttributes().GetIndexedFields()
		fingerprint := *orZero(attribute[string](fields, "RepriseFingerprint"))
		if fingerprint != "" {
			out.Workers[fingerprint] = 0
		}
		if *orZero(attribute[string](fields, "ReprisePhase")) == "paused" {
			out.Paused++
			continue
		}
		group.Go(func() error {
			described, err := c.DescribeWorkflowExecution(ctx, e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId())
			if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
				return nil
			}
			if err != nil {
				return fmt.Errorf("look %s up: %w", e.GetExecution().GetWorkflowId(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			switch pending := described.GetPendingActivities(); {
			case waits(pending):
				out.Waiting[fingerprint]++
			case len(pending) == 0 && described.GetPendingWorkflowTask() == nil:
				out.Resting++
			default:
				out.Going++
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Census{}, err
	}
	return out, nil
}

// CountWorkers fills in Workers.
func (c Census) CountWorkers(ctx context.Context, of client.Client) error {
	for fingerprint := range c.Workers {
		queue := activities.DeviceQueue(fingerprint)
		described, err := of.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err != nil {
			return fmt.Errorf("ask who polls %s: %w", queue, err)
		}
		c.Workers[fingerprint] = len(described.GetPollers())
	}
	return nil
}

// waits tells whether a run has asked for a device, and no worker has taken the question.
func waits(pending []*workflowpb.PendingActivityInfo) bool {
	for _, a := range pending {
		kind := a.GetActivityType().GetName()
		asks := kind == steps.SessionOpens || kind == steps.Acquire.Name || kind == steps.Describe.Name
		if asks && a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
			return true
		}
	}
	return false
}
