package workflows

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// collapsing is a run whose gradient norm is not finite in an iteration, on the
// branches before the given one.
func collapsing(t *testing.T, at, until int, action collapse.Action) (*stage, *play) {
	s := &stage{plan: testPlan(), base: true}
	s.plan.Iterations, s.plan.Snapshot.Every, s.plan.EvaluateEvery = 5, 2, 0
	s.plan.Collapse = collapse.Defaults()
	s.plan.Collapse.OnDetection = action
	s.gradNorm = func(branch, iteration int) float64 {
		if branch < until && iteration == at {
			return math.Inf(1)
		}
		return 1
	}
	return s, newPlay(t, s)
}

// places are (branch, iteration) of the commits.
func places(commits []activities.CommitInput) [][2]int {
	var out [][2]int
	for _, c := range commits {
		out = append(out, [2]int{c.Branch, c.Iteration})
	}
	return out
}

func TestRollback(t *testing.T) {
	s, p := collapsing(t, 3, 1, collapse.RollBack)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	// Iterations after the onset stay where they are; the next branch begins before it.
	require.Equal(t, [][2]int{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 3}, {1, 4}}, places(s.commits))
	bad, first := s.commits[3], s.commits[4]
	require.Equal(t, collapse.RollBack, bad.Detected.Decision.Action)
	require.Equal(t, "non_finite", bad.Detected.Events[0].Detector)
	require.Equal(t, ref("manifest", 0, 2), *first.Parent, "the fork point")
	require.Equal(t, s.commits[2].StateAfter, first.StateBefore)
	require.Equal(t, s.plan.Settings.Update.LearningRate/2, first.Settings.Update.LearningRate)
	require.Equal(t, 3, first.Opened.Iteration)
	require.Equal(t, bad.Detected.Events, first.Opened.Events)
	require.Contains(t, first.Opened.Changes[0], "update.learning_rate × 0.5")
	require.Equal(t, s.commits[2].Detected.State.Rewind(2), first.Opened.Detected.State, "what was known there, not what the collapse made of it")
	require.NotEqual(t, bad.Detected.State.Rewind(2), first.Opened.Detected.State)
	require.Nil(t, s.commits[5].Opened, "said once")
	require.Equal(t, 1, first.Detected.Rollbacks)
	// The state of before is restored on the same session.
	require.Equal(t, fields("Restore Restore"), only(s.names(), "Restore"))
	restore := inputs[activities.RestoreInput](s, "Restore")[1]
	require.Equal(t, 3, restore.Version.Version)
	require.Equal(t, 1, restore.Version.Branch)
	found := inputs[activities.FindInput](s, "Find")[0]
	newest := s.commits[3]
	newest.Timings, newest.Lost, newest.Costs = nil, 0, nil
	require.Equal(t, ref("manifest", newest), *found.Head, "on the run's own chain: after a reset the store may have newer branches")
	require.Equal(t, 1, p.closed)
	status := p.status()
	require.Equal(t, 1, status.Branch)
	require.Len(t, status.Events, 1)
}

// An evaluation of the abandoned branch does not count for the new one.
func TestRollbackEvaluatesAgain(t *testing.T) {
	s, p := collapsing(t, 3, 1, collapse.RollBack)
	s.plan.EvaluateEvery = 2
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, [2]int{1, 3}, places(s.commits)[4])
	require.Equal(t, 4, s.commits[3].Evaluations[0].Version)
	require.Equal(t, 4, s.commits[4].Evaluations[0].Version)
}

// Detectors stop a run after the iteration that they stopped, not after the same
// iteration of another branch.
func TestRollbackForgetsStop(t *testing.T) {
	s, p := collapsing(t, 2, 1, collapse.Stop)
	// The iteration has a snapshot because it is the last; there the device is lost
	// before it is committed, and a person has the run go back instead.
	p.loseAt("Snapshot", 2)
	lost := p.hooks["Snapshot 2"]
	p.when("Snapshot", 2, func() { p.send("roll-back", RollTo{Iteration: 0}); lost() })
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, [][2]int{{0, 0}, {0, 1}, {1, 1}, {1, 2}, {1, 3}, {1, 4}}, places(s.commits))
}

