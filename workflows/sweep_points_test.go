package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// judgedEarly is a sweep in which early iterations count: of each trial the best is
// judged against the means of those before it.
const judgedEarly = `{"base": BASE, "grid": {"update.epochs": [1, 2]}, "parallel": 2, "metrics": ["success/mean"],
	"early_stopping": {"method": "median", "first": 3, "every": 3, "min_trials": 1}}`

// early is best at the beginning: whoever hears only what comes later thinks worse
// of it.
func early(label string, version int) float64 {
	if label == "update.epochs=2" && version == 1 {
		return 0.9
	}
	return map[string]float64{"update.epochs=1": 0.5, "update.epochs=2": 0.1}[label]
}

// However a trial's points come, the decisions about it and about the trials after it are
// the same.
func TestSweepDecidesByWholeCurves(t *testing.T) {
	play := func(disturb func(*field)) []string {
		f := newField(t)
		f.curve = early
		disturb(f)
		f.sweep(judgedEarly, nil)
		f.succeeded()
		return f.states()
	}
	whole := []string{"done 4", "done 4"}
	require.Equal(t, whole, play(func(*field) {}))
	require.Equal(t, whole, play(func(f *field) {
		f.done = map[string]int{"update.epochs=1": 2, "update.epochs=2": 2} // and was cancelled there
	}), "a sweep that is started again")
	require.Equal(t, whole, play(func(f *field) {
		f.deaf = func(label string, version int) bool { return label == "update.epochs=2" && version == 1 }
	}), "a report that was lost")

	// The trial before it is rolled back after the rung: it counts as it first was there,
	// whether or not it is open when it is compared with.
	worse := func(f *field) {
		f.curve = func(label string, _ int) float64 {
			return map[string]float64{"update.epochs=1": 0.5, "update.epochs=2": 0.4}[label]
		}
	}
	stopped := []string{"done 4", "stopped 3"}
	require.Equal(t, stopped, play(worse))
	for name, slow := range map[string]string{"it is open": "update.epochs=1", "it has ended": "update.epochs=2"} {
		require.Equal(t, stopped, play(func(f *field) {
			worse(f)
			f.rolls = map[string][2]int{"update.epochs=1": {3, 1}}
			f.back = func(string, int) float64 { return 0.1 }
			f.pace = func(label string) time.Duration {
				return map[bool]time.Duration{true: 10 * time.Second, false: time.Second}[label == slow]
			}
		}), name)
	}
	// One that is judged is judged by what it first was there, too.
	require.Equal(t, stopped, play(func(f *field) {
		worse(f)
		f.rolls = map[string][2]int{"update.epochs=2": {3, 1}}
		f.back = func(string, int) float64 { return 0.9 }
		f.pace = func(label string) time.Duration {
			return map[bool]time.Duration{true: 10 * time.Second, false: time.Second}[label == "update.epochs=1"]
		}
	}))
	// It went back before the rung: the branch that gets there counts.
	require.Equal(t, whole, play(func(f *field) {
		worse(f)
		f.rolls = map[string][2]int{"update.epochs=2": {2, 1}}
		f.back = func(string, int) float64 { return 0.9 }
	}))
}

// Forked trials are judged at the rungs after the other run's iterations, by their own
// iterations, while they run.
func TestSweepJudgesTrialsFromAnotherRun(t *testing.T) {
	f := newField(t)
	f.foreign = 2
	f.curve = func(label string, _ int) float64 {
		return map[string]float64{"update.epochs=1": 0.5, "update.epochs=2": 0.1}[label]
	}
	text := strings.Replace(judgedEarly, "BASE", strings.Replace(sweepBase, `"iterations": 4`, `"iterations": 9, "from": {"run": "bandit-1", "iteration": 1}`, 1), 1)
	text = strings.Replace(text, `"first": 3, "every": 3`, `"first": 2, "every": 1`, 1)
	f.RegisterDelayedCallback(func() {
		require.Len(t, f.started, 2)
		require.Equal(t, sweep.Stopped, f.table().Rows[1].State, "it does not run to its end")
	}, 3500*time.Millisecond)
	f.sweep(text, nil)
	f.succeeded()
	require.Equal(t, []string{"done 9", "stopped 3"}, f.states())
	require.Less(t, f.done["update.epochs=2"], 9)
}

// The carried state says whether the curve is complete: if reports of a trial were lost
// between two executions, its points are read.
func TestSweepReadsPointsOfAdoptedTrials(t *testing.T) {
	f := newField(t)
	f.curve = early
	carry := &SweepCarry{Written: f.written(judgedEarly), Parallel: 2, Records: []activities.TrialRecord{
		{Index: 0, State: sweep.Running, Begun: true, Iterations: 2, Whole: true, Curve: sweep.Curve{N: 2, Sum: 1, Best: 0.5, Last: 0.5}},
		{Index: 1, State: sweep.Running, Begun: true},
	}}
	f.found = map[string]activities.Found{"update.epochs=1": {State: sweep.Running, Sweep: testSweep}, "update.epochs=2": {State: sweep.Running, Sweep: testSweep}}
	f.done = map[string]int{"update.epochs=1": 4, "update.epochs=2": 4}
	say := func(label string, end *TrialEnd, versions ...int) {
		r := TrialReport{Trial: label, Ended: end}
		for _, v := range versions {
			r.Committed = append(r.Committed, TrialIteration{Version: v, Metrics: activities.Metrics{"success/mean": canon.Float(f.curve(label, v))}})
		}
		f.SignalWorkflow(TrialSignal, r)
	}
	f.RegisterDelayedCallback(func() {
		say("update.epochs=1", nil, 3)
		say("update.epochs=2", nil, 2, 3) // the first was lost
	}, 2*time.Second)
	f.RegisterDelayedCallback(func() {
		require.Equal(t, []int{1}, f.read, "of the one whose curve is whole nothing is read")
		say("update.epochs=1", &TrialEnd{State: sweep.Done}, 4)
		say("update.epochs=2", &TrialEnd{State: sweep.Done}, 4)
	}, 4*time.Second)
	f.sweep(judgedEarly, carry)
	f.succeeded()
	require.Equal(t, []string{"done 4", "done 4"}, f.states())
}
