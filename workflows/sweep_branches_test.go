package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// A trial's curve ends where its reports continue on another branch, even if the versions
// follow each other because reports between were lost. The trial was rolled back and did
// other iterations, and its point is read from the store.
func TestSweepHearsAnotherBranch(t *testing.T) {
	const back = "update.epochs=2"
	text := strings.Replace(judgedEarly, "BASE", strings.Replace(sweepBase, `"iterations": 4`, `"iterations": 8`, 1), 1)
	text = strings.Replace(text, `"first": 3, "every": 3`, `"first": 6, "every": 3`, 1)
	for name, c := range map[string]struct {
		heard  int // the last version that was reported of branch 0
		branch int // of version 6
		read   bool
	}{
		"it went back":             {5, 1, true},
		"it went back twice":       {5, 2, true},
		"it stayed on its branch":  {5, 0, false},
		"a version is missing too": {4, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newField(t)
			f.OnRequestCancelExternalWorkflow(mock.Anything, mock.Anything, mock.Anything).Return(nil)
			f.curve = func(string, int) float64 { return 0.5 }
			low := []float64{0.1, 0.1, 0.1, 0.1, 0.1}
			curve := func(n int, x float64) sweep.Curve {
				return sweep.Curve{N: n, Sum: canon.Float(float64(n) * x), Best: canon.Float(x), Last: canon.Float(x)}
			}
			carry := &SweepCarry{Written: f.written(text), Parallel: 2, Records: []activities.TrialRecord{
				{Index: 0, State: sweep.Running, Begun: true, Iterations: 5, Whole: true, Curve: curve(5, 0.5)},
				{Index: 1, State: sweep.Running, Begun: true, Iterations: c.heard, Whole: true, Curve: curve(c.heard, 0.1)},
			}}
			f.found = map[string]activities.Found{"update.epochs=1": {State: sweep.Running, Sweep: testSweep}, back: {State: sweep.Running, Sweep: testSweep}}
			f.done = map[string]int{"update.epochs=1": 8, back: 8}
			// On the branch it was best in the iterations that nobody reported.
			f.lines[back] = [][]float64{low, {0.1, 0.1, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1}}
			if c.branch == 0 {
				f.lines[back] = [][]float64{{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}}
			}
			say := func(label string, version, branch int, x float64, end *TrialEnd) {
				f.SignalWorkflow(TrialSignal, TrialReport{Trial: label, Ended: end, Committed: []TrialIteration{
					{Version: version, Branch: branch, Metrics: activities.Metrics{"success/mean": canon.Float(x)}},
				}})
			}
			f.RegisterDelayedCallback(func() {
				say("update.epochs=1", 6, 0, 0.5, nil)
				say(back, 6, c.branch, 0.1, nil)
			}, 2*time.Second)
			f.RegisterDelayedCallback(func() {
				if c.read {
					require.Equal(t, []int{1}, f.read, "the point of the one that went back is the store's")
				} else {
					require.Empty(t, f.read, "its curve is whole")
				}
				say("update.epochs=1", 8, 0, 0.5, &TrialEnd{State: sweep.Done})
				say(back, 8, c.branch, 0.1, &TrialEnd{State: sweep.Done})
			}, 4*time.Second)
			f.sweep(text, carry)
			f.succeeded()
			want := map[bool]string{true: "done 8", false: "stopped 6"}[c.read]
			require.Equal(t, []string{"done 8", want}, f.states())
		})
	}
}

// A curve begins with a trial's first iteration on its first branch: the same version
// of another branch is none.
func TestSweepCurveBeginsOnTheFirstBranch(t *testing.T) {
	for branch, whole := range map[int]bool{0: true, 1: false} {
		s := &sweeping{definition: sweep.Definition{Metrics: []string{"success/mean"}}}
		tr := &trial{of: sweep.Trial{Before: 2}}
		s.follow(tr, TrialIteration{Version: 3, Branch: branch, Metrics: activities.Metrics{"success/mean": 0.5}})
		require.Equal(t, whole, tr.Whole, "branch %d", branch)
		tr.Branch, tr.Iterations = branch, 3
		s.follow(tr, TrialIteration{Version: 4, Branch: branch, Metrics: activities.Metrics{"success/mean": 0.5}})
		require.Equal(t, whole, tr.Whole, "branch %d", branch)
	}
}
