package workflows

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
)

// took requires seconds by the test environment's clock: it skips waits, and runs with the
// real one while activities do.
func took(t *testing.T, want time.Duration, got float64, about ...any) {
	t.Helper()
	require.GreaterOrEqual(t, got, want.Seconds(), about...)
	require.LessOrEqual(t, got, (want + testTimeout).Seconds(), about...)
}

// A session that fails with its step is a row of the next commit, with the seconds from
// the step's begin until the session was declared lost. The steps that ended before were
// useful, and what the next worker rebuilds is recomputed.
func TestCostsOfLostSession(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, errors: map[string][]error{"Update": answer1(2, activities.KindDeviceFailed)}}
	s.took = map[string]activities.Telemetry{
		"session-1 Update":  {Seconds: 1000, WaitSeconds: 70, PriceHour: 3},
		"session-2 Update":  {Seconds: 2000, PriceHour: 4.5},
		"session-2 Restore": {Seconds: 300, RecomputeSeconds: 100, PriceHour: 4.5},
	}
	p := newPlay(t, s)
	p.train(nil)
	p.result()
	require.Len(t, s.commits, 3)

	require.Empty(t, s.commits[0].LostSessions)
	first := s.commits[0].Costs
	require.Len(t, first, 1)
	require.Equal(t, "cpu", first[0].Kind)
	require.Equal(t, 1000.0, first[0].Useful)
	took(t, 70*time.Second, first[0].Waiting)
	require.Zero(t, first[0].Lost)

	lost := s.commits[1].LostSessions
	require.Len(t, lost, 1)
	require.Equal(t, "Update: iteration 1 · update on 4 rows", lost[0].Step)
	require.Equal(t, activities.KindDeviceFailed, lost[0].Reason)
	took(t, 0, lost[0].Seconds)
	opened, err := time.Parse(time.RFC3339, lost[0].Opened)
	require.NoError(t, err)
	end, err := time.Parse(time.RFC3339, lost[0].Lost)
	require.NoError(t, err)
	took(t, 0, end.Sub(opened).Seconds())
	require.Equal(t, 3.0, lost[0].PriceHour)
	second := s.commits[1].Costs
	require.Len(t, second, 1)
	require.Equal(t, lost[0].Seconds, second[0].Lost)
	require.Equal(t, 2200.0, second[0].Useful)
	require.Equal(t, 100.0, second[0].Recomputed)
	require.GreaterOrEqual(t, second[0].Held, lost[0].Seconds)
	require.GreaterOrEqual(t, second[0].Money, lost[0].Seconds*3/3600)
	require.LessOrEqual(t, second[0].Money, second[0].Held*4.5/3600)

	require.Empty(t, s.commits[2].LostSessions, "a row is written once")
	require.Equal(t, 2000.0, s.commits[2].Costs[0].Useful)
	sum := p.status().Costs
	require.Len(t, sum, 1)
	require.Equal(t, 5200.0, sum[0].Useful)
	require.Equal(t, second[0].Lost, sum[0].Lost)
}

// A worker that is about to stop refuses the next step: the session has ended, and nothing is lost.
func TestCostsOfAnnouncedPreemption(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, errors: map[string][]error{"Score": answer1(1, activities.KindDraining)}}
	p := newPlay(t, s)
	p.train(nil)
	require.Zero(t, p.result().LostDevices)
	require.Equal(t, 1, p.status().DrainedDevices)
	lost := s.commits[0].LostSessions
	require.Len(t, lost, 1)
	require.Zero(t, lost[0].Seconds)
	require.Empty(t, lost[0].Step)
	require.Equal(t, "Drained", lost[0].Reason)
	require.Zero(t, p.status().Costs[0].Lost)
	require.Equal(t, p.status().Costs[0].Held, p.status().Costs[0].Unpriced)
}

func TestCostsOfWaiting(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, errors: map[string][]error{"Describe": {fmt.Errorf("odd"), fmt.Errorf("odd"), fmt.Errorf("odd")}}}
	p := newPlay(t, s)
	p.train(nil)
	p.result()
	c := p.status().Costs
	require.Len(t, c, 1)
	took(t, (1+2+4)*describeWait, c[0].Waiting)
	took(t, 0, c[0].Held, "no device is held meanwhile")
}

