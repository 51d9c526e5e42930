package telemetry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	table "github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
)

// calls are an iteration's activities, what they were asked and what they answer.
type call struct {
	kind       string
	in, answer any
}

func run(id string) activities.Run { return activities.Run{ID: id} }

func version(id string) activities.Version { return activities.Version{Run: run(id)} }

func seconds(s float64) activities.Telemetry { return activities.Telemetry{Seconds: s} }

var apart = activities.Rollout{Evaluation: &activities.EvaluationOf{Suite: "own"}}

func iterationOf(id string) []call {
	return []call{
		{"Resolve", activities.ResolveInput{Run: id}, activities.ResolveResult{}},
		{"WarmStart", activities.WarmStartInput{Run: id}, activities.WarmStartResult{Telemetry: activities.Telemetry{Seconds: 1, Tokens: 7}}},
		{"Restore", activities.RestoreInput{Version: version(id)}, activities.RestoreResult{Telemetry: activities.Telemetry{Seconds: 3, LoadSeconds: 1, CompileSeconds: 1.5, CachedSeconds: 0.25, Recomputed: 2}}},
		{"Generate", activities.GenerateInput{Policy: version(id)}, activities.GenerateResult{Telemetry: activities.Telemetry{Seconds: 2, WaitSeconds: 0.5, Tokens: 100}}},
		{"Step", activities.StepInput{Run: run(id)}, activities.StepResult{Telemetry: seconds(0.1)}},
		{"Select", activities.SelectInput{Run: run(id)}, activities.SelectResult{Telemetry: seconds(0.2)}},
		{"Score", activities.ScoreInput{Policy: version(id)}, activities.ScoreResult{Telemetry: activities.Telemetry{Seconds: 1, Tokens: 60}}},
		{"Credit", activities.CreditInput{Run: run(id)}, activities.CreditResult{Telemetry: seconds(0.3)}},
		{"Update", activities.UpdateInput{Policy: version(id)}, activities.UpdateResult{Telemetry: activities.Telemetry{Seconds: 4, Tokens: 80}}},
		{"Snapshot", activities.SnapshotInput{Policy: version(id)}, activities.SnapshotResult{Telemetry: seconds(0.4)}},
		{"Generate", activities.GenerateInput{Policy: version(id), Rollout: apart}, activities.GenerateResult{Telemetry: activities.Telemetry{Seconds: 0.5, Tokens: 50}}},
		{"Step", activities.StepInput{Run: run(id), Rollout: apart}, activities.StepResult{Telemetry: seconds(0.5)}},
		{"Measure", activities.MeasureInput{Run: run(id), Rollout: apart}, activities.MeasureResult{Telemetry: seconds(0.5)}},
		{"Commit", activities.CommitInput{
			Run: run(id), Branch: 1, Iteration: 12,
			Metrics:     activities.Metrics{"reward/mean": 0.25, "actor/entropy": canon.Float(math.NaN()), "not/told": 1},
			Evaluations: []store.EvaluationRef{{Suite: "own", Metrics: map[string]canon.Float{"success/mean": 0.75}}},
		}, activities.CommitResult{Telemetry: seconds(0.6)}},
	}
}

// A credit that was part of a selection is a step of its own in the figures.
func TestCreditOfASelection(t *testing.T) {
	m := New(Options{Runs: 1})
	credited := activities.CreditResult{Telemetry: seconds(0.3)}
	do(t, m, call{"Select", activities.SelectInput{Run: run("r")}, activities.SelectResult{Credited: &credited, Telemetry: seconds(0.2)}})
	got := scrape(t, m)
	require.Equal(t, []float64{0.2, 0.3}, []float64{got[`reprise_step_seconds_sum{step="select"}`], got[`reprise_step_seconds_sum{step="credit"}`]})
}

// A device's work is exported: the step, its seconds, and the run.
func TestEveryStepOfADevice(t *testing.T) {
	device := reflect.TypeFor[*device.Device]()
	for i := range device.NumMethod() {
		m := device.Method(i)
		if m.Name == "Describe" || m.Name == "Steps" || m.Name == "HelperSteps" { // no step of a run
			continue
		}
		require.Contains(t, steps, m.Name)
		require.Contains(t, onDevice, m.Name)
		_, ok := activities.TelemetryOf(reflect.Zero(m.Type.Out(0)).Interface())
		require.True(t, ok, m.Name)
		in := reflect.New(m.Type.In(2)).Elem()
		for _, path := range [][]string{{"Policy", "Run"}, {"Version", "Run"}} {
			if f := in.FieldByName(path[0]); f.IsValid() {
				f.FieldByName(path[1]).FieldByName("ID").SetString("r")
			}
		}
		if f := in.FieldByName("Run"); f.IsValid() && f.Kind() == reflect.String {
			f.SetString("r")
		} else if f.IsValid() {
			f.FieldByName("ID").SetString("r")
		}
		require.Equal(t, "r", holder([]any{in.Interface()}), m.Name)
	}
}

