package telemetry

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	table "github.com/reprise-rl/reprise/activities/steps"
)

// Leases are counted by how they ended. One that was drained is no lost device.
func TestLeasesByTheirEnds(t *testing.T) {
	m := New(Options{})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{m.Interceptor()}})
	ends := []activities.HoldResult{{End: activities.LeaseLost}, {End: activities.LeaseDrained}, {}, {End: activities.LeaseGivenBack}}
	register := func(name string, f any) {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	register(table.Hold.Name, func(context.Context) (r activities.HoldResult, err error) {
		if r, ends = ends[0], ends[1:]; r.End == "" {
			err = temporal.NewHeartbeatTimeoutError()
		}
		return r, err
	})
	register(table.Acquire.Name, func(context.Context) error { return nil })
	register(table.Release.Name, func(context.Context) error { return nil })
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		})
		for n := range 4 {
			if err := workflow.ExecuteActivity(ctx, table.Acquire.Name).Get(ctx, nil); err != nil {
				return err
			}
			held := workflow.ExecuteActivity(ctx, table.Hold.Name)
			if n == 3 {
				return workflow.ExecuteActivity(ctx, table.Release.Name).Get(ctx, nil)
			}
			_ = held.Get(ctx, nil)
		}
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	got := scrape(t, m)
	for _, end := range []string{"lost", "drained", "silent", "given back"} {
		require.Equal(t, 1.0, got[fmt.Sprintf("reprise_leases_ended_total{end=%q}", end)], end)
	}
	require.Equal(t, 2.0, got["reprise_lost_devices_total"], "a lost one and a silent one")
	for series := range got {
		require.NotContains(t, series, `step="other"`)
	}
}

// The metrics of a process beside this one are read with its own; what both have is told apart.
func TestBeside(t *testing.T) {
	other, m := New(Options{}), New(Options{})
	tellDevice(other)
	server := httptest.NewServer(other.Handler())
	defer server.Close()
	m.Beside(server.URL + "/metrics")
	got := scrape(t, m)
	require.Equal(t, 1.0, got[`reprise_device_info{fingerprint="cpu-1"}`])
	require.Equal(t, 1.0, got[`reprise_rewritten_objects_total{process="computes"}`])
	require.Zero(t, got["reprise_rewritten_objects_total"])
	require.Contains(t, got, `go_goroutines{process="computes"}`)
	var _ prometheus.Gatherer = m

	server.Close()
	got = scrape(t, m)
	require.NotContains(t, got, `reprise_device_info{fingerprint="cpu-1"}`, "it has ended")
	require.Contains(t, got, "go_goroutines")
	m.Beside("")
	require.Contains(t, scrape(t, m), "go_goroutines")
}
