package workers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/dev/devtest"
	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/health"
)

// server is a Temporal server of the test's own, with a connection to it.
func server(t *testing.T) (*dev.Stack, client.Client) {
	servers, err := dev.Start(t.Context(), dev.Options{Ephemeral: true})
	devtest.Needs(t, err)
	require.NoError(t, err, "this test starts a server: run `make tools`")
	t.Cleanup(func() { _ = servers.Stop() }) // its data goes with the test
	c, err := client.DialContext(t.Context(), client.Options{HostPort: servers.TemporalAddress(), Namespace: servers.Namespace()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return servers, c
}

// A worker with all roles is ready when its queues are polled, and not while the server is away or while it stops.
func TestReadiness(t *testing.T) {
	servers, c := server(t)
	core, logs := observer.New(zapcore.InfoLevel)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- workers.Run(ctx, workers.Options{
			Client: c, Namespace: servers.Namespace(), Store: store.NewMemory(), Logger: zap.New(core), Roles: workers.Roles,
			Device:           model.DeviceOptions{XLAFlags: model.QuickCompile, ProgramCache: programcache.None},
			SessionHeartbeat: 5 * time.Second, Grace: time.Second, MetricsListen: "127.0.0.1:0",
		})
	}()
	url := ""
	require.Eventually(t, func() bool {
		for _, line := range logs.FilterMessage("metrics are served").All() {
			url, _ = line.ContextMap()["url"].(string)
		}
		return url != ""
	}, 20*time.Second, time.Millisecond)
	ask := func() (report health.Report, ok bool) {
		r, err := http.Get(strings.TrimSuffix(url, "/metrics") + "/readyz")
		if err != nil {
			return report, false
		}
		defer r.Body.Close()
		if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
			return report, false
		}
		return report, report.Ready == (r.StatusCode == http.StatusOK)
	}
	becomes := func(what string, fits func(health.Report) bool) (last health.Report) {
		for begun := time.Now(); time.Since(begun) < 40*time.Second; time.Sleep(5 * time.Millisecond) {
			report, ok := ask()
			if ok && fits(report) {
				return report
			}
			last = report
		}
		t.Fatalf("not seen: %s; it said %+v", what, last)
		return last
	}
	becomes("it starts", func(r health.Report) bool { return !r.Ready && r.Checks[0].Reason == "it starts" })
	ready := becomes("it is ready", func(r health.Report) bool { return r.Ready })
	var names []string
	for _, check := range ready.Checks {
		names = append(names, check.Name)
		require.NotEmpty(t, check.Reason)
	}
	named := strings.Join(names, "\n")
	for _, want := range []string{"worker", "temporal", "device", "queue reprise, activity tasks", "queue reprise, workflow tasks",
		"queue reprise-host, activity tasks", "queue reprise-device, activity tasks"} {
		require.Contains(t, names, want)
	}
	require.NotContains(t, named, ".blocks")

	require.NoError(t, servers.Stop())
	away := becomes("the server is away", func(r health.Report) bool { return !r.Ready })
	for _, check := range away.Checks {
		require.Equal(t, check.Name != "temporal", check.Ready, "%v", check)
	}
	stop()
	becomes("it stops", func(r health.Report) bool { return strings.HasPrefix(r.Checks[0].Reason, "it stops") })
	require.NoError(t, <-ended)
}