// do has an activity environment do the calls.
func do(t *testing.T, m *Metrics, calls ...call) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{m.Interceptor()}})
	var answer any
	register := func(kind string, f any) { env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: kind}) }
	register("Resolve", func(context.Context, activities.ResolveInput) (activities.ResolveResult, error) {
		return as[activities.ResolveResult](answer)
	})
	register("WarmStart", func(context.Context, activities.WarmStartInput) (activities.WarmStartResult, error) {
		return as[activities.WarmStartResult](answer)
	})
	register("Restore", func(context.Context, activities.RestoreInput) (activities.RestoreResult, error) {
		return as[activities.RestoreResult](answer)
	})
	register("Generate", func(context.Context, activities.GenerateInput) (activities.GenerateResult, error) {
		return as[activities.GenerateResult](answer)
	})
	register("Step", func(context.Context, activities.StepInput) (activities.StepResult, error) {
		return as[activities.StepResult](answer)
	})
	register("Select", func(context.Context, activities.SelectInput) (activities.SelectResult, error) {
		return as[activities.SelectResult](answer)
	})
	register("Score", func(context.Context, activities.ScoreInput) (activities.ScoreResult, error) {
		return as[activities.ScoreResult](answer)
	})
	register("Credit", func(context.Context, activities.CreditInput) (activities.CreditResult, error) {
		return as[activities.CreditResult](answer)
	})
	register("Update", func(context.Context, activities.UpdateInput) (activities.UpdateResult, error) {
		return as[activities.UpdateResult](answer)
	})
	register("Snapshot", func(context.Context, activities.SnapshotInput) (activities.SnapshotResult, error) {
		return as[activities.SnapshotResult](answer)
	})
	register("Measure", func(context.Context, activities.MeasureInput) (activities.MeasureResult, error) {
		return as[activities.MeasureResult](answer)
	})
	register("Commit", func(context.Context, activities.CommitInput) (activities.CommitResult, error) {
		return as[activities.CommitResult](answer)
	})
	register("internalSessionCreationActivity", func(context.Context) error { return nil })
	for _, c := range calls {
		answer = c.answer
		arguments := []any{c.in}
		if c.in == nil {
			arguments = nil
		}
		_, err := env.ExecuteActivity(c.kind, arguments...)
		if _, failing := c.answer.(error); !failing {
			require.NoError(t, err, c.kind)
		}
	}
}

// as answers what a call says, an error or a result.
func as[R any](answer any) (R, error) {
	var none R
	if err, ok := answer.(error); ok {
		return none, err
	}
	return answer.(R), nil
}

// tellDevice tells of a worker with two devices.
func tellDevice(m *Metrics) {
	m.Rewritten()
	m.Open(&OpenRuns{Waiting: map[string]int{"": 1, "cpu-1": 2}, Workers: map[string]int{"cpu-1": 1, "gpu-1": 0}, Paused: 3, Resting: 5, Going: 4})
	m.Device("cpu-1", func() model.Built {
		return model.Built{Compiled: 2, Loaded: 10, Fetched: 4, CacheFaults: 1, Unsigned: 3}
	},
		func() []time.Duration { return []time.Duration{2 * time.Second, 1500 * time.Millisecond} })
}

