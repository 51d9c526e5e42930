package chaos

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/activities"
)

// dealt is a run of several turns whose blocks go to several workers: four blocks a turn.
var dealt = scene{lane: "undisturbed-dealt", preset: "chaos-turns", quick: true, change: map[string]any{
	"rollout.pass_rows": 2, "rollout.block_rows": 4, "rollout.workers": 3,
}}

// dealtBlocks is what a history says of a run's blocks.
type dealtBlocks struct {
	done    map[string]int // blocks that were sampled, by iteration, turn and number
	helped  int            // of those on other workers than the session's
	lost    int            // tries that timed out on other workers after they had begun
	offered int            // blocks that were offered to other workers
}

func (l *lane) dealt(id string) dealtBlocks {
	l.t.Helper()
	out := dealtBlocks{done: map[string]int{}}
	type block struct {
		name   string
		helper bool
	}
	scheduled := map[int64]block{}
	events := l.client.GetWorkflowHistory(l.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(l.t, err)
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil && a.ActivityType.Name == "Block" {
			var in activities.BlockInput
			require.NoError(l.t, converter.GetDefaultDataConverter().FromPayloads(a.Input, &in))
			b := block{fmt.Sprintf("%d.%d.%d.%d", in.Rollout.Iteration, in.Rollout.Round, in.Turn, in.Block), a.RetryPolicy.MaximumAttempts == 1}
			scheduled[e.EventId] = b
			if b.helper {
				out.offered++
			}
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && scheduled[a.ScheduledEventId].name != "" {
			out.done[scheduled[a.ScheduledEventId].name]++
			if scheduled[a.ScheduledEventId].helper {
				out.helped++
			}
		}
		if a := e.GetActivityTaskTimedOutEventAttributes(); a != nil && scheduled[a.ScheduledEventId].helper && a.StartedEventId != 0 {
			out.lost++
		}
	}
	return out
}

// dealtOnce checks that each block of the run was sampled once, and some on other workers.
func (l *lane) dealtOnce(iterations int) dealtBlocks {
	l.t.Helper()
	got := l.dealt(chaosRun)
	require.Len(l.t, got.done, iterations*turnsTurns*4)
	for name, times := range got.done {
		require.Equal(l.t, 1, times, "block %s", name)
	}
	l.t.Logf("%d of %d blocks on other workers; %d of %d offers were lost with a worker", got.helped, len(got.done), got.lost, got.offered)
	require.Positive(l.t, got.helped)
	return got
}

// dealtLong is dealt with more iterations, in which more workers can die.
var dealtLong = scene{lane: "undisturbed-dealt-long", preset: "chaos-turns", quick: true, change: map[string]any{
	"rollout.pass_rows": 2, "rollout.block_rows": 4, "rollout.workers": 3, "iterations": 8,
}}

// TestChaosWorkers has other workers sample blocks, and kills them inside a block: that block alone is
// sampled again, and the run has the bytes of one worker's. With -full two others help, one of which
// dies again and again.
func TestChaosWorkers(t *testing.T) {
	beside(t)
	s, iterations, faults := &dealt, turnsIterations, []string{"Block/inside/1"}
	if *full {
		s, iterations, faults = &dealtLong, 8, []string{"Block/inside/1", "Block/written/2", "Block/begin/2", "Block/delay:15/1", "Block/inside/2"}
	}
	want := s.reference(t)
	l := newLane(t, sharedStack(t)).withStarterOf(s)
	own := l.worker(workerOptions{fault: "Generate/stall:6000/1"}) // while the others start
	l.start(chaosRun, s.spec(t))
	own.says(t, "stalls", patience)
	stop := l.keep(faults...)
	if *full {
		l.worker(workerOptions{})
	}
	l.completes(chaosRun)
	stop()
	got := l.dealtOnce(iterations)
	if !l.hindered() {
		require.LessOrEqual(t, got.lost, len(faults))
		require.Positive(t, got.lost)
	}
	l.isAs(chaosRun, want)
}

// dealtLag is dealt with a lag: other workers make the next rollout while the session learns.
var dealtLag = scene{lane: "undisturbed-dealt-lag", preset: "chaos-turns", quick: true, change: map[string]any{
	"rollout.pass_rows": 2, "rollout.block_rows": 4, "rollout.workers": 3, "rollout.lag": 1, "update.mismatch": map[string]any{"regime": "decoupled"},
}}

// TestChaosRolloutBesideUpdates has other workers sample the next rollout while the session scores and
// updates, and kills one of them inside a block, and the session's worker in an update: the run has the
// bytes of one worker's, which samples before its updates.
func TestChaosRolloutBesideUpdates(t *testing.T) {
	beside(t)
	want := dealtLag.reference(t)
	l := newLane(t, sharedStack(t)).withStarterOf(&dealtLag)
	own := l.worker(workerOptions{fault: "Generate/stall:3000/1,Update/inside/2"})
	l.start(chaosRun, dealtLag.spec(t))
	own.says(t, "stalls", patience) // it has the session, so the others help
	stop := l.keep("Block/inside/2")
	l.worker(workerOptions{})
	l.completes(chaosRun)
	stop()
	if !l.hindered() {
		require.False(t, own.alive(), "the session's worker was to be killed in its second update")
	}
	l.dealtOnce(turnsIterations)
	l.isAs(chaosRun, want)
}

// TestChaosWorkersOfTwoRuns has two runs on two workers: each has a session on one, so neither helps
// the other, and both end as one that is alone. Then one run has both workers.
func TestChaosWorkersOfTwoRuns(t *testing.T) {
	if !*full {
		t.Skip("with -full")
	}
	beside(t)
	want := dealt.reference(t)
	l := newLane(t, sharedStack(t)).withStarterOf(&dealt)
	for range 2 {
		l.worker(workerOptions{})
	}
	l.start(chaosRun, dealt.spec(t))
	l.start("beside", dealt.spec(t))
	l.completes(chaosRun)
	l.completes("beside")
	for _, run := range []string{chaosRun, "beside"} {
		require.Len(t, l.dealt(run).done, turnsIterations*turnsTurns*4)
		l.verifies(run)
	}
	same(t, want, reach(t, l.store, chaosRun))
}
