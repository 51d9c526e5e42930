package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

const testSweep = "fig7"

// field is a Sweep workflow in Temporal's test environment: its activities beside
// an empty store, and Train workflows that only report.
type field struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T
	w Workflows
	// curve is a trial's metric after an iteration, from 1.
	curve func(label string, version int) float64
	// fail is the version at which a trial fails; 0: never.
	fail map[string]int
	// pace is how long an iteration takes; a second by default.
	pace func(label string) time.Duration
	// waits is a trial that waits for a device before its first iteration.
	waits string
	// found is what the server says of trials, by label.
	found map[string]activities.Found

	mu      sync.Mutex
	now     int
	most    int // trials at once
	started []string
	done    map[string]int // iterations by label
	rows    []activities.TrialRecord
	looked  []string
	orders  int // updates that were not answered yet
	sweeps  *activities.Sweeps
}

func newField(t *testing.T) *field {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	f := &field{
		TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, fail: map[string]int{}, done: map[string]int{},
		curve: func(_ string, version int) float64 { return float64(version) / 4 },
		pace:  func(string) time.Duration { return time.Second },
	}
	f.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: testSweep, TaskQueue: activities.WorkflowQueue})
	f.SetTestTimeout(testTimeout)
	f.sweeps = &activities.Sweeps{Store: store.NewMemory(), Attributes: func(context.Context) bool { return true }}
	f.RegisterActivity(&fieldActivities{Sweeps: f.sweeps, f: f})
	f.RegisterWorkflowWithOptions(f.w.Sweep, workflow.RegisterOptions{Name: "Sweep"})
	f.RegisterWorkflowWithOptions(f.train, workflow.RegisterOptions{Name: "Train"})
	return f
}

// fieldActivities are the real ones, but for what reads a run's artifacts.
type fieldActivities struct {
	*activities.Sweeps
	f *field
}