func TestIteration(t *testing.T) {
	m := New(Options{Runs: 1})
	tellDevice(m)
	do(t, m, append(iterationOf("r"), call{"internalSessionCreationActivity", nil, nil})...)
	got := scrape(t, m)
	for series, want := range map[string]float64{
		`reprise_device_info{fingerprint="cpu-1"}`:                       1,
		`reprise_waiting_runs{fingerprint="unknown"}`:                    1,
		`reprise_waiting_runs{fingerprint="cpu-1"}`:                      2,
		`reprise_waiting_runs{fingerprint="gpu-1"}`:                      0,
		`reprise_open_runs{state="waiting"}`:                             3,
		`reprise_open_runs{state="paused"}`:                              3,
		`reprise_open_runs{state="going"}`:                               4,
		`reprise_open_runs{state="resting"}`:                             5,
		`reprise_device_workers{fingerprint="cpu-1"}`:                    1,
		`reprise_device_workers{fingerprint="gpu-1"}`:                    0,
		`reprise_lease_info{run="r"}`:                                    1,
		`reprise_iterations_total`:                                       1,
		`reprise_iteration{run="r"}`:                                     12,
		`reprise_branch{run="r"}`:                                        1,
		`reprise_reward_mean{run="r"}`:                                   0.25,
		`reprise_evaluation_success_ratio{run="r",suite="own"}`:          0.75,
		`reprise_recomputed_updates_total`:                               2,
		`reprise_step_seconds_sum{step="generate"}`:                      2,
		`reprise_step_seconds_sum{step="step"}`:                          0.1,
		`reprise_step_seconds_sum{step="select"}`:                        0.2,
		`reprise_step_seconds_sum{step="score"}`:                         1,
		`reprise_step_seconds_sum{step="credit"}`:                        0.3,
		`reprise_step_seconds_sum{step="update"}`:                        4,
		`reprise_step_seconds_sum{step="snapshot"}`:                      0.4,
		`reprise_step_seconds_sum{step="commit"}`:                        0.6,
		`reprise_step_seconds_sum{step="evaluate"}`:                      1.5,
		`reprise_step_seconds_count{step="evaluate"}`:                    3,
		`reprise_step_seconds_sum{step="restore"}`:                       3,
		`reprise_step_seconds_sum{step="warm_start"}`:                    1,
		`reprise_step_seconds_count{step="resolve"}`:                     1,
		`reprise_step_part_seconds_total{part="wait",step="generate"}`:   0.5,
		`reprise_step_part_seconds_total{part="load",step="restore"}`:    1,
		`reprise_step_part_seconds_total{part="compile",step="restore"}`: 1.25,
		`reprise_step_part_seconds_total{part="cached",step="restore"}`:  0.25,
		`reprise_programs_total{from="compiler"}`:                        2,
		`reprise_programs_total{from="cache"}`:                           6,
		`reprise_programs_total{from="bucket"}`:                          4,
		`reprise_program_cache_unsigned_total`:                           3,
		`reprise_rewritten_objects_total`:                                1,
		`reprise_program_cache_faults_total`:                             1,
		`reprise_device_busy_seconds_total{device="0"}`:                  2,
		`reprise_device_busy_seconds_total{device="1"}`:                  1.5,
		`reprise_tokens_total{kind="generated"}`:                         100,
		`reprise_tokens_total{kind="evaluated"}`:                         50,
		`reprise_tokens_total{kind="scored"}`:                            60,
		`reprise_tokens_total{kind="trained"}`:                           80,
		`reprise_tokens_total{kind="taught"}`:                            7,
		`reprise_tokens_per_second{kind="generated"}`:                    50,
		`reprise_tokens_per_second{kind="trained"}`:                      20,
		`reprise_running{step="update"}`:                                 0,
		`reprise_lost_seconds_total{cause="attempt"}`:                    0,
		`reprise_lost_seconds_total{cause="device"}`:                     0,
	} {
		require.Contains(t, got, series)
		require.Equal(t, want, got[series], series)
	}
	require.True(t, math.IsNaN(got[`reprise_entropy_nats{run="r"}`]), "what is not finite is told as it is")
	for series := range got {
		require.NotContains(t, series, "internalSession")
		require.NotContains(t, series, `step="other"`)
	}
}

// What the server does not say is not told, rather than what it said before.
func TestOpenRunsAreForgotten(t *testing.T) {
	m := New(Options{})
	m.Open(&OpenRuns{Waiting: map[string]int{"f1": 1}, Workers: map[string]int{"f1": 1}})
	m.Open(&OpenRuns{Waiting: map[string]int{"f2": 1}, Workers: map[string]int{"f2": 1}})
	require.NotContains(t, scrape(t, m), `reprise_waiting_runs{fingerprint="f1"}`)
	m.Open(nil)
	for series := range scrape(t, m) {
		require.NotRegexp(t, "waiting_runs|open_runs|device_workers", series)
	}
}

