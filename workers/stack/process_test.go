package stack

import (
	"bytes"
	"context"
	"fmt"

	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workers"
)

// A worker process that ends as one that needs a new process is started again, and the user
// is told why; one that ends otherwise is not.
func TestProcessStartsAgain(t *testing.T) {
	count := filepath.Join(t.TempDir(), "starts")
	script := fmt.Sprintf(`echo >> %[1]q
case $(wc -l < %[1]q) in
1) exit %[2]d ;;
2) kill -9 $$ ;;
3) echo '{"fingerprint":"third"}' >&3; exit %[3]d ;;
*) echo '{"fingerprint":"fourth"}' >&3; exit 1 ;;
esac`, count, workers.Exits[0].Code, workers.Exits[1].Code)
	var out bytes.Buffer
	p := process{out: &out, first: time.Millisecond, command: func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, "/bin/sh", "-c", script)
	}}
	served := make(chan string, 4)
	err := p.keep(t.Context(), func(info activities.DeviceInfo) { served <- info.Fingerprint })
	require.EqualError(t, err, "the worker process has ended: exit status 1")
	require.Equal(t, "third", <-served)
	require.Equal(t, "fourth", <-served)
	require.Equal(t, fmt.Sprintf(`The worker process has ended: %s (exit %d). It starts again in 1ms.
The worker process has ended: signal: killed. It starts again in 2ms.
The worker process has ended: %s (exit %d). It starts again in 4ms.
`, workers.Exits[0].Meaning, workers.Exits[0].Code, workers.Exits[1].Meaning, workers.Exits[1].Code), out.String())
}

// A worker process that was stopped is left to stop, and is not started again.
func TestProcessStops(t *testing.T) {
	stopped := filepath.Join(t.TempDir(), "stopped")
	ctx, stop := context.WithCancel(t.Context())
	p := process{out: t.Output(), first: time.Millisecond, command: func(ctx context.Context) *exec.Cmd {
		c := exec.CommandContext(ctx, "/bin/sh", "-c", fmt.Sprintf(`trap 'touch %q; exit 0' TERM; echo '{}' >&3; while :; do sleep 0.01; done`, stopped))
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		return c
	}}
	require.NoError(t, p.keep(ctx, func(activities.DeviceInfo) { stop() }))
	require.FileExists(t, stopped)
}

// The worker process gets the flags that this one was given.
func TestWorkerArguments(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	var o workers.Options
	AddWorkerFlags(f, &o, 5*time.Second)
	f.String("dir", "elsewhere", "")
	given := []string{"--xla-flags=--a=1 --b", "--grace=3s", "--metrics-listen=host:5", "--devices=1", "--devices=0", "--virtual-devices=2"}
	require.NoError(t, f.Parse(given))
	arguments := workerArguments(f)
	require.Subset(t, arguments, append(given, "--session-heartbeat=5s", "--plugin=", "--program-cache=default", "--host-slots=8"))
	var again workers.Options
	g := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddWorkerFlags(g, &again, time.Hour)
	require.NoError(t, g.Parse(arguments))
	require.Equal(t, o, again)

	all := supervisedArguments("dir", "", f)
	require.Equal(t, []string{"worker", "--supervised", "--dev-dir", "dir", "--roles=workflow,host,device", "--log-format=text"}, all[:6])
	require.Equal(t, "--env-file=dir/envs.json", all[len(all)-1], "environments are added to the stack's own file")
	require.NotContains(t, supervisedArguments("dir", "mine.json", f), "--env-file=dir/envs.json")

	var format LogFormat
	AddLogFormat(f, &format, LogText)
	require.Equal(t, "--log-format=text", supervisedArguments("dir", "", f)[5])
	require.NoError(t, f.Parse([]string{"--log-format", "json"}))
	require.Equal(t, "--log-format=json", supervisedArguments("dir", "", f)[5])

	require.NotContains(t, strings.Join(arguments, " "), "codec")
	f.String("codec-key-file", "", "")
	require.NoError(t, f.Parse([]string{"--codec-key-file", "keys"}))
	require.Contains(t, workerArguments(f), "--codec-key-file=keys")
}