func (a *fieldActivities) Summarize(_ context.Context, in activities.SummarizeInput) (activities.SummarizeResult, error) {
	var out activities.SummarizeResult
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	for _, t := range in.Trials {
		label := strings.TrimPrefix(t.Run, testSweep+"/")
		o := activities.Outcome{Values: in.Definition.Measured()}
		var curve sweep.Curve
		rungs := in.Definition.Stopping.Rungs(in.Definition.MaxIterations)
		for v := 1; v <= a.f.done[label]; v++ {
			x := a.f.curve(label, v)
			if t.Until == 0 || v <= t.Until {
				o.Values[0] = o.Values[0].Add(x, v-1, in.Definition.Goal)
				o.Iterations = v
			}
			curve = curve.Add(x, in.Definition.Goal)
			if k := len(o.Points); k < len(rungs) && rungs[k] == v {
				o.Points = append(o.Points, in.Definition.Stopping.At(curve))
			}
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	return out, nil
}

func (a *fieldActivities) WriteTable(_ context.Context, in activities.WriteTableInput) (activities.WriteTableResult, error) {
	a.f.rows = in.Records
	return activities.WriteTableResult{Table: ref("table")}, nil
}

func (a *fieldActivities) LookUp(_ context.Context, in activities.LookUpInput) (activities.LookUpResult, error) {
	var out activities.LookUpResult
	for _, id := range in.IDs {
		label := strings.TrimPrefix(id, in.Sweep+"/")
		a.f.looked = append(a.f.looked, label)
		out.Found = append(out.Found, a.f.found[label])
	}
	return out, nil
}

// train plays a trial: it reports as Train does, by the same reporter.
func (f *field) train(ctx workflow.Context, input json.RawMessage, _ *Carry) (*TrainResult, error) {
	var s struct{ Iterations int }
	if err := json.Unmarshal(input, &s); err != nil {
		return nil, err
	}
	// The test environment gives children no memo.
	label := strings.TrimPrefix(workflow.GetInfo(ctx).WorkflowExecution.ID, testSweep+"/")
	t := &train{sweep: reporterOf(TrialOf{Sweep: testSweep, Trial: label, Metrics: []string{"success/mean"}})}
	f.mu.Lock()
	f.started = append(f.started, label)
	f.now++
	f.most = max(f.most, f.now)
	f.mu.Unlock()
	err := f.iterations(ctx, t, label, s.Iterations)
	t.sweep.ended(ctx, t, err)
	f.mu.Lock()
	f.now--
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return &TrainResult{Iterations: t.Next}, nil
}

func (f *field) iterations(ctx workflow.Context, t *train, label string, iterations int) error {
	if f.waits == label {
		t.wanted = "f00d"
		t.sweep.waits(ctx, t)
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return err
		}
		t.wanted = ""
	}
	t.sweep.begun(ctx, t)
	for t.Next < iterations {
		if err := workflow.Sleep(ctx, f.pace(label)); err != nil {
			return err
		}
		if t.Next+1 == f.fail[label] {
			return temporal.NewNonRetryableApplicationError("the model is no model", activities.KindModelInvalid, nil)
		}
		t.Next++
		f.mu.Lock()
		f.done[label] = t.Next
		f.mu.Unlock()
		t.Metrics = activities.Metrics{"success/mean": canon.Float(f.curve(label, t.Next))}
		t.sweep.committed(ctx, t, nil)
	}
	return nil
}

const sweepBase = `{"environment": {"name": "bandit"}, "iterations": 4, "rollout": {"turns": 1, "groups": 4, "group_size": 4}}`

func (f *field) sweep(text string, carry *SweepCarry) {
	f.ExecuteWorkflow(f.w.Sweep, json.RawMessage(strings.ReplaceAll(text, "BASE", sweepBase)), carry)
}

// states are the trials' as they were handed to the table.
func (f *field) states() []string {
	var out []string
	for _, r := range f.rows {
		out = append(out, fmt.Sprintf("%s %d", r.State, r.Iterations))
	}
	return out
}

func (f *field) succeeded() SweepResult {
	f.t.Helper()
	require.True(f.t, f.IsWorkflowCompleted())
	require.NoError(f.t, f.GetWorkflowError())
	var r SweepResult
	require.NoError(f.t, f.GetWorkflowResult(&r))
	return r
}

func (f *field) table(of ...any) TablePage {
	f.t.Helper()
	v, err := f.QueryWorkflow("table", of...)
	require.NoError(f.t, err)
	var p TablePage
	require.NoError(f.t, v.Get(&p))
	return p
}

func (f *field) statusOf() SweepStatus {
	f.t.Helper()
	v, err := f.QueryWorkflow("status")
	require.NoError(f.t, err)
	var s SweepStatus
	require.NoError(f.t, v.Get(&s))
	return s
}

// order sends an update that is to be taken, or refused with words.
func (f *field) order(name string, arg any, refused string) {
	f.orders++
	answer := func(err error) {
		f.orders--
		if refused == "" {
			require.NoError(f.t, err, name)
		} else {
			require.ErrorContains(f.t, err, refused, name)
		}
	}
	f.UpdateWorkflow(name, fmt.Sprint(name, arg), &testsuite.TestUpdateCallback{
		OnReject: answer, OnAccept: func() {}, OnComplete: func(_ any, err error) { answer(err) },
	}, arg)
}

const grid = `{"base": BASE, "grid": {"update.epochs": [1, 2, 3]}, "seeds": [1, 2], "parallel": 2}`

func TestSweepRunsTrials(t *testing.T) {
	f := newField(t)
	f.waits = "update.epochs=2,seed=1"
	f.RegisterDelayedCallback(func() {
		p := f.table()
		require.Equal(t, SweepCounts{Trials: 6, Pending: 2, Running: 1, Waiting: 1, Done: 2}, p.Counts)
		require.Equal(t, sweep.Waiting, p.Rows[1].State)
		require.Equal(t, "f00d", p.Rows[1].Waiting)
		p = f.table(PageOf{Offset: 4, Limit: 1})
		require.Len(t, p.Rows, 1)
		require.Equal(t, "fig7/update.epochs=2,seed=2", p.Rows[0].Run)
		require.Equal(t, sweep.Pending, p.Rows[0].State)
		_, err := f.QueryWorkflow("table", PageOf{Limit: 501})
		require.ErrorContains(t, err, "at most 500")
	}, 10*time.Second)
	f.sweep(grid, nil)
	r := f.succeeded()
	require.Equal(t, SweepCounts{Trials: 6, Done: 6}, r.Counts)
	require.Equal(t, ref("table"), r.Table)
	require.Equal(t, 2, f.most, "at most as many at once as were asked for")
	require.Equal(t, []string{
		"update.epochs=1,seed=1", "update.epochs=2,seed=1", "update.epochs=3,seed=1",
		"update.epochs=1,seed=2", "update.epochs=2,seed=2", "update.epochs=3,seed=2",
	}, f.started)
	require.Equal(t, []string{"done 4", "done 4", "done 4", "done 4", "done 4", "done 4"}, f.states())
	p := f.table()
	require.Len(t, p.Settings, 3)
	require.Equal(t, sweep.Statistic{N: 2, Mean: 1, Low: 1, High: 1}, p.Settings[0].Metrics["success/mean"])
	require.Equal(t, sweep.Value{Last: 1, Best: 1, At: 3}, p.Rows[0].Metrics["success/mean"])
	require.GreaterOrEqual(t, p.Rows[0].Seconds, 4)
	s := f.statusOf()
	require.Equal(t, "done", s.Phase)
	require.Equal(t, 24, s.Done)
	require.Equal(t, 24, s.Of)
}

// What trials share is made by one of them while the others that share it wait.
func TestSweepMakesSharedOnce(t *testing.T) {
	f := newField(t)
	f.waits = "update.epochs=1,seed=1" // it is the one that makes it, and has no device
	f.RegisterDelayedCallback(func() {
		require.Equal(t, []string{"update.epochs=1,seed=1"}, f.started)
	}, 50*time.Second)
	f.sweep(strings.Replace(grid, `"parallel": 2`, `"parallel": 6`, 1), nil)
	f.succeeded()
	require.Equal(t, 6, f.most)

	f = newField(t)
	f.waits = "policy.warm_start.steps=10,seed=1"
	f.RegisterDelayedCallback(func() {
		require.Equal(t, []string{"policy.warm_start.steps=10,seed=1", "policy.warm_start.steps=20,seed=1", "policy.warm_start.steps=20,seed=2"}, f.started,
			"those that share something else do not wait for it")
	}, 50*time.Second)
	f.sweep(`{"base": BASE, "grid": {"policy.warm_start.steps": [10, 20]}, "seeds": 2, "parallel": 6}`, nil)
	f.succeeded()
}

func TestSweepRefusesBadInput(t *testing.T) {
	f := newField(t)
	f.sweep(`{"base": BASE, "grid": {"filter.keep": [0.5]}}`, nil)
	var app *temporal.ApplicationError
	require.ErrorAs(t, f.GetWorkflowError(), &app)
	require.Equal(t, activities.KindSpecInvalid, app.Type())
	require.Contains(t, app.Message(), `did you mean "selection.keep"?`)
	require.Empty(t, f.started)
}

func TestSweepFailurePolicy(t *testing.T) {
	f := newField(t)
	f.fail["update.epochs=2,seed=1"] = 3
	f.sweep(grid, nil)
	r := f.succeeded()
	require.Equal(t, SweepCounts{Trials: 6, Done: 5, Failed: 1}, r.Counts)
	require.Equal(t, "failed 2", f.states()[1], "what it had committed is in the table")
	require.Equal(t, "the model is no model", f.table().Rows[1].Note)
	require.Equal(t, 2, f.table().Settings[1].Trials)
	require.Equal(t, 1, f.table().Settings[1].Done)

	f = newField(t)
	f.pace = func(label string) time.Duration {
		return map[string]time.Duration{"update.epochs=1,seed=1": 1400 * time.Millisecond, "update.epochs=2,seed=1": time.Second}[label]
	}
	f.fail["update.epochs=2,seed=1"] = 3
	f.sweep(strings.Replace(grid, `{"base"`, `{"on_failure": "stop", "base"`, 1), nil)
	var app *temporal.ApplicationError
	require.ErrorAs(t, f.GetWorkflowError(), &app)
	require.Equal(t, KindTrialFailed, app.Type())
	require.ErrorContains(t, app, "trial update.epochs=2,seed=1 failed: the model is no model")
	require.Equal(t, []string{"cancelled 2", "failed 2", "cancelled 0", "cancelled 0", "cancelled 0", "cancelled 0"}, f.states())
	require.Len(t, f.started, 2)
}

// Cancelled, a sweep cancels its trials, waits for them and writes the table.
func TestSweepCancel(t *testing.T) {
	f := newField(t)
	f.RegisterDelayedCallback(f.CancelWorkflow, 6500*time.Millisecond)
	f.sweep(grid, nil)
	require.True(t, temporal.IsCanceledError(f.GetWorkflowError()))
	require.Equal(t, []string{"done 4", "done 4", "cancelled 2", "cancelled 2", "cancelled 0", "cancelled 0"}, f.states())
	require.Len(t, f.started, 4)
	require.Equal(t, "cancelled; each trial's end is its last committed iteration", f.statusOf().Phase)
	require.NotNil(t, f.statusOf().Table)
}

func TestSweepCancelWhileResolving(t *testing.T) {
	f := newField(t)
	f.OnActivity("ResolveSweep", mock.Anything, mock.Anything).After(time.Minute).Return(activities.SweepResult{}, nil)
	f.RegisterDelayedCallback(f.CancelWorkflow, time.Second)
	f.sweep(grid, nil)
	require.True(t, temporal.IsCanceledError(f.GetWorkflowError()))
	require.Empty(t, f.started)
}

func TestSweepCommands(t *testing.T) {
	f := newField(t)
	f.RegisterDelayedCallback(func() {
		for _, c := range []struct {
			name string
			arg  any
			says string
		}{
			{"set-parallel", SetParallel{}, "an integer from 1 to 500"},
			{"set-parallel", SetParallel{501}, "an integer from 1 to 500"},
			{"drop-trial", DropTrial{"update.epochs=9"}, `there is no trial "update.epochs=9"`},
			{"stop-early", StopEarly{"now"}, `running: found "now"`},
			{"add-trials", json.RawMessage(`{"grid": {"update.epochs": [3]}, "seeds": [1]}`), `trial "update.epochs=3,seed=1": found a second time`},
			{"add-trials", json.RawMessage(`{"grid": {"update.epoch": [3]}}`), `did you mean "update.epochs"?`},
		} {
			f.order(c.name, c.arg, c.says)
		}
		f.order("drop-trial", DropTrial{"update.epochs=1,seed=1"}, "")
		f.order("drop-trial", DropTrial{"fig7/update.epochs=3,seed=2"}, "")
		f.order("drop-trial", DropTrial{"update.epochs=3,seed=2"}, "is dropped already")
		f.order("add-trials", json.RawMessage(`{"grid": {"update.epochs": [4]}, "seeds": [7]}`), "")
		f.order("set-parallel", SetParallel{5}, "")
	}, 2500*time.Millisecond)
	f.RegisterDelayedCallback(func() {
		require.Equal(t, 5, f.statusOf().Parallel)
		require.Equal(t, 7, f.statusOf().Counts.Trials)
		require.Len(t, f.started, 6, "there is room for all")
	}, 3500*time.Millisecond)
	f.sweep(grid, nil)
	f.succeeded()
	require.Equal(t, []string{"dropped 2", "done 4", "done 4", "done 4", "done 4", "dropped 0", "done 4"}, f.states())
	require.Equal(t, "update.epochs=4,seed=7", f.table().Rows[6].Trial)
	require.Equal(t, "update.epochs=1", f.table().Settings[2].Setting)
	require.Equal(t, 1, f.table().Settings[2].Trials, "what was dropped is in no setting")
	require.Zero(t, f.orders, "all were answered")
}

func TestSweepStopEarly(t *testing.T) {
	for running, want := range map[string][]string{
		"":       {"done 4", "done 4", "cancelled 0", "cancelled 0", "cancelled 0", "cancelled 0"},
		"cancel": {"cancelled 2", "cancelled 2", "cancelled 0", "cancelled 0", "cancelled 0", "cancelled 0"},
	} {
		f := newField(t)
		f.RegisterDelayedCallback(func() {
			f.order("stop-early", StopEarly{running}, "")
			f.order("add-trials", json.RawMessage(`{"seeds": [9]}`), "no more trials begin")
		}, 2500*time.Millisecond)
		f.sweep(grid, nil)
		f.succeeded()
		require.Zero(t, f.orders, "all were answered")
		require.Equal(t, "stopped early", f.statusOf().Closing)
		require.Equal(t, want, f.states())
	}
}

// Decisions of early stopping do not depend on which trial was faster.
func TestSweepStopsTrialsEarly(t *testing.T) {
	const text = `{"base": BASE, "grid": {"update.epochs": [1, 2, 3]}, "seeds": [1, 2], "parallel": 3,
		"early_stopping": {"method": "median", "first": 2, "min_trials": 2}}`
	quality := map[string]float64{"1,seed=1": 0.8, "2,seed=1": 0.6, "3,seed=1": 0.1, "1,seed=2": 0.9, "2,seed=2": 0.5, "3,seed=2": 0.7}
	want := []string{"done 4", "done 4", "stopped 2", "done 4", "stopped 2", "done 4"}
	for name, pace := range map[string]func(string) time.Duration{
		"all alike": func(string) time.Duration { return time.Second },
		"the first is slow": func(l string) time.Duration {
			return map[bool]time.Duration{true: 5 * time.Second, false: time.Second}[strings.HasPrefix(l, "update.epochs=1,seed=1")]
		},
		"the worse are faster": func(l string) time.Duration {
			return time.Duration(float64(10*time.Second) * quality[l[len("update.epochs="):]])
		},
		"the better are faster": func(l string) time.Duration {
			return time.Duration(float64(time.Second) / quality[l[len("update.epochs="):]])
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newField(t)
			f.curve = func(label string, version int) float64 {
				return quality[label[len("update.epochs="):]] * float64(version)
			}
			f.pace = pace
			f.sweep(text, nil)
			f.succeeded()
			require.Equal(t, want, f.states())
			require.Equal(t, "stopped early, by its first 2 iterations", f.table().Rows[2].Note)
			require.Equal(t, 1, f.table().Settings[2].Done)
		})
	}
}

