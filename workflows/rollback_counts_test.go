package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// watchOf is what the rule about the gradient's norm knows.
func watchOf(t *testing.T, s collapse.State) collapse.Watch {
	t.Helper()
	for _, w := range s.Watches {
		if w.Rule == collapse.GradNorm {
			return w
		}
	}
	t.Fatalf("rule %s has seen nothing", collapse.GradNorm)
	return collapse.Watch{}
}

// normed is a run of six iterations with the gradient norms given by branch and
// iteration; two that depart in a row are an event.
func normed(t *testing.T, norms ...[]float64) (*stage, *play) {
	t.Helper()
	s, p := collapsing(t, -1, 0, collapse.Warn)
	s.plan.Iterations = 6
	s.plan.Collapse.WarmUp, s.plan.Collapse.GradNorm.Iterations = 1, 2
	s.gradNorm = func(branch, iteration int) float64 { return norms[branch][iteration] }
	return s, p
}

// eventsOf are the iterations of a branch in which an event was seen.
func eventsOf(commits []activities.CommitInput, branch int) (out []int) {
	for _, c := range commits {
		if c.Branch == branch && len(c.Detected.Events) > 0 {
			out = append(out, c.Iteration)
		}
	}
	return out
}

// A new branch counts from the start. A departure at the fork point is not the first of a
// row on the branch. An event that was made there is made again if the branch has its own
// reason. The learned levels stay.
func TestRollbackBeginsCountsAnew(t *testing.T) {
	const high = 100
	for name, c := range map[string]struct {
		norms   [2][]float64
		to      int // the fork point, gone back to during the iteration after it
		row     int // of the watch there
		fired   bool
		of, own []int // the iterations with an event, on each branch
	}{
		"one short of its event": {
			norms: [2][]float64{{1, high, 1}, {0, 0, high, 1, high, high}}, to: 1, row: 1, own: []int{5},
		},
		"an event that was made": {
			norms: [2][]float64{{1, high, high, 1}, {0, 0, 0, high, high, 1}}, to: 2, row: 2, fired: true, of: []int{2}, own: []int{4},
		},
		"nothing pending": {
			norms: [2][]float64{{1, 1, high}, {0, 0, high, high, 1, 1}}, to: 1, own: []int{3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := normed(t, c.norms[:]...)
			p.when("Generate", c.to+2, func() { p.send("roll-back", RollTo{Iteration: c.to}) })
			p.train(nil)
			p.result()
			fork, left, first := s.commits[c.to], s.commits[c.to+1], s.commits[c.to+2]
			require.Equal(t, [2]int{1, c.to + 1}, places(s.commits)[c.to+2])
			there := watchOf(t, fork.Detected.State)
			require.Equal(t, c.row, there.Row, "the fork point")
			require.Equal(t, c.fired, there.Fired, "the fork point")

			opened := first.Opened.Detected.State
			require.Equal(t, c.to, *opened.Newest)
			w := watchOf(t, opened)
			require.Equal(t, collapse.Watch{Rule: there.Rule, Seen: there.Seen, Level: there.Level, Average: there.Average, Good: c.to}, w)
			require.Empty(t, first.Opened.Detected.Events)
			require.NotEqual(t, watchOf(t, left.Detected.State), w, "not what was known where it left")
			require.Equal(t, c.of, eventsOf(s.commits, 0))
			require.Equal(t, c.own, eventsOf(s.commits, 1))
		})
	}
}
