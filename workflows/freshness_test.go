package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A rollout serves two iterations: the second learns from it without rolling out, even if
// the workflow was started again in between. A change of the selection waits for the next
// rollout.
func TestSharedRollout(t *testing.T) {
	var commits []activities.CommitInput
	var names []string
	var carry *Carry
	for n := range 4 {
		s := &stage{plan: testPlan(), base: true, parts: []int{4, 2}}
		s.plan.Iterations, s.plan.EvaluateEvery = 4, 0
		s.plan.Freshness = spec.Freshness{Online: 2, Reuse: 1}
		p := newPlay(t, s)
		p.w.ContinueAfter = 1
		p.train(carry)
		commits, names = append(commits, s.commits...), append(names, s.names()...)
		if n < 3 {
			carry = carried(t, p)
			carry.Settings.Selection.Keep = 0.5 // a knob was turned
		}
	}
	require.Len(t, commits, 4)
	for n, c := range commits {
		require.Equal(t, n%2, c.Rollout.Update)
		require.Equal(t, n-n%2, c.Rollout.Iteration)
		require.Equal(t, []int{4, 2}, c.Rollout.Rows)
		if n%2 == 0 {
			require.Len(t, c.Turns, 2, "a round each")
			require.Equal(t, 1, c.Turns[1].Round)
			continue
		}
		require.Empty(t, c.Turns)
		require.Equal(t, commits[n-1].Trajectories, c.Trajectories)
		require.Equal(t, commits[n-1].Scores, c.Scores)
		require.NotEqual(t, commits[n-1].Batch, c.Batch)
	}
	require.Equal(t, 0.25, commits[1].Settings.Selection.Keep)
	require.Equal(t, 0.5, commits[2].Settings.Selection.Keep)
	for name, want := range map[string]int{"Generate": 4, "Select": 2, "Score": 2, "Update": 4} {
		require.Len(t, only(names, name), want, name)
	}
}

// A part without a selected row is skipped; the next one learns from its own.
func TestSharedRolloutWithAnEmptyPart(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, parts: []int{0, 2}}
	s.plan.Iterations, s.plan.EvaluateEvery = 2, 0
	s.plan.Freshness = spec.Freshness{Online: 2, Reuse: 1}
	p := newPlay(t, s)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.True(t, s.commits[0].Update.Skipped)
	require.NotNil(t, s.commits[0].Scores, "the next iteration reads them")
	require.Nil(t, s.commits[0].Batch)
	require.False(t, s.commits[1].Update.Skipped)
	require.Equal(t, s.commits[0].Scores, s.commits[1].Scores)
}

// If too few groups vary, there are more rounds.
func TestMoreRounds(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, more: func(rounds int) bool { return rounds < 3 }}
	s.plan.Iterations, s.plan.EvaluateEvery = 1, 0
	p := newPlay(t, s)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Len(t, s.commits[0].Turns, 3)
	require.Nil(t, s.commits[0].Rollout)
	generated := inputs[activities.GenerateInput](s, "Generate")
	require.Equal(t, 2, generated[2].Rollout.Round)
	require.Empty(t, generated[2].Turns, "a round's turns are its own")
	require.Equal(t, 3, s.counts["Select"])
	require.Equal(t, 1, s.counts["Score"])
}

// The replay buffer reaches back as far as it is asked to.
func TestReplayedBatches(t *testing.T) {
	s := &stage{plan: testPlan(), base: true}
	s.plan.Iterations, s.plan.EvaluateEvery = 4, 0
	s.plan.Freshness = spec.Freshness{Online: 1, Reuse: 1, ReplayIterations: 2, ReplayShare: 0.5}
	p := newPlay(t, s)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	credited := inputs[activities.CreditInput](s, "Credit")
	require.Empty(t, credited[0].Replay)
	require.Equal(t, []store.Ref{*s.commits[2].Batch, *s.commits[1].Batch}, credited[3].Replay)
}

// The rollouts that are due are diagnosed, each once, and only their own.
func TestDiagnosed(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, parts: []int{4, 2}}
	s.plan.Iterations, s.plan.EvaluateEvery = 5, 0
	s.plan.Freshness = spec.Freshness{Online: 2, Reuse: 1}
	s.plan.Diagnostics = spec.Diagnostics{Every: 1, Samples: 2}
	p := newPlay(t, s)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	var of []int
	for _, in := range inputs[activities.DiagnoseInput](s, "Diagnose") {
		of = append(of, in.Iteration)
	}
	require.Equal(t, []int{0, 2, 4}, of)
	require.Equal(t, s.commits[0].Metrics["diagnosed"], s.commits[2].Metrics["diagnosed"])
	require.NotContains(t, s.commits[1].Metrics, "diagnosed")
}

// A baseline by state sees a rollout also where nothing of it is selected.
func TestStateBaselineSeesAllRollouts(t *testing.T) {
	methodstest.Needs(t, "state_baseline")
	s := &stage{plan: testPlan(), base: true}
	s.plan.EvaluateEvery, s.plan.Settings.Credit.Algorithm = 0, "state_baseline"
	s.selected = func(iteration int) int { return 4 * ((iteration + 1) % 2) }
	p := newPlay(t, s)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Len(t, s.commits, 3)
	skipped := s.commits[1]
	require.True(t, skipped.Update.Skipped)
	require.Nil(t, skipped.Batch)
	credited := inputs[activities.CreditInput](s, "Credit")
	require.Len(t, credited, 3)
	require.Nil(t, credited[1].Scores)
	require.Contains(t, skipped.Tables, activities.StatesTable.Name)
	require.Equal(t, s.commits[0].Tables, credited[1].Tables)
	require.NotEqual(t, skipped.Tables, credited[1].Tables)
	require.Equal(t, skipped.Tables, credited[2].Tables)
}
