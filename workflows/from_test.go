package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
)

// A run that goes on from another's iteration begins behind it: on that device, with
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
