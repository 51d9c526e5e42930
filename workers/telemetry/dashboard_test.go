package telemetry

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/reprise-rl/reprise/activities"
)

// oneTask is a Temporal server that has one activity to give away.
type oneTask struct {
	workflowservice.UnimplementedWorkflowServiceServer
	queue string
	task  *workflowservice.PollActivityTaskQueueResponse
	given atomic.Bool
	done  chan *workflowservice.RespondActivityTaskCompletedRequest
}

func (s *oneTask) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}}, nil
}

func (s *oneTask) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (s *oneTask) PollActivityTaskQueue(ctx context.Context, in *workflowservice.PollActivityTaskQueueRequest) (*workflowservice.PollActivityTaskQueueResponse, error) {
	if in.TaskQueue.Name == s.queue && s.given.CompareAndSwap(false, true) {
		return s.task, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *oneTask) RespondActivityTaskCompleted(_ context.Context, in *workflowservice.RespondActivityTaskCompletedRequest) (*workflowservice.RespondActivityTaskCompletedResponse, error) {
	s.done <- in
	return &workflowservice.RespondActivityTaskCompletedResponse{}, nil
}

// workOnce has a real worker do one Generate, its second attempt, for that server.
func workOnce(t *testing.T, m *Metrics) {
	t.Helper()
	arguments, err := converter.GetDefaultDataConverter().ToPayloads(iterationOf("r")[3].in)
	require.NoError(t, err)
	now := time.Now()
	s := &oneTask{queue: "1234@host", done: make(chan *workflowservice.RespondActivityTaskCompletedRequest, 1), task: &workflowservice.PollActivityTaskQueueResponse{
		TaskToken: []byte("t"), ActivityId: "5", ActivityType: &commonpb.ActivityType{Name: "Generate"}, Attempt: 2, Input: arguments,
		WorkflowNamespace: "default", WorkflowType: &commonpb.WorkflowType{Name: "Train"},
		WorkflowExecution:      &commonpb.WorkflowExecution{WorkflowId: "r", RunId: "1"},
		ScheduledTime:          timestamppb.New(now.Add(-9 * time.Second)),
		StartedTime:            timestamppb.New(now),
		StartToCloseTimeout:    durationpb.New(time.Minute),
		ScheduleToCloseTimeout: durationpb.New(time.Minute),
		HeartbeatTimeout:       durationpb.New(time.Minute),
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	c, err := client.DialContext(t.Context(), client.Options{HostPort: listener.Addr().String(), MetricsHandler: m.Temporal()})
	require.NoError(t, err)
	defer c.Close()
	w := worker.New(c, s.queue, worker.Options{DisableWorkflowWorker: true, Interceptors: []interceptor.WorkerInterceptor{m.Interceptor()}})
	w.RegisterActivityWithOptions(func(context.Context, activities.GenerateInput) (activities.GenerateResult, error) {
		return activities.GenerateResult{Telemetry: activities.Telemetry{Seconds: 2, Tokens: 100}}, nil
	}, activity.RegisterOptions{Name: "Generate"})
	require.NoError(t, w.Start())
	defer w.Stop()
	select {
	case <-s.done:
	case <-time.After(20 * time.Second):
		t.Fatal("the worker did not answer")
	}
	_, err = c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{})
	require.Error(t, err, "the server knows no such thing")
}

// TestWorker: the metrics of a real worker of the SDK, from the interceptor and from the
// SDK itself.
func TestWorker(t *testing.T) {
	m := New(Options{Runs: 1})
	workOnce(t, m)
	got := scrape(t, m)
	require.Equal(t, 2.0, got[`reprise_step_seconds_sum{step="generate"}`])
	require.Equal(t, 1.0, got[`reprise_retries_total{step="generate"}`])
	require.InDelta(t, 9, got[`reprise_lost_seconds_total{cause="attempt"}`], 0.01)
	require.Equal(t, 1.0, got[`reprise_lease_info{run="r"}`])
	require.Zero(t, got["reprise_dropped_series_total"])
	queues := regexp.MustCompile(`task_queue="([^"]*)"`)
	seen := map[string]bool{}
	for series := range got {
		if found := queues.FindStringSubmatch(series); found != nil {
			seen[found[1]] = true
		}
	}
	require.Equal(t, map[string]bool{"none": true, "session": true}, seen, "no queue is named by a host")
}

// TestSeriesAreBounded: labels nobody bounds do not fill the memory.
func TestSeriesAreBounded(t *testing.T) {
	m := New(Options{})
	h := m.Temporal()
	for i := range maxSeries + 5 {
		tagged := h.WithTags(map[string]string{"task_queue": string(rune('a' + i)), "same": "x"})
		tagged.Counter("temporal_a").Inc(1)
		tagged.Gauge("temporal_b").Update(2)
		tagged.Timer("temporal_c").Record(time.Second)
	}
	require.Len(t, m.sdk.series, maxSeries)
	require.Equal(t, float64(3*(maxSeries+5)-maxSeries), scrape(t, m)["reprise_dropped_series_total"])
	h.WithTags(map[string]string{"task_queue": "a", "same": "x"}).Counter("temporal_a").Inc(-1)
	require.Equal(t, 1.0, scrape(t, m)[`temporal_a_total{same="x",task_queue="a"}`], "a counter does not go back")
}

const dashboard = "../../infra/grafana/reprise.json"

// tellAll are the series of a worker that has done all that is told of.
func tellAll(t *testing.T) map[string]float64 {
	t.Helper()
	return scrape(t, toldAll(t))
}

// toldAll are the metrics of a worker to which everything has happened.
func toldAll(t *testing.T) *Metrics {
	t.Helper()
	m := New(Options{Runs: 1})
	tellDevice(m)
	do(t, m, iterationOf("r")...)
	metrics := iterationOf("r")[13].in.(activities.CommitInput)
	for _, f := range figures {
		metrics.Metrics[f.metric] = 1
	}
	do(t, m, call{"Commit", metrics, activities.CommitResult{}}, call{"Commit", metrics, context.Canceled})
	workOnce(t, m)
	return m
}

// TestDashboard: Grafana's file queries nothing that a worker does not export, and every
// figure that a worker exports of a run.
func TestDashboard(t *testing.T) {
	told := names(tellAll(t))
	b, err := os.ReadFile(dashboard)
	require.NoError(t, err)
	var d struct {
		UID    string
		Panels []struct {
			ID          int
			Type, Title string
			Description string
			Targets     []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	require.NoError(t, json.Unmarshal(b, &d))
	require.Equal(t, "reprise", d.UID)
	names := regexp.MustCompile(`\b(reprise|temporal|go|process)_[a-z0-9_]+`)
	asked := map[string]bool{}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "panel %d twice", p.ID)
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			found := names.FindAllString(target.Expr, -1)
			require.NotEmpty(t, found, p.Title)
			for _, name := range found {
				require.True(t, told[name], "panel %q asks for %s, which no worker tells", p.Title, name)
				asked[name] = true
			}
		}
	}
	// Whatever else names a metric: variables, annotations.
	for _, name := range names.FindAllString(string(b), -1) {
		require.True(t, told[name], name)
	}
	for _, f := range figures {
		require.True(t, asked["reprise_"+f.name], "no panel shows %s", f.name)
	}
	require.Equal(t, "run", d.Templating.List[1].Name)
}
