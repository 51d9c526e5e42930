package workflows

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// A sweep that continues as new again and again is the sweep that never does.
func TestSweepContinuesAsNew(t *testing.T) {
	text := strings.Replace(grid, `"parallel": 2`, `"parallel": 3`, 1)
	var carry *SweepCarry
	// In the test environment children do not outlive their parent: what they would
	// have said is said to the next execution.
	f := newField(t)
	f.w.ContinueAfter = 3
	f.sweep(text, nil)
	carry = sweepCarryOf(t, f.GetWorkflowError())
	require.Len(t, carry.Records, 3)
	for _, r := range carry.Records {
		require.Equal(t, sweep.Running, r.State)
		require.True(t, r.Begun)
	}

	g := newField(t)
	g.sweeps.Store = f.sweeps.Store
	g.done = map[string]int{"update.epochs=1,seed=1": 4, "update.epochs=2,seed=1": 2, "update.epochs=3,seed=1": 4}
	// One was terminated meanwhile; of the other two the reports come, though one
	// only says nothing more, and the server is asked.
	g.found = map[string]activities.Found{
		"update.epochs=1,seed=1": {State: sweep.Running, Sweep: testSweep},
		"update.epochs=2,seed=1": {State: sweep.Terminated, Sweep: testSweep},
		"update.epochs=3,seed=1": {State: sweep.Running, Sweep: testSweep},
	}
	g.RegisterDelayedCallback(func() {
		require.Equal(t, []string{"update.epochs=1,seed=1", "update.epochs=2,seed=1", "update.epochs=3,seed=1"}, g.looked)
		require.Equal(t, sweep.Terminated, g.table().Rows[1].State)
		g.SignalWorkflow(TrialSignal, TrialReport{Trial: "update.epochs=1,seed=1", Committed: []TrialIteration{{Version: 3}, {Version: 4}}, Ended: &TrialEnd{State: sweep.Done}})
		g.SignalWorkflow(TrialSignal, TrialReport{Trial: "no trial of ours"})
		g.found["update.epochs=3,seed=1"] = activities.Found{State: sweep.Done, Sweep: testSweep}
	}, 2*time.Second)
	g.sweep(text, carry)
	g.succeeded()
	require.Equal(t, []string{"done 4", "terminated 2", "done 4", "done 4", "done 4", "done 4"}, g.states())
	require.Len(t, g.started, 3, "what ran is not started again")
}

func sweepCarryOf(t *testing.T, err error) *SweepCarry {
	t.Helper()
	var again *workflow.ContinueAsNewError
	require.True(t, errors.As(err, &again), "%v", err)
	var input json.RawMessage
	var c *SweepCarry
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &input, &c))
	return c
}

// A sweep of 200 trials carries little; the carried state of 10,000 trials fits into a
// payload.
func TestSweepCarryIsSmall(t *testing.T) {
	carry := func(trials, metrics, rungs int) (SweepCarry, int) {
		c := SweepCarry{Written: bigRef(), Location: digits(96), Parallel: 500}
		for i := range trials {
			r := activities.TrialRecord{
				Index: i, State: sweep.Done, Started: 1763735000, Ended: 1763735999, Iterations: 200, Summarized: true, LostDevices: 1, Recomputed: 12,
			}
			for range metrics {
				r.Values = append(r.Values, sweep.Value{Last: 0.2345678901234567, Best: 0.4345678901234567, At: 123})
			}
			for range rungs {
				r.Points = append(r.Points, sweep.Point{Known: true, Judged: 0.2345678901234567, Against: 0.4345678901234567})
			}
			c.Records = append(c.Records, r)
		}
		b, err := json.Marshal(c)
		require.NoError(t, err)
		var back SweepCarry
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, c, back, "everything comes back")
		return c, len(b)
	}
	_, bytes := carry(200, 3, 3)
	require.Less(t, bytes, 64<<10)
	t.Logf("200 trials: %d bytes", bytes)
	_, bytes = carry(sweep.MaxTrials, sweep.MaxNumbers/sweep.MaxTrials, 0)
	require.Less(t, bytes, 2<<20)
	t.Logf("10,000 trials: %d bytes", bytes)
	open := activities.TrialRecord{
		Index: 3, State: sweep.Waiting, Started: 1, Begun: true, Asked: true, Final: sweep.Stopped, Stop: 4, Waiting: "f00df00df00d", Reason: "r",
		Curve: sweep.Curve{N: 2, Sum: 1.5, Best: 1, Last: 0.5}, Whole: true, Values: []sweep.Value{{Last: 1, Best: 2, At: 1}},
	}
	b, err := json.Marshal(open)
	require.NoError(t, err)
	var back activities.TrialRecord
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, open, back)
	require.Error(t, json.Unmarshal([]byte(`{}`), &back))
}

