package workflows

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// A paused trial gives its place back: the others run meanwhile. Resumed it goes on at
// once, and the sweep ends when it has.
func TestPausedTrialGivesItsPlaceBack(t *testing.T) {
	f := newField(t)
	f.pauses, f.begins = "update.epochs=1,seed=1", true
	f.RegisterDelayedCallback(func() {
		p := f.table()
		require.Equal(t, SweepCounts{Trials: 6, Paused: 1, Done: 5}, p.Counts, "the others have done all")
		require.Equal(t, sweep.Paused, p.Rows[0].State)
		require.Equal(t, "Update: iteration 0 failed 5 times in a row; the last error: no room", p.Rows[0].Note)
		require.Equal(t, "5 done, 1 paused", p.Counts.String())
		require.Equal(t, 24, f.statusOf().Of, "more will come of it")
	}, 50*time.Second)
	f.RegisterDelayedCallback(func() {
		p := f.table()
		require.Equal(t, sweep.Running, p.Rows[0].State)
		require.Empty(t, p.Rows[0].Note)
	}, 61*time.Second)
	f.sweep(grid, nil)
	require.Equal(t, SweepCounts{Trials: 6, Done: 6}, f.succeeded().Counts)
	require.Equal(t, 2, f.most, "not more than have a place")
	require.Equal(t, []string{"done 4", "done 4", "done 4", "done 4", "done 4", "done 4"}, f.states())
}

// A trial that pauses while it makes what others share lets another of them make it.
func TestPausedTrialLetsOthersShare(t *testing.T) {
	f := newField(t)
	f.pauses = "update.epochs=1,seed=1"
	f.RegisterDelayedCallback(func() {
		require.Equal(t, 5, f.table().Counts.Done)
	}, 50*time.Second)
	f.sweep(strings.Replace(grid, `"parallel": 2`, `"parallel": 6`, 1), nil)
	f.succeeded()
}

// A paused trial is carried with its reason, and one that is cancelled has none.
func TestPausedTrialIsCarried(t *testing.T) {
	f := newField(t)
	f.w.ContinueAfter = 3
	f.pauses, f.begins = "update.epochs=1,seed=1", true
	f.sweep(grid, nil)
	carry := sweepCarryOf(t, f.GetWorkflowError())
	require.Equal(t, sweep.Paused, carry.Records[0].State)
	require.Contains(t, carry.Records[0].Reason, "no room")

	g := newField(t)
	g.sweeps.Store = f.sweeps.Store
	g.done = map[string]int{}
	g.found = map[string]activities.Found{
		"update.epochs=1,seed=1": {State: sweep.Running, Sweep: testSweep},
		"update.epochs=2,seed=1": {State: sweep.Done, Sweep: testSweep},
		"update.epochs=3,seed=1": {State: sweep.Done, Sweep: testSweep},
	}
	g.RegisterDelayedCallback(func() {
		p := g.table()
		require.Equal(t, sweep.Paused, p.Rows[0].State)
		require.Contains(t, p.Rows[0].Note, "no room")
		require.Equal(t, 5, p.Counts.Done)
		g.SignalWorkflow(TrialSignal, TrialReport{Trial: "update.epochs=1,seed=1", Ended: &TrialEnd{State: sweep.Cancelled}})
	}, time.Hour)
	g.sweep(grid, carry)
	g.succeeded()
	require.Equal(t, sweep.Cancelled, g.table().Rows[0].State)
	require.Empty(t, g.table().Rows[0].Note)
}

// A trial tells its sweep that it is paused, whoever paused it, and that it goes on.
func TestTrialReportsPauses(t *testing.T) {
	for why, pause := range map[string]func(p *play){
		"by the update pause": func(p *play) { p.when("Score", 1, func() { p.send("pause") }) },
		"Score: iteration 0 · old log-probs of 4 rows was out of memory 2 times; the last error: no room": func(p *play) {
			p.s.errors = map[string][]error{"Score": {outOfMemory("no room"), outOfMemory("no room")}}
		},
	} {
		p := newPlay(t, &stage{plan: testPlan(), base: true})
		p.s.plan.Iterations = 1
		require.NoError(t, p.SetMemoOnStart(map[string]any{"sweep": TrialOf{Sweep: testSweep, Trial: "a", Awaited: true}}))
		var told []string
		p.OnSignalExternalWorkflow(mock.Anything, testSweep, "", TrialSignal, mock.Anything).Return(
			func(_, _, _, _ string, arg any) error {
				if r := arg.(TrialReport); len(told) == 0 || told[len(told)-1] != r.Paused {
					told = append(told, r.Paused)
				}
				return errors.New("it has ended: the run goes on all the same")
			})
		pause(p)
		p.RegisterDelayedCallback(func() { p.send("resume") }, time.Hour)
		p.train(nil)
		p.result()
		require.Equal(t, []string{"", why, ""}, told)
	}
}
