package chaos

import (
	"flag"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows"
)

// busy is how long TestBusy trains on a machine that does other work.
var busy = flag.Duration("busy", 0, "how long TestBusy trains beside programs that take all processors, as 30m")

// busyLoad is how many programs run beside it, each with all it can get of a processor, at the worker's priority.
const busyLoad = 30

// TestBusy trains beside thirty programs that take all processors, as a person's dev stack beside a build: the run never
// pauses, and no device is called lost or failed. Workers that were silent, and are there again, are counted and printed.
func TestBusy(t *testing.T) {
	if *busy == 0 {
		t.Skip("it takes half an hour: `make busy` runs it")
	}
	patience = time.Hour
	own := ownStack(t, dev.Options{Ephemeral: true})
	l := newLane(t, own)
	l.worker(workerOptions{heartbeat: stack.DevHeartbeat.String()})
	for range busyLoad {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		require.NoError(t, cmd.Start())
		require.NoError(t, syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, niceness)) // as the worker
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	l.start(chaosRun, preset(t, "bandit-demo", map[string]any{"iterations": 100_000, "snapshot": map[string]any{"every": 10, "retain": 2}}))
	fs, err := procfs.NewDefaultFS()
	require.NoError(t, err)
	began, said, most := time.Now(), time.Now(), 0.0
	for time.Since(began) < *busy {
		time.Sleep(2 * time.Second)
		if load, err := fs.LoadAvg(); err == nil {
			most = max(most, load.Load1)
		}
		s, err := l.status(chaosRun)
		if err != nil {
			continue // the machine is busy
		}
		require.Nil(t, s.PausedBy, "the run has paused by itself")
		// One that was silent counts as lost until its worker is heard again, or another takes its place.
		require.LessOrEqual(t, s.LostDevices, 1, "a living worker was called lost")
		if time.Since(said) > time.Minute {
			said = time.Now()
			t.Logf("%s: %s, iteration %d; silent workers %d; load %.1f at most", time.Since(began).Round(time.Second), s.Phase, s.Iteration, s.SilentDevices, most)
		}
	}
	require.GreaterOrEqual(t, most, float64(busyLoad), "the machine was not that busy")
	s := l.reaches(chaosRun, "no lost device", func(s workflows.Status) bool { return s.LostDevices == 0 })
	require.Positive(t, s.Iteration, "it trained")
	t.Logf("%s at a load of up to %.1f: %d iterations, %d silent workers, %d lost devices, no pause", *busy, most, s.Iteration, s.SilentDevices, s.LostDevices)
}
