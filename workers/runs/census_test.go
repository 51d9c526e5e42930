package runs

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities/steps"
)

// open is a server with open runs, of which each has a pending activity, and with device workers.
type open struct {
	client.Client
	runs    []*workflowpb.WorkflowExecutionInfo
	pending map[string]*workflowpb.PendingActivityInfo
	pollers map[string]int
	fails   error
}

func (s *open) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: s.runs}, nil
}

func (s *open) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	pending, ok := s.pending[id]
	if !ok {
		return nil, serviceerror.NewNotFound("it has ended")
	}
	out := &workflowservice.DescribeWorkflowExecutionResponse{}
	if pending != nil {
		out.PendingActivities = []*workflowpb.PendingActivityInfo{pending}
	} else if id == "decides" {
		out.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{}
	}
	return out, nil
}

func (s *open) DescribeTaskQueue(_ context.Context, queue string, _ enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{Pollers: make([]*taskqueuepb.PollerInfo, s.pollers[queue])}, s.fails
}

// What a run waits for is what it has asked for, and no worker has taken.
func TestCensus(t *testing.T) {
	asks := func(kind string, state enumspb.PendingActivityState) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: kind}, State: state}
	}
	const scheduled, started = enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, enumspb.PENDING_ACTIVITY_STATE_STARTED
	run := func(id string, attributes map[string]any) *workflowpb.WorkflowExecutionInfo {
		return execution(t, id, "Train", running, 1, attributes)
	}
	f := func(fingerprint string) map[string]any {
		return map[string]any{"RepriseFingerprint": fingerprint, "ReprisePhase": "training"}
	}
	s := &open{
		runs: []*workflowpb.WorkflowExecutionInfo{
			run("new", nil), run("has", f("f1")), run("waits", f("f1")), run("waits too", f("f1")), run("rests", f("f2")),
			run("paused", map[string]any{"RepriseFingerprint": "f3", "ReprisePhase": "paused"}), run("ended", nil), run("steps", f("f1")),
			run("decides", f("f1")),
		},
		pending: map[string]*workflowpb.PendingActivityInfo{
			"new": asks("Describe", scheduled), "has": asks(steps.SessionOpens, started), "waits": asks(steps.SessionOpens, scheduled), "waits too": asks("Describe", scheduled),
			"rests": nil, "decides": nil, "steps": asks("Step", scheduled),
		},
		pollers: map[string]int{"reprise-device.f1": 2},
	}
	c, err := TakeCensus(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, c.CountWorkers(t.Context(), s))
	require.Equal(t, Census{
		Waiting: map[string]int{"": 1, "f1": 2}, Paused: 1, Resting: 1, Going: 3, Workers: map[string]int{"f1": 2, "f2": 0, "f3": 0},
	}, c)
	s.fails = errors.New("unavailable")
	_, err = TakeCensus(t.Context(), s)
	require.ErrorContains(t, err, "unavailable")
	require.ErrorContains(t, c.CountWorkers(t.Context(), s), "ask who polls reprise-device.f")
}