// Waiting for a session, and for a worker with the run's programs, is waiting too.
func TestCostsOfOtherWaits(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, errors: map[string][]error{"Restore": answer1(1, activities.KindProgramsDiffer)}}
	p := newPlay(t, s)
	p.train(nil)
	p.result()
	took(t, programsWaitMin, p.status().Costs[0].Waiting)

	p = newPlay(t, &stage{plan: testPlan(), base: true})
	p.creation.After(sessionWait)
	p.train(nil)
	p.result()
	took(t, sessionWait, p.status().Costs[0].Waiting)
}

// What a run has cost goes along when it continues as new, with what no commit has yet.
func TestCostsAreCarried(t *testing.T) {
	times := map[string]activities.Telemetry{"session-1 Update": {Seconds: 1000, PriceHour: 3}}
	s := &stage{plan: testPlan(), base: true, took: times}
	var carry *Carry
	for n := range 3 {
		p := newPlay(t, s)
		p.w.ContinueAfter = 1
		p.train(carry)
		require.Equal(t, float64(n+1)*1000, p.status().Costs[0].Useful)
		require.Equal(t, 1000.0, s.commits[0].Costs[0].Useful, "a row has what is new")
		if n < 2 {
			carry = carried(t, p)
			require.NotEmpty(t, carry.Costs.Committed)
		}
		s = &stage{plan: testPlan(), took: times}
	}
}

// lostSession is a row as long as they get.
func lostSession() activities.LostSession {
	return activities.LostSession{
		Kind: "NVIDIA H100 80GB HBM3", Step: "Generate: version 123456 · some-suite-of-instances · turn 10 · 1024 rows",
		Seconds: 1234.123456789, Reason: activities.KindDeviceFailed, PriceHour: 2.34567,
	}
}

// However many sessions a run loses without a commit, what it carries stays small.
func TestCarriedCostsAreSmall(t *testing.T) {
	var c costs
	for i := range 1000 {
		c.add(activities.Cost{Kind: fmt.Sprintf("NVIDIA H100 %d", i%8), Held: 1.23456789, Useful: 1.23456789, Lost: 1.23456789, Money: 1.23456789})
	}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		tr := &train{Carry: Carry{Costs: c, Device: json.RawMessage(`{"device_kind":"NVIDIA H100 80GB HBM3"}`)}}
		row, at := lostSession(), workflow.Now(ctx)
		for range 1000 {
			tr.leaves(ctx, &session{used: usage{opened: at, counted: at, failed: row.Step, reason: row.Reason, seconds: row.Seconds, price: row.PriceHour}}, errDeviceLost)
		}
		c = tr.Costs
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	require.Len(t, c.Lost, maxLostSessions)
	b, err := json.Marshal(Carry{Costs: c})
	require.NoError(t, err)
	require.Less(t, len(b), 16<<10)
	var back Carry
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, c, back.Costs)
}

// Prices belong to workers: two of one kind may differ, and one may have none.
func TestCostsByKindAndPrice(t *testing.T) {
	tr := &train{}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		for _, on := range []struct {
			kind  string
			price float64
		}{{"H100", 3}, {"H100", 2}, {"L4", 0}, {"L4", 0.5}} {
			tr.Device, _ = json.Marshal(map[string]string{"device_kind": on.kind, "platform": "cuda"})
			begun := workflow.Now(ctx)
			s := &session{used: usage{opened: begun, counted: begun}}
			if err := workflow.Sleep(ctx, time.Hour); err != nil {
				return err
			}
			r := &activities.UpdateResult{Telemetry: activities.Telemetry{Seconds: 3000, PriceHour: on.price}}
			tr.measured(ctx, s, steps.Update.Routing, "update", begun, r, nil)
			if err := workflow.Sleep(ctx, time.Hour); err != nil {
				return err
			}
			tr.leaves(ctx, s, nil)
		}
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	c := tr.costsNow()
	require.Len(t, c, 2)
	for i, want := range []activities.Cost{
		{Kind: "H100", Held: 14400, Useful: 6000, Money: 10},
		{Kind: "L4", Held: 14400, Useful: 6000, Money: 1, Unpriced: 7200},
	} {
		require.Equal(t, want.Kind, c[i].Kind)
		require.Equal(t, want.Useful, c[i].Useful)
		took(t, time.Duration(want.Held)*time.Second, c[i].Held)
		took(t, time.Duration(want.Unpriced)*time.Second, c[i].Unpriced)
		require.InDelta(t, want.Money, c[i].Money, 0.1)
	}
	require.Empty(t, tr.Costs.Lost, "no session was lost")

	var b strings.Builder
	showCosts(&b, []activities.Cost{
		{Held: 10, Unpriced: 10, Waiting: 4},
		{Kind: "H100", Held: 14400, Useful: 6000, Money: 10},
		{Kind: "L4", Held: 14400, Lost: 60, Money: 1, Unpriced: 7200},
	})
	require.Equal(t, `
| device | held | useful | recomputed | lost | waiting | cost |
|---|---|---|---|---|---|---|
| none yet | 10s | 0s | 0s | 0s | 4s | – |
| H100 | 4h0m0s | 1h40m0s | 0s | 0s | 0s | 10.00 |
| L4 | 4h0m0s | 0s | 0s | 1m0s | 0s | 1.00 and 2h0m0s without a price |
`, b.String())
	b.Reset()
	showCosts(&b, nil)
	require.Empty(t, b.String())
}

