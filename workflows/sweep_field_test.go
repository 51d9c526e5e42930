package workflows

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

const testSweep = "fig7"

// field is a Sweep workflow in Temporal's test environment: its activities beside
// an empty store, and Train workflows that only report.
type field struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T
	w Workflows
	// curve is a trial's metric after an iteration, from 1; on branch 1 it is back's.
	curve, back func(label string, version int) float64
	// rolls is the version from which a trial goes back once, to the other one.
	rolls map[string][2]int
	// deaf are versions that a trial never reports; foreign counts the iterations of the
	// run it is forked from.
	deaf    func(label string, version int) bool
	foreign int
	// fail is the version at which a trial fails; 0: never.
	fail map[string]int
	// pace is how long an iteration takes; a second by default.
	pace func(label string) time.Duration
	// waits is a trial that waits for a device before its first iteration.
	waits string
	// pauses is a trial that pauses by itself for a minute before its first iteration;
	// begins says that version 0 exists then.
	pauses string
	begins bool
	// problem is why a trial's chain cannot be read, by label.
	problem map[string]string
	// found is what the server says of trials, by label.
	found map[string]activities.Found

	mu      sync.Mutex
	now     int
	most    int // trials at once
	started []string
	done    map[string]int // iterations by label
	// lines are what trials measured, by label and branch, from the beginning.
	lines  map[string][][]float64
	rows   []activities.TrialRecord
	looked []string
	// memos are what the sweep said to its trials, by label.
	memos  map[string]TrialOf
	read   []int // of how many trials the store was asked, each time
	orders int   // updates that were not answered yet
	// reports are what was there when the page was written; reporting makes it
	// another way.
	reports   []string
	reporting func() error
	sweeps    *sweeps.Sweeps
}

func newField(t *testing.T) *field {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	f := &field{
		TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, fail: map[string]int{}, done: map[string]int{}, lines: map[string][][]float64{},
		memos: map[string]TrialOf{},
		curve: func(_ string, version int) float64 { return float64(version) / 4 },
		pace:  func(string) time.Duration { return time.Second },
	}
	f.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: testSweep, TaskQueue: activities.WorkflowQueue})
	f.SetTestTimeout(testTimeout)
	f.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&memoReader{f: f}}})
	f.sweeps = &sweeps.Sweeps{Store: store.NewMemory(), Attributes: func(context.Context) bool { return true }}
	own := &fieldActivities{f: f}
	f.RegisterActivity(own)
	for _, b := range f.sweeps.Steps() {
		if _, ok := reflect.TypeFor[*fieldActivities]().MethodByName(b.Name); !ok {
			f.RegisterActivityWithOptions(b.Func, activity.RegisterOptions{Name: b.Name})
		}
	}
	f.RegisterWorkflowWithOptions(f.w.Sweep, workflow.RegisterOptions{Name: "Sweep"})
	f.RegisterWorkflowWithOptions(f.train, workflow.RegisterOptions{Name: "Train"})
	return f
}

// fieldActivities replace the real ones that read a run's artifacts.
type fieldActivities struct{ f *field }