// TestRunsAreBounded: however many runs a worker sees, so many are named.
func TestRunsAreBounded(t *testing.T) {
	named := func(m *Metrics, metric string) (out []string) {
		for i := 9; i >= 0; i-- {
			if _, ok := scrape(t, m)[fmt.Sprintf("%s{run=\"r%d\"}", metric, i)]; ok {
				out = append(out, fmt.Sprint("r", i))
			}
		}
		return out
	}
	for _, c := range []struct {
		runs          int
		figures, held []string
	}{
		{1, []string{"r9"}, []string{"r9"}},
		{3, []string{"r9", "r8", "r7"}, []string{"r9"}},
		{0, nil, nil},
	} {
		m := New(Options{Runs: c.runs})
		for i := range 10 {
			do(t, m, iterationOf(fmt.Sprint("r", i))...)
		}
		for _, metric := range []string{"reprise_iteration", "reprise_branch", "reprise_reward_mean"} {
			require.Equal(t, c.figures, named(m, metric), "%d %s", c.runs, metric)
		}
		require.Equal(t, c.held, named(m, "reprise_lease_info"))
		got := scrape(t, m)
		require.Equal(t, 10.0, got["reprise_iterations_total"])
		count := 0
		for series := range got {
			if strings.HasPrefix(series, "reprise_evaluation_success_ratio") {
				count++
			}
		}
		require.Equal(t, max(1, c.runs), count)
		if c.runs == 0 {
			require.Equal(t, 0.25, got[`reprise_reward_mean{run=""}`])
		}
	}
	r := &recent{most: 2}
	for _, id := range []string{"a", "b", "a"} {
		_, gone := r.see(id)
		require.Empty(t, gone)
	}
	_, gone := r.see("c")
	require.Equal(t, []string{"b"}, gone, "the one that was seen least recently")
}

func TestFailures(t *testing.T) {
	m := New(Options{})
	for _, err := range []error{
		temporal.NewNonRetryableApplicationError("x", activities.KindDivergence, nil),
		temporal.NewApplicationError("x", "StoreUnavailable"),
		temporal.NewApplicationError("x", "a kind that anybody could make up"),
		errors.New("x"),
		context.Canceled,
	} {
		do(t, m, call{"Commit", activities.CommitInput{}, err})
	}
	got := scrape(t, m)
	require.Equal(t, 1.0, got[`reprise_failures_total{kind="Divergence",step="commit"}`])
	require.Equal(t, 1.0, got[`reprise_failures_total{kind="StoreUnavailable",step="commit"}`])
	require.Equal(t, 2.0, got[`reprise_failures_total{kind="other",step="commit"}`])
	require.Equal(t, 1.0, got[`reprise_failures_total{kind="Cancelled",step="commit"}`])
	require.Zero(t, got["reprise_iterations_total"])
	require.Equal(t, "Timeout", failureOf(fmt.Errorf("x: %w", context.DeadlineExceeded)))
	require.Equal(t, "Cancelled", failureOf(temporal.NewCanceledError()))
}

// TestLost: a workflow continues after an activity that failed for good 4 s after it was
// scheduled, and after one that works at the third attempt.
func TestLost(t *testing.T) {
	m := New(Options{})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{m.Interceptor()}})
	failing := map[string]int{"Update": 3, "Commit": 2, "Describe": 1, table.SessionOpens: 0, table.SessionEnds: 0}
	for kind := range failing {
		env.RegisterActivityWithOptions(func(context.Context) error {
			if failing[kind] > 0 {
				failing[kind]--
				return errors.New("away")
			}
			return nil
		}, activity.RegisterOptions{Name: kind})
	}
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{InitialInterval: 2 * time.Second, BackoffCoefficient: 1, MaximumAttempts: 3},
		})
		once := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		})
		_ = workflow.ExecuteActivity(once, table.SessionOpens).Get(ctx, nil) // lost work
		_ = workflow.ExecuteActivity(once, table.SessionOpens).Get(ctx, nil)
		if err := workflow.ExecuteActivity(ctx, "Update").Get(ctx, nil); err == nil {
			return errors.New("the device was not lost")
		}
		_ = workflow.ExecuteActivity(once, "Describe").Get(ctx, nil)
		for _, kind := range []string{table.SessionOpens, "Update", "Commit", table.SessionEnds, table.SessionOpens, "Update", table.SessionEnds} {
			if err := workflow.ExecuteActivity(ctx, kind).Get(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	got := scrape(t, m)
	require.InDelta(t, 4, got[`reprise_lost_seconds_total{cause="device"}`], 0.5)
	require.Equal(t, 1.0, got["reprise_lost_devices_total"], "one was not given back")
	require.Equal(t, 2.0, got[`reprise_retries_total{step="commit"}`])
	require.Equal(t, 2.0, got[`reprise_retries_total{step="update"}`])
	require.Equal(t, 2.0, got[`reprise_failures_total{kind="other",step="commit"}`])
	require.Equal(t, 1.0, got[`reprise_step_seconds_count{step="commit"}`])
}
