package chaos

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workflows"
)

// TestChaosTerminate sends SIGTERM, a preemption notice, in an Update: the worker ends
// the update and its lease, and the run continues elsewhere at once.
func TestChaosTerminate(t *testing.T) {
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	const stall = "Update#1/stall:15000/1"
	first := l.worker(workerOptions{fault: stall, trace: true, heartbeat: "20s"})
	l.start(chaosRun, preset(t, "chaos", nil))
	first.says(t, stall+" stalls", patience)
	second := l.worker(workerOptions{trace: true, heartbeat: "20s"})
	second.says(t, "worker serves", patience)
	first.terminate(t, patience) // the session is still open: it waits until the update ends
	l.completes(chaosRun)
	if !l.hindered() {
		// Without waiting for a time-out: there was none. The server may have given the stopping worker a
		// workflow task, which then times out by itself, and the end of the session after it: neither is a
		// step's.
		timeline := l.timeline(t.Context(), chaosRun, "")
		if !strings.Contains(timeline, "WorkflowTaskTimedOut") {
			require.NotContains(t, timeline, "ActivityTaskTimedOut")
		}
		s, err := l.status(chaosRun)
		require.NoError(t, err)
		require.Zero(t, s.LostDevices)
		require.Equal(t, 1, s.DrainedDevices)
		// The update's answer arrived: the other worker applied it again in Restore
		// only, which is the rebuild, not the activity.
		require.Equal(t, 4, strings.Count(second.text(), "Update took"))
	}
	l.isAs(chaosRun, want)
}

// TestChaosServers kills the Temporal server and the S3 server in updates.
func TestChaosServers(t *testing.T) {
	beside(t)
	want := reference(t)
	stack := ownStack(t, dev.Options{Ephemeral: true})
	l := newLane(t, stack).withStarter()
	p := l.worker(workerOptions{fault: "Update#1/stall:1000/1,Score#3/stall:2000/1", trace: true, heartbeat: "12s"})
	l.start(chaosRun, preset(t, "chaos", nil))

	p.says(t, "Update#1/stall:1000/1 stalls", patience)
	require.NoError(t, stack.KillTemporal())
	require.NoError(t, stack.RestartTemporal(t.Context()))

	p.says(t, "Score#3/stall:2000/1 stalls", patience)
	require.NoError(t, stack.KillS3())
	l.pendingSays(chaosRun, "store unavailable")
	require.NoError(t, stack.RestartS3(t.Context()))

	l.completes(chaosRun)
	require.True(t, p.alive(), "the worker outlives both")
	l.isAs(chaosRun, want)
}

// TestChaosWriteAhead kills a worker at iteration 19, the newest snapshot being
// version 10: the next worker rebuilds version 19 from the recorded batches.
func TestChaosWriteAhead(t *testing.T) {
	beside(t)
	reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	spec := preset(t, "chaos", map[string]any{"iterations": 21, "snapshot.every": 10, "evaluation.every": 0})
	first := l.worker(workerOptions{fault: "Generate#19/begin/1", heartbeat: "4s"})
	l.start("write-ahead", spec)
	first.dies(t)
	// The stall outlasts the look at the run also on a busy machine.
	second := l.worker(workerOptions{fault: "Generate/stall:8000/1", trace: true, flags: []string{"--follow", "0"}})
	second.says(t, "Generate took", patience)
	s := l.reaches("write-ahead", "nine recomputed updates", func(s workflows.Status) bool { return s.Recomputed > 0 })
	require.Equal(t, 19, s.Iteration)
	require.Equal(t, 9, s.AtRisk)
	if !l.hindered() { // or it was rebuilt more often
		require.Equal(t, 9, s.Recomputed)
	}
	eighteen := l.manifest("write-ahead", 18)
	require.Equal(t, eighteen.StateAfter, s.State)
	l.completes("write-ahead")
	require.Equal(t, eighteen.StateAfter, l.manifest("write-ahead", 19).StateBefore)
	require.Equal(t, 9, l.telemetry("write-ahead", 19).Steps["restore"].Recomputed)
	row := l.telemetry("write-ahead", 19)
	require.NotEmpty(t, row.Lost)
	require.Contains(t, row.Lost[0].Step, "Generate: iteration 19")
	require.Positive(t, row.Costs[0].Recomputed)
	require.GreaterOrEqual(t, row.Costs[0].Lost, row.Lost[0].Seconds)
	require.Positive(t, row.Lost[0].Seconds, "a killed worker reports nothing: the workflow counts")
	l.verifies("write-ahead")
	// Computed by the rebuilt policy: the same as by a policy that is rebuilt again.
	out, err := l.reprise("replay", "write-ahead", "--iteration", "19")
	require.NoError(t, err, out)
	require.Contains(t, out, "by 9 recorded updates")
	require.Contains(t, out, "is the same, bit for bit")
}