func only(names []string, name string) []string {
	var out []string
	for _, n := range names {
		if n == name {
			out = append(out, n)
		}
	}
	return out
}

// It rolls back at most Max times; then the run stops, with a snapshot.
func TestRollbackIsBounded(t *testing.T) {
	s, p := collapsing(t, 3, 99, collapse.RollBack)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, [][2]int{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}}, places(s.commits))
	last := s.commits[5]
	require.Equal(t, collapse.Stop, last.Detected.Decision.Action)
	require.NotNil(t, last.Snapshot, "the run ends with one")
	require.InDelta(t, s.plan.Settings.Update.LearningRate/2, s.commits[4].Settings.Update.LearningRate, 1e-12)
	require.InDelta(t, s.plan.Settings.Update.LearningRate/2, last.Settings.Update.LearningRate, 1e-12, "from the settings of where it went back to")
}

func TestRollbackBeforeTheBeginning(t *testing.T) {
	s, p := collapsing(t, 0, 99, collapse.RollBack)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, [][2]int{{0, 0}}, places(s.commits), "there is only the base model to go back to")
	require.Equal(t, collapse.Stop, s.commits[0].Detected.Decision.Action)
}

func TestDetectionWarns(t *testing.T) {
	s, p := collapsing(t, 3, 99, collapse.Warn)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Len(t, s.commits, 5)
	require.Len(t, p.status().Events, 1)
	require.Equal(t, collapse.Warn, s.commits[3].Detected.Decision.Action)
}

func TestDetectionStops(t *testing.T) {
	s, p := collapsing(t, 2, 99, collapse.Stop)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, [][2]int{{0, 0}, {0, 1}, {0, 2}}, places(s.commits))
	require.NotNil(t, s.commits[2].Snapshot)
}

// A device lost while the run goes back changes nothing.
func TestRollbackLosesDevice(t *testing.T) {
	undisturbed, p := collapsing(t, 3, 1, collapse.RollBack)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	s, p := collapsing(t, 3, 1, collapse.RollBack)
	p.loseAt("Restore", 2)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, places(undisturbed.commits), places(s.commits))
	require.Equal(t, undisturbed.commits[5].StateAfter, s.commits[5].StateAfter)
}

// A person can ask for it, too.
func TestRollbackCommand(t *testing.T) {
	s, p := collapsing(t, -1, 0, collapse.Warn)
	p.when("Commit", 4, func() { p.send("roll-back", RollTo{Iteration: 1}) })
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, [][2]int{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {1, 4}}, places(s.commits))
	require.Equal(t, s.plan.Settings, s.commits[4].Settings, "its knobs are the person's to change")
	require.Empty(t, s.commits[4].Opened.Events)
}

// Temporal's database was lost between the decision and the new branch's first
// commit: the manifest says what was decided.
func TestRollbackIsResumed(t *testing.T) {
	s, p := collapsing(t, 3, 1, collapse.RollBack)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	bad := s.commits[3]
	again, p := collapsing(t, 3, 1, collapse.RollBack)
	again.commits = append(again.commits, s.commits[:4]...)
	again.head = &activities.Head{
		Manifest: ref("manifest", 0, 3), Iteration: 3, State: bad.StateAfter, Fingerprint: testPrint, Base: ref("base"),
		Settings: bad.Settings, Detected: bad.Detected,
	}
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, places(s.commits), places(again.commits))
	require.Equal(t, s.commits[4].Opened, again.commits[4].Opened)
	require.Equal(t, s.commits[5].Detected, again.commits[5].Detected)

	stopped, p := collapsing(t, 2, 1, collapse.Stop)
	p.train(nil)
	require.Len(t, stopped.commits, 3)
	last := stopped.commits[2]
	on, p := collapsing(t, 2, 1, collapse.Stop)
	on.head = &activities.Head{
		Manifest: ref("manifest", 0, 2), Iteration: 2, State: last.StateAfter, Fingerprint: testPrint, Base: ref("base"),
		Settings: last.Settings, Detected: last.Detected,
	}
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, [][2]int{{0, 3}, {0, 4}}, places(on.commits), "started again it goes on")
}
