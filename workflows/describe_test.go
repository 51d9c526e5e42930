package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/collapse"
)

// A run that is not paused takes a new description too, in the branch of a rollback. The request goes along into the next
// history. A rollback from there to an iteration of the description before says that it has another one.
func TestDescribedWhileItRuns(t *testing.T) {
	s, p := collapsing(t, -1, 0, collapse.Warn)
	s.plan.Foreign = true
	p.when("Update", 2, func() {
		s.mu.Lock()
		s.description = "wider"
		s.mu.Unlock()
		p.send("roll-back", RollBack{Iteration: 0, Describe: true})
		p.SetContinueAsNewSuggested(true)
	})
	p.train(nil)
	carry := carried(t, p)
	require.NotNil(t, carry.RollTo)
	require.Equal(t, new(specOf("wider")), carry.RollTo.Spec)
	require.Equal(t, specOf(""), carry.Run.Spec, "until the branch begins")

	next, q := collapsing(t, -1, 0, collapse.Warn)
	next.plan.Foreign, next.description, next.commits = true, "wider", s.commits
	q.when("Update", 2, func() { require.NoError(t, q.send("roll-back", RollBack{Iteration: 0}).err) })
	q.train(carry)
	q.result()
	require.Equal(t, [2]int{1, 1}, places(next.commits)[len(s.commits)])
	first := next.commits[len(s.commits)]
	require.Equal(t, specOf("wider"), first.Run.Spec)
	require.Equal(t, specOf("").Digest, first.Opened.Spec)
	for _, c := range next.commits[len(s.commits):] {
		require.Equal(t, specOf("wider"), c.Run.Spec)
		if c.Branch == 2 && c.Opened != nil {
			require.Equal(t, specOf("").Digest, c.Opened.Spec)
			require.Equal(t, 1, c.Iteration)
			return
		}
	}
	require.Fail(t, "there is no second branch")
}

// An environment that describes itself as it did leaves the spec alone.
func TestDescribedAsBefore(t *testing.T) {
	s, p := collapsing(t, -1, 0, collapse.Warn)
	s.plan.Foreign = true
	p.when("Update", 2, func() { p.send("roll-back", RollBack{Iteration: 0, Describe: true}) })
	p.train(nil)
	p.result()
	branches := map[int]bool{}
	for _, c := range s.commits {
		branches[c.Branch] = true
		require.Equal(t, specOf(""), c.Run.Spec)
		require.True(t, c.Opened == nil || c.Opened.Spec == "")
	}
	require.True(t, branches[1])
}
