package dev

import (
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The stack's Temporal server keeps no metrics: they would be a tenth of its work. With
// --metrics-port the same program keeps them.
func TestTemporalKeepsNoMetrics(t *testing.T) {
	if os.Getenv(EnvTemporal) != "" {
		t.Skipf("%s gives another Temporal server", EnvTemporal)
	}
	stack := start(t, Options{Ephemeral: true})
	listening := listeners(t, stack.temporal.pid)
	require.Contains(t, listening, netip.MustParseAddrPort(stack.TemporalAddress()))
	for _, at := range listening {
		require.False(t, servesMetrics(at.String()), "%s serves metrics", at)
	}

	program, err := findTool("temporal", "", EnvTemporal)
	require.NoError(t, err)
	ports := make([]string, 3)
	for i := range ports {
		port, err := freePort()
		require.NoError(t, err)
		ports[i] = strconv.Itoa(port)
	}
	asked := exec.Command(program, "server", "start-dev", "--ip", host, "--port", ports[0], "--ui-port", ports[1],
		"--metrics-port", ports[2], "--db-filename", filepath.Join(t.TempDir(), databaseFile))
	asked.Env = CLIEnvironment()
	ended := make(chan error, 1)
	require.NoError(t, StartChild(asked, func(err error) { ended <- err }))
	t.Cleanup(func() {
		_ = asked.Process.Kill()
		<-ended
	})
	require.Eventually(t, func() bool { return servesMetrics(host + ":" + ports[2]) }, time.Minute, 100*time.Millisecond)
}

// servesMetrics reports whether an address answers as Prometheus reads it.
func servesMetrics(address string) bool {
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return err == nil && strings.Contains(string(body), "# TYPE ")
}