func (a *fieldActivities) Summarize(_ context.Context, in activities.SummarizeInput) (activities.SummarizeResult, error) {
	var out activities.SummarizeResult
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	a.f.read = append(a.f.read, len(in.Trials))
	for _, t := range in.Trials {
		label := strings.TrimPrefix(t.Run, testSweep+"/")
		o := activities.Outcome{Values: in.Definition.Measured(), Problem: a.f.problem[label]}
		rungs := in.Definition.Stopping.Rungs(in.Definition.MaxIterations)
		lines := a.f.lines[label]
		if lines == nil {
			lines = [][]float64{a.f.line(label, a.f.done[label])}
		}
		counted := lines[len(lines)-1]
		for i := len(lines) - 1; i >= 0 && t.Until > 0; i-- {
			if len(lines[i]) >= t.Until {
				counted = lines[i][:t.Until]
			}
		}
		for i, x := range counted {
			o.Values[0] = o.Values[0].Add(x, i, in.Definition.Goal)
			o.Iterations = i + 1
		}
		for _, line := range lines {
			o.Points = in.Definition.Stopping.Along(o.Points, rungs, line, in.Definition.Goal)
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	return out, nil
}

// line is what a trial that never went back measured.
func (f *field) line(label string, iterations int) []float64 {
	var out []float64
	for v := 1; v <= iterations; v++ {
		out = append(out, f.curve(label, v))
	}
	return out
}

func (a *fieldActivities) WriteTable(_ context.Context, in activities.WriteTableInput) (activities.WriteTableResult, error) {
	a.f.rows = in.Records
	return activities.WriteTableResult{Table: ref("table")}, nil
}

func (a *fieldActivities) ReportSweep(_ context.Context, in activities.ReportSweepInput) (activities.ReportResult, error) {
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	a.f.reports = append(a.f.reports, fmt.Sprintf("%s: a table of %d", in.Sweep, len(a.f.rows)))
	if a.f.reporting != nil {
		if err := a.f.reporting(); err != nil {
			return activities.ReportResult{}, err
		}
	}
	return activities.ReportResult{Location: pageOfTest}, nil
}

const pageOfTest = "s3://bucket/sweeps/fig7/report/index.html"

func (a *fieldActivities) LookUp(_ context.Context, in activities.LookUpInput) (activities.LookUpResult, error) {
	var out activities.LookUpResult
	for _, id := range in.IDs {
		label := strings.TrimPrefix(id, testSweep+"/")
		a.f.looked = append(a.f.looked, label)
		out.Found = append(out.Found, a.f.found[label])
	}
	return out, nil
}

// train plays a trial: it reports as Train does, by the same reporter.
func (f *field) train(ctx workflow.Context, input json.RawMessage, _ *Carry) (*TrainResult, error) {
	var s struct {
		Iterations int
		From       struct {
			Run       string
			Iteration int
		}
	}
	if err := json.Unmarshal(input, &s); err != nil {
		return nil, err
	}
	label := strings.TrimPrefix(workflow.GetInfo(ctx).WorkflowExecution.ID, testSweep+"/")
	f.mu.Lock()
	t := &train{sweep: reporterOf(f.memos[label])}
	f.started = append(f.started, label)
	t.Next = f.done[label]
	if t.Next == 0 && s.From.Run != "" {
		t.Next = s.From.Iteration + 1
	}
	f.lines[label] = [][]float64{f.line(label, t.Next)}
	for i := range min(f.foreign, t.Next) {
		f.lines[label][0][i] = math.NaN()
	}
	f.mu.Unlock()
	f.atOnce(1)
	err := f.iterations(ctx, t, label, s.Iterations)
	t.sweep.ended(ctx, t, err)
	f.atOnce(-1)
	if err != nil {
		return nil, err
	}
	return &TrainResult{Iterations: t.Next}, nil
}

// memoReader notes the memos of trials: the test environment gives children none.
type memoReader struct {
	interceptor.WorkerInterceptorBase
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
	f *field
}

func (m *memoReader) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &memoReader{f: m.f}
	in.WorkflowInboundInterceptorBase.Next = next
	return in
}

func (m *memoReader) Init(out interceptor.WorkflowOutboundInterceptor) error {
	m.WorkflowOutboundInterceptorBase.Next = out
	return m.WorkflowInboundInterceptorBase.Next.Init(m)
}

func (m *memoReader) ExecuteChildWorkflow(ctx workflow.Context, kind string, args ...any) workflow.ChildWorkflowFuture {
	of := workflow.GetChildWorkflowOptions(ctx).Memo[trialMemo].(TrialOf)
	m.f.mu.Lock()
	m.f.memos[of.Trial] = of
	m.f.mu.Unlock()
	return m.WorkflowOutboundInterceptorBase.Next.ExecuteChildWorkflow(ctx, kind, args...)
}

// atOnce counts the trials that run at once.
func (f *field) atOnce(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += more
	f.most = max(f.most, f.now)
}

func (f *field) iterations(ctx workflow.Context, t *train, label string, iterations int) error {
	if f.waits == label {
		t.wait.Wanted = "f00df00df00d"
		t.sweep.waits(ctx, t)
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return err
		}
		t.wait.Wanted = ""
	}
	if f.pauses == label {
		if f.begins {
			t.sweep.begun(ctx, t)
		}
		t.Paused, t.resting, t.Stuck = true, true, &Failing{Step: "Update: iteration 0", Count: 5, Error: "no room"}
		t.sweep.pauses(ctx, t)
		f.atOnce(-1)
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return err
		}
		t.resume()
		t.resting = false
		f.atOnce(1)
		t.sweep.pauses(ctx, t)
	}
	t.sweep.begun(ctx, t)
	for t.Next < iterations {
		if err := workflow.Sleep(ctx, f.pace(label)); err != nil {
			return err
		}
		if t.Next+1 == f.fail[label] {
			return temporal.NewNonRetryableApplicationError("the model is no model", activities.KindModelInvalid, nil)
		}
		if r, ok := f.rolls[label]; ok && t.Next == r[0] && t.Branch == 0 {
			t.Branch, t.Next = 1, r[1]
			f.mu.Lock()
			f.lines[label] = append(f.lines[label], slices.Clone(f.lines[label][0][:r[1]]))
			f.mu.Unlock()
		}
		t.Next++
		x := f.curve(label, t.Next)
		if t.Branch > 0 {
			x = f.back(label, t.Next)
		}
		f.mu.Lock()
		f.done[label] = t.Next
		f.lines[label][t.Branch] = append(f.lines[label][t.Branch], x)
		f.mu.Unlock()
		t.Metrics = activities.Metrics{"success/mean": canon.Float(x)}
		if f.deaf == nil || !f.deaf(label, t.Next) {
			t.sweep.committed(ctx, t, nil)
		}
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