// Every step of a session tells what it took, or its costs would be missing.
func TestStepsOfSessionsHaveTelemetry(t *testing.T) {
	for _, result := range []any{
		&activities.WarmStartResult{}, &activities.RestoreResult{}, &activities.GenerateResult{}, &activities.ScoreResult{},
		&activities.DiagnoseResult{}, &activities.UpdateResult{}, &activities.SnapshotResult{}, &activities.PublishResult{}, &activities.BlockResult{},
		&activities.TakeCallsResult{},
		&activities.GradeResult{},
	} {
		_, ok := activities.TelemetryOf(result)
		require.True(t, ok, "%T", result)
	}
	require.Len(t, steps.Named(steps.OnSession), 11, "the list above is complete")
	_, ok := activities.TelemetryOf(&activities.DeviceInfo{})
	require.False(t, ok)
}

// A trial tells its sweep what each iteration has cost and, when it ends, the rest. The
// sweep sums it, and carries the sum.
func TestSweepSumsCosts(t *testing.T) {
	p := newPlay(t, &stage{plan: testPlan(), base: true, took: map[string]activities.Telemetry{"session-1 Update": {Seconds: 1000, PriceHour: 3}}})
	require.NoError(t, p.SetMemoOnStart(map[string]any{"sweep": TrialOf{Sweep: testSweep, Trial: "update.epochs=1,seed=1"}}))
	var reports []TrialReport
	p.OnSignalExternalWorkflow(mock.Anything, testSweep, "", TrialSignal, mock.Anything).Return(func(_, _, _, _ string, arg any) error {
		reports = append(reports, arg.(TrialReport))
		return nil
	})
	p.when("Snapshot", 1, p.CancelWorkflow) // in iteration 1, after its update
	p.train(nil)
	require.Error(t, p.GetWorkflowError())
	var told []activities.Cost
	for _, r := range reports {
		told = activities.AddCosts(told, r.Costs...)
	}
	require.Equal(t, 2000.0, told[0].Useful, "with what is not committed")
	run := p.status().Costs[0]
	require.InDelta(t, run.Held, told[0].Held, 1e-6)
	require.InDelta(t, run.Money, told[0].Money, 1e-6)

	f := newField(t)
	f.RegisterDelayedCallback(func() {
		f.SignalWorkflow(TrialSignal, TrialReport{Trial: "update.epochs=1,seed=1", Costs: []activities.Cost{{Kind: "L4", Held: 5}, {Kind: "H100", Held: 60, Money: 2}}})
		f.SignalWorkflow(TrialSignal, TrialReport{Trial: "update.epochs=2,seed=1", Costs: []activities.Cost{{Kind: "H100", Held: 60, Money: 2}}})
	}, time.Second/2)
	f.sweep(grid, &SweepCarry{Written: f.written(grid), Parallel: 2, Costs: []activities.Cost{{Kind: "H100", Held: 60, Money: 2}}})
	f.succeeded()
	require.Equal(t, []activities.Cost{{Kind: "H100", Held: 180, Money: 6}, {Kind: "L4", Held: 5}}, f.statusOf().Costs)
}

// Current Details have the costs.
func TestDetailsShowCosts(t *testing.T) {
	tr := &train{Workflows: &Workflows{}, ready: true, Carry: Carry{Costs: costs{
		Committed: []activities.Cost{{Kind: "H100", Held: 60, Money: 2}}, Due: []activities.Cost{{Kind: "H100", Held: 60, Money: 1}},
	}}}
	require.Contains(t, tr.details(), "| H100 | 2m0s | 0s | 0s | 0s | 0s | 3.00 |\n")
}