// Thousands of trials that failed, each with a long reason: what is carried, and what
// the table is written from, still is a payload. Few say all.
func TestSweepCarriesReasons(t *testing.T) {
	long := strings.Repeat("<é \"no\" ", 100)
	for _, n := range []int{sweep.MaxNumbers / 3, 10} {
		s := &sweeping{}
		for i := range n {
			r := activities.TrialRecord{
				Index: i, State: sweep.Failed, Started: 1763735000, Ended: 1763735999, Iterations: 200, Summarized: true, Begun: true, LostDevices: 1, Recomputed: 12,
				Reason: shortText(long),
			}
			for range 3 {
				r.Values = append(r.Values, sweep.Value{Last: -0.12345678806304932, Best: -0.12345678806304932, At: 123})
			}
			s.trials = append(s.trials, &trial{TrialRecord: r})
		}
		records, err := s.records(func(*trial) bool { return true })
		require.NoError(t, err)
		require.Len(t, records, n)
		b, err := json.Marshal(activities.WriteTableInput{ID: testSweep, Sweep: bigRef(), Records: records})
		require.NoError(t, err)
		require.Less(t, len(b)+maxInput, 2<<20)
		t.Logf("%d failed: %d bytes, %q", n, len(b), records[n-1].Reason)
		require.True(t, strings.HasSuffix(records[0].Reason, "…"))
		require.True(t, strings.HasPrefix(long, strings.TrimSuffix(records[n-1].Reason, "…")))
		require.Equal(t, shortText(long), s.trials[0].Reason, "what is in memory stays")
	}
	require.Len(t, []rune(shortText(long)), maxReason+1)
}

// Texts about a trial from the server or the store are bounded like the trial's own.
func TestSweepBoundsReasons(t *testing.T) {
	f := newField(t)
	carry := &SweepCarry{Written: f.written(`{"base": BASE, "seeds": [1, 2]}`), Parallel: 1, Records: []activities.TrialRecord{{State: sweep.Running}}}
	f.found = map[string]activities.Found{"seed=1": {State: sweep.Failed, Sweep: testSweep, Reason: strings.Repeat("x", 500)}}
	f.problem = map[string]string{"seed=2": strings.Repeat("y", 5000)}
	f.sweep(`{}`, carry)
	f.succeeded()
	require.Equal(t, strings.Repeat("x", maxReason)+"…", f.rows[0].Reason)
	require.Equal(t, strings.Repeat("y", maxReason)+"…", f.rows[1].Reason)
}

// A trial of an id that a foreign run has fails; the run is left alone.
func TestSweepMeetsForeignRun(t *testing.T) {
	f := newField(t)
	carry := &SweepCarry{Written: f.written(`{"base": BASE, "seeds": [1, 2]}`), Parallel: 1, Records: []activities.TrialRecord{{Index: 0, State: sweep.Running}}}
	f.found = map[string]activities.Found{"seed=1": {State: sweep.Running}}
	f.sweep(`{}`, carry)
	f.succeeded()
	require.Equal(t, []string{"failed 0", "done 4"}, f.states())
	require.Contains(t, f.table().Rows[0].Note, "no trial of this sweep")
}

