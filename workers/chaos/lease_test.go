package chaos

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workflows"
)

// leaseEnds are how the leases of a workflow have ended, in their order: "silent" where Hold timed out.
func (l *lane) leaseEnds(id string) (ends []activities.HoldResult) {
	l.t.Helper()
	holds := map[int64]bool{}
	events := l.client.GetWorkflowHistory(l.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(l.t, err)
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil && a.ActivityType.Name == steps.Hold.Name {
			holds[e.EventId] = true
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && holds[a.ScheduledEventId] {
			var r activities.HoldResult
			require.NoError(l.t, converter.GetDefaultDataConverter().FromPayloads(a.Result, &r))
			ends = append(ends, r)
		}
		if a := e.GetActivityTaskTimedOutEventAttributes(); a != nil && holds[a.ScheduledEventId] {
			ends = append(ends, activities.HoldResult{End: "silent"})
		}
	}
	return ends
}

// gone waits until a process is no more.
func gone(t *testing.T, pid int) {
	eventually(t, patience, "process "+strconv.Itoa(pid)+" ends", func() error {
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err != nil {
			return nil
		}
		return syscall.EBUSY
	})
}

// restores are what the restores of a workflow have answered, in their order.
func (l *lane) restores(id string) (out []activities.RestoreResult) {
	l.t.Helper()
	scheduled := map[int64]bool{}
	events := l.client.GetWorkflowHistory(l.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(l.t, err)
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil && a.ActivityType.Name == steps.Restore.Name {
			scheduled[e.EventId] = true
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && scheduled[a.ScheduledEventId] {
			var r activities.RestoreResult
			require.NoError(l.t, converter.GetDefaultDataConverter().FromPayloads(a.Result, &r))
			out = append(out, r)
		}
	}
	return out
}

// werePresent tells of each restore whether the weights were there already.
func werePresent(restores []activities.RestoreResult) (out []bool) {
	for _, r := range restores {
		out = append(out, r.Resident)
	}
	return out
}

// TestChaosLease kills what computes in an update: the run knows at once, with the signal, and the worker starts a new process. Then
// it freezes the worker that has the lease, both processes, until another one has the run, which has followed it, and so loads
// nothing: the one that wakes up ends its lease, and has written nothing that the other would not. At last the worker of the run is told to stop. The run has the bytes of one
// that nothing happened to.
func TestChaosLease(t *testing.T) {
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	// Long steps, in which something can happen; no fault kills.
	const stalls = "Update#0/stall:1500/1,Update#1/stall:20000/1,Update#2/stall:1500/1"
	first := l.worker(workerOptions{fault: stalls, trace: true, heartbeat: "4s"})
	l.start(chaosRun, preset(t, "chaos", nil))

	first.says(t, "Update#0/stall:1500/1 stalls", patience)
	computes := first.computes()
	require.NotZero(t, computes)
	require.NoError(t, syscall.Kill(computes, syscall.SIGKILL))
	first.says(t, "The process that computes has ended: signal: killed. It starts again", patience)
	s := l.reaches(chaosRun, "an iteration after the kill", func(s workflows.Status) bool { return s.Iteration >= 1 })
	require.Equal(t, 1, s.LostDevices)
	again := first.computes()
	require.NotEqual(t, computes, again)

	first.says(t, "Update#1/stall:20000/1 stalls", patience)
	second := l.worker(workerOptions{trace: true, heartbeat: "4s"})
	second.says(t, "the weights of a run are kept here", patience)
	for _, pid := range []int{first.pid, again} {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	l.reaches(chaosRun, "an iteration on another worker", func(s workflows.Status) bool { return s.Iteration >= 2 })
	for _, pid := range []int{again, first.pid} {
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	}
	time.Sleep(time.Second) // the late one has time to do harm
	second.terminate(t, patience)
	l.completes(chaosRun)

	ends := l.leaseEnds(chaosRun)
	for _, end := range ends {
		t.Log(end)
	}
	require.GreaterOrEqual(t, len(ends), 3)
	require.Equal(t, activities.LeaseLost, ends[0].End)
	require.Equal(t, "killed", ends[0].Signal)
	require.True(t, ends[0].Running)
	require.Contains(t, ends[0].Step, "Update")
	require.Equal(t, activities.LeaseEnd("silent"), ends[1].End)
	last, err := l.status(chaosRun)
	require.NoError(t, err)
	if !l.hindered() {
		require.Equal(t, activities.LeaseGivenBack, ends[len(ends)-1].End)
		require.Equal(t, activities.LeaseDrained, ends[len(ends)-2].End)
		require.Equal(t, 1, last.DrainedDevices)
		require.Equal(t, 2, last.LostDevices)
	}
	l.isAs(chaosRun, want)
	restores := l.restores(chaosRun)
	t.Log("the weights were there already, restore by restore:", werePresent(restores))
	if len(ends) == 3 { // else the machine was so busy that a lease more was lost
		require.Equal(t, []bool{false, false, true}, werePresent(restores), "the other worker had followed the run")
	}

	// What computes ends with its worker.
	child := first.computes()
	require.NotZero(t, child)
	first.kill()
	gone(t, child)
}
