package workflows

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Iterations 0 and 1 learn from one rollout. A run that rolls back to iteration 0
// continues with a rollout of its own. The rest of the old branch's rollout was made by a
// policy with other knobs, and a branch learns only from what is on its chain. It is the
// same who asked for it, and where a new history begins in between.
func TestRollbackInsideSharedRollout(t *testing.T) {
	asked := func(p *play) {
		p.when("Update", 2, func() { p.send("roll-back", RollTo{Iteration: 0}) })
	}
	detected := func(p *play) {
		p.s.plan.Collapse.OnDetection = collapse.RollBack
		p.s.gradNorm = func(branch, iteration int) float64 {
			if branch == 0 && iteration == 1 {
				return math.Inf(1)
			}
			return 1
		}
	}
	online, reused := spec.Freshness{Online: 2, Reuse: 1}, spec.Freshness{Online: 1, Reuse: 2}
	for name, c := range map[string]struct {
		freshness spec.Freshness
		why       func(*play)
		again     bool // a new history begins between the roll-back and the branch's first commit
	}{
		"asked for":                     {online, asked, false},
		"asked for, a new history":      {online, asked, true},
		"detected":                      {online, detected, false},
		"detected, a new history":       {online, detected, true},
		"a reused batch":                {reused, asked, false},
		"a reused batch, a new history": {reused, asked, true},
	} {
		t.Run(name, func(t *testing.T) {
			plan := func() *stage {
				s := &stage{plan: testPlan(), base: true, parts: []int{4, 2}}
				s.plan.Iterations, s.plan.EvaluateEvery, s.plan.Freshness = 4, 0, c.freshness
				s.plan.Collapse = collapse.Defaults()
				return s
			}
			s := plan()
			p := newPlay(t, s)
			c.why(p)
			if c.again {
				p.when("Find", 1, func() { p.SetContinueAsNewSuggested(true) })
			}
			p.train(nil)
			commits, calls := s.commits, s.calls
			if c.again {
				carry := carried(t, p)
				require.Len(t, commits, 2)
				require.Equal(t, 1, carry.Branch)
				next := plan()
				q := newPlay(t, next)
				q.train(carry)
				q.result()
				commits, calls = append(commits, next.commits...), append(calls, next.calls...)
			} else {
				p.result()
			}
			require.Equal(t, [][2]int{{0, 0}, {0, 1}, {1, 1}, {1, 2}, {1, 3}}, places(commits))
			for i, want := range []struct{ branch, iteration, update int }{{0, 0, 0}, {0, 0, 1}, {1, 1, 0}, {1, 1, 1}, {1, 3, 0}} {
				r := commits[i].Rollout
				require.Equal(t, want.branch, r.Branch, "commit %d", i)
				require.Equal(t, want.iteration, r.Iteration, "commit %d", i)
				require.Equal(t, want.update, r.Update, "commit %d", i)
				require.Equal(t, want.update == 0, len(commits[i].Turns) > 0, "commit %d: who rolls out has turns", i)
			}
			first := commits[2]
			require.Len(t, first.Turns, c.freshness.Rounds())
			require.NotEqual(t, commits[0].Trajectories, first.Trajectories)
			require.NotEqual(t, commits[0].Scores, first.Scores)
			require.Equal(t, commits[0].StateAfter, first.StateBefore, "the fork point")

			// The branch's own policy rolls out, before anything else is done.
			at := 0
			for i, call := range calls {
				if call.name == "Find" {
					at = i
				}
			}
			var names []string
			for _, call := range calls[at:] {
				if !slices.Contains(fields("Find Load Restore Snapshot"), call.name) {
					names = append(names, call.name)
				}
			}
			want := append(slices.Repeat(fields("Generate Step"), c.freshness.Rounds()), fields("Select Score Credit Update Commit")...)
			require.Equal(t, want, names[:len(want)])
			for _, call := range calls[at:] {
				switch in := call.input.(type) {
				case activities.GenerateInput:
					require.Equal(t, 1, in.Policy.Branch)
				case activities.StepInput:
					require.Equal(t, 1, in.Branch)
				case activities.SelectInput:
					require.Equal(t, 1, in.Branch)
				case activities.CreditInput:
					require.Equal(t, 1, in.Branch)
					require.Equal(t, 1, in.Rollout.Branch)
				}
			}
		})
	}
}