// A sweep that continues as new again and again is the sweep that never does.
func TestSweepContinuesAsNew(t *testing.T) {
	text := strings.Replace(grid, `"parallel": 2`, `"parallel": 3`, 1)
	var carry *SweepCarry
	// In the test environment children do not outlive their parent: what they would
	// have said is said to the next execution.
	f := newField(t)
	f.w.ContinueAfter = 7
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
		g.SignalWorkflow(trialSignal, TrialReport{Trial: "update.epochs=1,seed=1", Committed: []TrialIteration{{Version: 3}, {Version: 4}}, Ended: &TrialEnd{State: sweep.Done}})
		g.SignalWorkflow(trialSignal, TrialReport{Trial: "no trial of ours"})
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

// What a sweep of 200 trials carries is small; that of 10,000 fits into a payload.
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
	_, bytes = carry(10_000, 3, 0)
	require.Less(t, bytes, 2<<20)
	t.Logf("10,000 trials: %d bytes", bytes)
	open := activities.TrialRecord{
		Index: 3, State: sweep.Waiting, Started: 1, Begun: true, Asked: true, Final: sweep.Stopped, Stop: 4, Waiting: "f00d", Reason: "r",
		Curve: sweep.Curve{N: 2, Sum: 1.5, Best: 1, Last: 0.5}, Values: []sweep.Value{{Last: 1, Best: 2, At: 1}},
	}
	b, err := json.Marshal(open)
	require.NoError(t, err)
	var back activities.TrialRecord
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, open, back)
	require.Error(t, json.Unmarshal([]byte(`{}`), &back))
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

// A run that is a trial tells its sweep what it commits, that it waits, and its end.
func TestTrialReports(t *testing.T) {
	reportsOf := func(disturb func(*play)) []TrialReport {
		p := newPlay(t, &stage{plan: testPlan()})
		require.NoError(t, p.SetMemoOnStart(map[string]any{"sweep": TrialOf{
			Sweep: testSweep, Trial: "seed=1", Metrics: []string{"reward/mean", "evaluation/success/mean", "none"},
		}}))
		var reports []TrialReport
		p.OnSignalExternalWorkflow(mock.Anything, testSweep, "", trialSignal, mock.Anything).Return(
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
		{1, activities.Metrics{"reward/mean": 0.5}},
		{2, activities.Metrics{"reward/mean": 0.5, "evaluation/success/mean": 0.5}},
		{3, activities.Metrics{"reward/mean": 0.5, "evaluation/success/mean": 0.5}},
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
