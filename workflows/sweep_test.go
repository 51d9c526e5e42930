package workflows

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

const grid = `{"base": BASE, "grid": {"update.epochs": [1, 2, 3]}, "seeds": [1, 2], "parallel": 2}`

func TestSweepRunsTrials(t *testing.T) {
	f := newField(t)
	f.waits = "update.epochs=2,seed=1"
	f.RegisterDelayedCallback(func() {
		p := f.table()
		require.Equal(t, SweepCounts{Trials: 6, Pending: 2, Running: 1, Waiting: 1, Done: 2}, p.Counts)
		require.Equal(t, sweep.Waiting, p.Rows[1].State)
		require.Equal(t, "f00df00df00d", p.Rows[1].Waiting)
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

// One trial makes a shared warm start while the others that share it wait.
func TestSweepMakesSharedOnce(t *testing.T) {
	f := newField(t)
	f.waits = "update.epochs=1,seed=1" // it makes the warm start, and has no device
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