// written writes a sweep's definition into the field's store.
func (f *field) written(text string) store.Ref {
	f.t.Helper()
	r, err := f.sweeps.ResolveSweep(f.t.Context(), activities.ResolveSweepInput{ID: testSweep, Input: json.RawMessage(strings.ReplaceAll(text, "BASE", sweepBase))})
	require.NoError(f.t, err)
	return r.Sweep
}

// A run that is a trial reports to its sweep what it commits, that it waits, and its end.
func TestTrialReports(t *testing.T) {
	reportsOf := func(disturb func(*play)) []TrialReport {
		p := newPlay(t, &stage{plan: testPlan()})
		require.NoError(t, p.SetMemoOnStart(map[string]any{"sweep": TrialOf{
			Sweep: testSweep, Trial: "seed=1", Metrics: []string{"reward/mean", "evaluation/success/mean", "none"},
		}}))
		var reports []TrialReport
		p.OnSignalExternalWorkflow(mock.Anything, testSweep, "", TrialSignal, mock.Anything).Return(
			func(_, _, _, _ string, arg any) error {
				reports = append(reports, arg.(TrialReport))
				return errors.New("it has ended: the run goes on all the same")
			})
		disturb(p)
		p.train(nil)
		return reports
	}
	var committed []TrialIteration
	reports := reportsOf(func(*play) {})
	for _, r := range reports {
		require.Equal(t, "seed=1", r.Trial)
		committed = append(committed, r.Committed...)
	}
	require.Equal(t, []TrialIteration{
		{1, 0, activities.Metrics{"reward/mean": 0.5}},
		{2, 0, activities.Metrics{"reward/mean": 0.5, "evaluation/success/mean": 0.5}},
		{3, 0, activities.Metrics{"reward/mean": 0.5, "evaluation/success/mean": 0.5}},
	}, committed)
	require.True(t, reports[0].Begun)
	require.False(t, reports[1].Begun, "it is told once")
	last := reports[len(reports)-1]
	require.Equal(t, &TrialEnd{State: sweep.Done}, last.Ended)
	require.Equal(t, 1, last.Recomputed)

	reports = reportsOf(func(p *play) { p.absent = 1 })
	require.Equal(t, testPrint, reports[0].Waiting)
	require.Empty(t, reports[1].Waiting, "and that it waits no more")

	reports = reportsOf(func(p *play) { p.when("Update", 2, p.CancelWorkflow) })
	require.Equal(t, sweep.Cancelled, reports[len(reports)-1].Ended.State)

	reports = reportsOf(func(p *play) {
		p.s.errors = map[string][]error{"Resolve": {temporal.NewNonRetryableApplicationError("two problems", activities.KindSpecInvalid, nil)}}
	})
	require.Equal(t, []TrialReport{{Trial: "seed=1", Ended: &TrialEnd{State: sweep.Failed, Reason: "two problems"}}}, reports)
}

// A trial that a person drops is dropped, also where a rule would stop it while it ends.
func TestSweepDropsBeforeItStops(t *testing.T) {
	s := &sweeping{newPoints: true, rungs: []int{2}}
	s.definition.Stopping = &sweep.Stopping{Method: sweep.Median, First: 2, Every: 2, MinTrials: 3}
	s.definition.Goal = sweep.Maximize
	for i, value := range []float64{4, 5, 6, 1} {
		at := sweep.Point{Known: true, Judged: canon.Float(value), Against: canon.Float(value)}
		s.trials = append(s.trials, &trial{TrialRecord: activities.TrialRecord{
			Index: i, State: sweep.Done, Summarized: true, Points: []sweep.Point{at},
		}})
	}
	s.trials[3].State, s.trials[3].Final = sweep.Running, sweep.Dropped
	s.decide()
	require.Equal(t, 2, s.trials[3].Stop, "the rule would stop it")
	require.Equal(t, sweep.Dropped, s.trials[3].Final)
}
