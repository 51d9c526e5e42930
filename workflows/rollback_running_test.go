package workflows

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// An iteration that was under way when the run went back, because it was paused or its
// device was lost, leaves nothing to the new branch: neither its rollout nor its
// update, nor what it had measured.
func TestRollbackAbandonsTheRunningIteration(t *testing.T) {
	for name, c := range map[string]struct {
		at      string // where iteration 3 is left
		disturb func(*play)
		again   bool // in a new history
	}{
		"paused after the rollout": {"Select", func(p *play) { p.send("pause") }, false},
		"paused after the update":  {"Update", func(p *play) { p.send("pause") }, false},
		"paused, a new history": {"Update", func(p *play) {
			p.send("pause")
			p.SetContinueAsNewSuggested(true)
		}, true},
		"its device is lost": {"Score", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := collapsing(t, -1, 0, collapse.Warn)
			s.plan.EvaluateEvery = 1
			lost, gone := func() {}, ""
			if c.disturb == nil {
				gone = "session-1"
				p.loseAt(c.at, 4)
				lost = p.hooks[c.at+" 4"]
				c.disturb = func(*play) { lost() }
			}
			p.when(c.at, 4, func() {
				require.NoError(t, p.send("roll-back", RollTo{Iteration: 1}).err)
				c.disturb(p)
			})
			p.RegisterDelayedCallback(func() { p.send("resume") }, 1<<40)
			p.train(nil)
			calls, commits := s.calls, s.commits
			if c.again {
				carry := carried(t, p)
				require.NotNil(t, carry.Current)
				next, q := collapsing(t, -1, 0, collapse.Warn)
				next.plan.EvaluateEvery = 1
				next.commits = slices.Clone(commits)
				q.RegisterDelayedCallback(func() { q.send("resume") }, 1<<40)
				q.train(carry)
				q.result()
				calls, commits = append(calls, next.calls...), next.commits
			} else {
				p.result()
			}
			require.Equal(t, [][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 2}, {1, 3}, {1, 4}}, places(commits))
			at := slices.IndexFunc(calls, func(c call) bool { return c.name == "Find" })
			var names []string
			for _, call := range calls[at:] {
				if call.queue == gone {
					continue // the activity of a lost session may begin late
				}
				names = append(names, call.name)
				if in, ok := call.input.(activities.RestoreInput); ok {
					require.Nil(t, in.Pending, "no update of the iteration that was left")
					require.Equal(t, commits[1].StateAfter, in.Version.State)
				}
			}
			want := fields("Find Restore Generate Step Select Score Credit Update Generate Step Measure Commit")
			require.Equal(t, want, names[:len(want)])
			first := commits[3]
			require.Equal(t, commits[1].StateAfter, first.StateBefore)
			require.Len(t, first.Turns, 1)
			require.Len(t, first.Evaluations, 1)
			require.Equal(t, 3, first.Evaluations[0].Version)
			require.Zero(t, first.Lost, "the device was lost in another iteration")
			require.Equal(t, 2, first.Opened.Iteration, "the run was at its last committed iteration")
		})
	}
}
