package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// A run that is forked from another's iteration begins after it: on the same device, with
// the other's manifest as the parent of its first.
func TestTrainFrom(t *testing.T) {
	s := &stage{plan: testPlan(), base: true}
	s.plan.Iterations, s.plan.First, s.plan.EvaluateEvery = 5, 3, 0
	s.from = &activities.Head{
		Manifest: ref("manifest", "other"), Iteration: 2, State: "s3", Fingerprint: testPrint, Base: ref("base"), Settings: s.plan.Settings, Snapshot: 2,
	}
	p := newPlay(t, s)
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, [][2]int{{0, 3}, {0, 4}}, places(s.commits))
	require.Equal(t, s.from.Manifest, *s.commits[0].Parent)
	require.Equal(t, "s3", s.commits[0].StateBefore)
	restore := inputs[activities.RestoreInput](s, "Restore")[0]
	require.Equal(t, s.from.Manifest, *restore.Head)
	require.Equal(t, 3, restore.Version.Version)
	require.Empty(t, only(s.names(), "Describe"), "the other run's device is known")
	require.Empty(t, only(s.names(), "WarmStart"))
}

// A run that rolls back to its fork point has the other run's policy, and nothing else of
// it.
func TestTrainFromGoesBack(t *testing.T) {
	s, p := collapsing(t, -1, 0, collapse.Warn)
	p.when("Commit", 1, func() { p.send("roll-back", RollTo{Iteration: 2}) })
	s.plan.First, s.plan.Freshness.ReplayIterations = 3, 2
	s.from = &activities.Head{
		Manifest: ref("manifest", "other"), Iteration: 2, State: "s3", Fingerprint: testPrint, Base: ref("base"), Settings: s.plan.Settings, Snapshot: 2,
	}
	theirs, newest := *s.from, 2
	theirs.Tables, theirs.Batches, theirs.Detected = activities.Tables{activities.StatesTable.Name: ref("states")}, []store.Ref{ref("batch")}, &activities.Detected{State: collapse.State{Newest: &newest}}
	s.theirs = &theirs
	p.train(nil)
	require.NoError(t, p.GetWorkflowError())
	require.Equal(t, [][2]int{{0, 3}, {1, 3}, {1, 4}}, places(s.commits))
	first := s.commits[1]
	require.Equal(t, collapse.State{}, first.Opened.Detected.State)
	credited := inputs[activities.CreditInput](s, "Credit")[1]
	require.Nil(t, credited.Tables)
	require.Empty(t, credited.Replay)
}
