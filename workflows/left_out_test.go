package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/iteration"
)

// Train does what the order of an iteration has, and nothing on its own: a run whose
// order lacks a part fails before its first commit, and the error names the part.
func TestTrainLeftOut(t *testing.T) {
	for _, part := range iteration.Parts() {
		t.Run(part, func(t *testing.T) {
			t.Cleanup(iteration.Without(part))
			s := everything()
			s.plan.Iterations = 1 // so that its snapshot and its evaluation are due
			p := newPlay(t, s)
			p.train(nil)
			require.ErrorContains(t, p.GetWorkflowError(), "cannot be completed: no step is left that does "+part)
			require.Contains(t, p.status().Phase, "ended: iteration 0 of run "+testRun)
			require.Empty(t, s.commits)
			require.Equal(t, p.opened, p.closed, "the device was given back")
		})
	}
}
