package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// With a lag, each iteration makes the next one's rollout before its update, also where the workflow
// is started again in between. A knob that changes then counts from the iteration after the next one,
// whose rollout has begun.
func TestLag(t *testing.T) {
	var commits []activities.CommitInput
	var names []string
	var carry *Carry
	for n := range 4 {
		s := &stage{plan: testPlan(), base: true}
		s.plan.Iterations, s.plan.EvaluateEvery, s.plan.Lag = 4, 0, 1
		p := newPlay(t, s)
		p.w.ContinueAfter = 1
		p.train(carry)
		commits, names = append(commits, s.commits...), append(names, s.names()...)
		if n == 3 {
			break
		}
		carry = carried(t, p)
		require.NotNil(t, carry.Head.NextRollout)
		if n == 0 {
			carry.Settings.Selection.Keep = 0.5 // a knob was turned
		}
	}
	require.Len(t, commits, 4)
	before := testPlan().Settings.Selection.Keep
	for n, c := range commits {
		require.Equal(t, n < 3, c.NextRollout != nil, "iteration %d", n)
		if n == 0 {
			require.Nil(t, c.RolledOutBy)
			continue
		}
		require.Equal(t, &store.VersionRef{Version: n - 1, State: commits[n-1].StateBefore}, c.RolledOutBy)
		require.Equal(t, commits[n-1].NextRollout.Turns, c.Turns)
		require.Equal(t, map[bool]float64{true: before, false: 0.5}[n == 1], c.Settings.Selection.Keep, "iteration %d", n)
	}
	require.Len(t, only(names, "Generate"), 4)
}

// A branch begins with a rollout of its own: the one that was made for the iteration that is given up
// is left behind.
func TestLagAfterARollback(t *testing.T) {
	s, p := collapsing(t, 2, 1, collapse.RollBack)
	s.plan.Lag = 1
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, [][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 2}, {1, 3}, {1, 4}}, places(s.commits))
	require.NotNil(t, s.commits[2].NextRollout)
	first := s.commits[3]
	require.Nil(t, first.RolledOutBy)
	require.NotEqual(t, s.commits[2].Turns, first.Turns)
	require.NotEqual(t, s.commits[1].NextRollout.Turns, first.Turns)
	require.Equal(t, first.NextRollout.Turns, s.commits[4].Turns)
}
