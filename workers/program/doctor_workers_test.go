package program

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/workers/stack"
)

// polled is a server whose queues are polled, with an open run of a fingerprint.
type polled struct {
	client.Client
	pollers map[string][]*taskqueuepb.PollerInfo
	open    string
	fails   error
}

func (s *polled) DescribeTaskQueue(_ context.Context, queue string, kind enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{Pollers: s.pollers[queue+" "+kind.String()]}, s.fails
}

func (s *polled) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	if s.open == "" {
		return &workflowservice.ListWorkflowExecutionsResponse{}, nil
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(s.open)
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{{
		Execution:        &commonpb.WorkflowExecution{WorkflowId: "r"},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{"RepriseFingerprint": payload}},
	}}}, err
}

func (s *polled) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{}, nil
}

// The doctor says who polls which queue, and what to start where nobody does.
func TestWorkersCheck(t *testing.T) {
	now := time.Unix(1e9, 0)
	by := func(names ...string) (out []*taskqueuepb.PollerInfo) {
		for _, name := range names {
			out = append(out, &taskqueuepb.PollerInfo{Identity: name, LastAccessTime: timestamppb.New(now.Add(-time.Minute))})
		}
		return out
	}
	s := &polled{pollers: map[string][]*taskqueuepb.PollerInfo{"reprise Workflow": by("7@a@")}}
	check := workersOf(t.Context(), s, now)
	require.Equal(t, connect.Warn, check.Status)
	require.Equal(t, "workflow (queue reprise): 7@a; host (queue reprise): nobody; device (queue reprise-device): nobody", check.Detail)
	require.Contains(t, check.Advice, " worker --roles host,device")

	s.pollers["reprise Activity"] = by("9@b@", "7@a@", "7@a@", "8@a@", "1@c@", "2@c@")
	s.pollers["reprise-device Activity"] = by("3@gpu")
	s.pollers["reprise-device Activity"][0].LastAccessTime = timestamppb.New(now.Add(-3 * time.Minute))
	check = workersOf(t.Context(), s, now)
	require.Equal(t, connect.Check{Name: "workers", Status: connect.OK,
		Detail: "workflow (queue reprise): 7@a; host (queue reprise): 1@c, 2@c, 7@a, 8@a and 1 more; device (queue reprise-device): 3@gpu (3m0s ago)"}, check)

	s.open = "f1"
	check = workersOf(t.Context(), s, now)
	require.Equal(t, connect.Warn, check.Status)
	require.Contains(t, check.Detail, "; fingerprint f1 of open runs: nobody")
	require.Contains(t, check.Advice, "adopt-programs")
	s.pollers["reprise-device.f1 Activity"] = by("3@gpu")
	require.Equal(t, connect.OK, workersOf(t.Context(), s, now).Status)

	s.fails = errors.New("permission denied")
	check = workersOf(t.Context(), s, now)
	require.Equal(t, connect.Warn, check.Status)
	require.Equal(t, "permission denied", check.Detail)
	require.NotEmpty(t, check.Advice)
}

// A server that was not reached is not asked again.
func TestWorkersCheckWithoutServer(t *testing.T) {
	for _, name := range []string{"temporal", "namespace"} {
		check := workersCheck(t.Context(), stack.Connection{}, []connect.Check{{Name: name, Status: connect.Fail}})
		require.Equal(t, connect.Skipped, check.Status)
	}
}
