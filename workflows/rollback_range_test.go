package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// A run rolls back only to committed iterations: not to the running one, not even during
// its commit, and not to one that never existed.
func TestRollbackToCommittedIterationsOnly(t *testing.T) {
	for _, c := range []struct {
		at   string // when it is sent
		n    int
		to   int
		says string // empty: it is accepted
	}{
		{"Generate", 1, 0, "iteration 0 is not committed in this run: none is yet"},
		{"Generate", 3, 2, "iteration 2 is not committed in this run; committed are 0 to 1"},
		{"Update", 3, 2, "iteration 2 is not committed in this run; committed are 0 to 1"},
		{"Snapshot", 1, 1, "iteration 1 is not committed in this run; committed are 0 to 0"},
		{"Commit", 3, 2, "iteration 2 is not committed in this run; committed are 0 to 1"},
		{"Commit", 3, 3, "iteration 3 is not committed in this run; committed are 0 to 1"},
		{"Update", 3, -1, "iteration -1 is not committed in this run; committed are 0 to 1"},
		{"Generate", 3, 1, ""},
		{"Commit", 3, 1, ""},
		{"Update", 3, 0, ""},
	} {
		s, p := collapsing(t, -1, 0, collapse.Warn)
		var a *answer
		p.when(c.at, c.n, func() { a = p.send("roll-back", RollTo{Iteration: c.to}) })
		p.train(nil)
		p.result()
		last := s.commits[len(s.commits)-1]
		if c.says != "" {
			require.False(t, a.accepted, c)
			require.EqualError(t, a.err, c.says)
			require.Len(t, s.commits, 5, "the run goes on as if nobody had asked")
			require.Zero(t, last.Branch)
			require.Zero(t, s.counts["Find"])
			continue
		}
		require.NoError(t, a.err, c)
		require.Equal(t, 1, last.Branch, c)
		require.Equal(t, [2]int{1, c.to + 1}, places(s.commits)[3], c)
	}
}

// In a forked run the fork point is the earliest iteration to roll back to.
func TestRollbackRangeBehindAnotherRun(t *testing.T) {
	for to, says := range map[int]string{
		1: "iteration 1 is not committed in this run; committed are 3 to 3",
		2: "",
		3: "",
		4: "iteration 4 is not committed in this run; committed are 3 to 3",
	} {
		s, p := collapsing(t, -1, 0, collapse.Warn)
		s.plan.Iterations, s.plan.First = 6, 3
		s.from = &activities.Head{
			Manifest: ref("manifest", "other"), Iteration: 2, State: "s3", Fingerprint: testPrint, Base: ref("base"), Settings: s.plan.Settings, Snapshot: 2,
		}
		s.theirs = s.from
		var a *answer
		p.when("Update", 2, func() { a = p.send("roll-back", RollTo{Iteration: to}) })
		p.train(nil)
		p.result()
		if says != "" {
			require.False(t, a.accepted)
			require.EqualError(t, a.err, says)
			require.Equal(t, [][2]int{{0, 3}, {0, 4}, {0, 5}}, places(s.commits))
			continue
		}
		require.NoError(t, a.err)
		require.Equal(t, [2]int{1, to + 1}, places(s.commits)[2])
	}
}

// One roll-back at a time: until it is done there is no other.
func TestRollbackWhileOneIsDecided(t *testing.T) {
	s, p := collapsing(t, -1, 0, collapse.Warn)
	var first, second *answer
	p.when("Generate", 4, func() { first = p.send("roll-back", RollTo{Iteration: 1}) })
	p.when("Update", 4, func() { second = p.send("roll-back", RollTo{Iteration: 0}) })
	p.train(nil)
	p.result()
	require.NoError(t, first.err)
	require.False(t, second.accepted)
	require.EqualError(t, second.err, "the run is about to go back to iteration 1 already")
	require.Equal(t, [][2]int{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {1, 4}}, places(s.commits))
}
