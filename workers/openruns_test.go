package workers_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/stack"
)

// A run that nobody has a device for is counted as one that waits.
func TestWaitingRunsAreCounted(t *testing.T) {
	servers, c := server(t)
	spec, err := presets.Read("smoke")
	require.NoError(t, err)
	_, err = stack.StartTrain(t.Context(), c, "waits", spec)
	require.NoError(t, err)
	core, logs := observer.New(zapcore.InfoLevel)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- workers.Run(ctx, workers.Options{
			Client: c, Namespace: servers.Namespace(), Store: store.NewMemory(), Logger: zap.New(core),
			Roles: []workers.Role{workers.RoleWorkflow, workers.RoleHost}, SessionHeartbeat: 5 * time.Second, MetricsListen: "127.0.0.1:0",
		})
	}()
	text := ""
	for begun := time.Now(); time.Since(begun) < time.Minute && !strings.Contains(text, `reprise_waiting_runs{fingerprint="unknown"} 1`); {
		time.Sleep(100 * time.Millisecond)
		for _, line := range logs.FilterMessage("metrics are served").All() {
			url, _ := line.ContextMap()["url"].(string)
			answer, err := http.Get(url)
			require.NoError(t, err)
			all, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			text = string(all)
		}
	}
	require.Contains(t, text, `reprise_waiting_runs{fingerprint="unknown"} 1`)
	require.Contains(t, text, `reprise_open_runs{state="waiting"} 1`)
	require.Contains(t, text, `reprise_open_runs{state="paused"} 0`)
	stop()
	require.NoError(t, <-ended)
}
