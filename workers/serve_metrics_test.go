package workers

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"

	"github.com/reprise-rl/reprise/workers/health"
)

// TestServeMetrics: served until stop, and the workers' client exports its requests to
// the server.
func TestServeMetrics(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, workflowservice.UnimplementedWorkflowServiceServer{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	given, err := client.DialContext(t.Context(), client.Options{HostPort: listener.Addr().String()})
	require.NoError(t, err)
	defer given.Close()
	core, logs := observer.New(zapcore.InfoLevel)

	p := &process{Options: Options{Client: given, Namespace: "team", Logger: zap.New(core), MetricsListen: "127.0.0.1:0", MetricsRuns: 1},
		health: health.New()}
	stop, err := p.serveMetrics(t.Context())
	require.NoError(t, err)
	require.NotSame(t, given, p.Client)
	_, err = p.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "reprise"}, "Train")
	require.Error(t, err, "the server knows no such thing")
	require.Equal(t, 1, logs.FilterMessage("metrics are served").Len())
	url, _ := logs.All()[0].ContextMap()["url"].(string)
	answer, err := http.Get(url)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Regexp(t, `temporal_request_failure_total\{.*namespace="team",operation="StartWorkflowExecution",status_code="UNIMPLEMENTED".*\} 1`, string(text))
	require.Contains(t, string(text), "reprise_iterations_total 0")
	require.Len(t, p.base().Interceptors, 1)

	taken := &process{Options: p.Options, health: health.New()}
	taken.MetricsListen = url[len("http://") : len(url)-len("/metrics")]
	_, err = taken.serveMetrics(t.Context())
	require.ErrorContains(t, err, "address already in use")

	stop()
	_, err = http.Get(url)
	require.Error(t, err)
	_, err = given.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{})
	require.ErrorContains(t, err, "not implemented", "the connection is the caller's")
	require.Empty(t, (&process{}).base().Interceptors, "without a listener nothing is measured")
}
