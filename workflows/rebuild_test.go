package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
)

// The status says how long rebuilding the policy would take: by the last load, the last
// update, made or applied again, and the number of updates since the snapshot.
func TestRebuildSeconds(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, errors: map[string][]error{"Score": answer1(4, activities.KindDeviceFailed)}}
	s.plan.Iterations, s.plan.Snapshot.Every, s.plan.EvaluateEvery = 5, 3, 0
	s.took = map[string]activities.Telemetry{
		"session-1 Restore": {Seconds: 70, CompileSeconds: 40, LoadSeconds: 30},
		"session-1 Update":  {Seconds: 12, WaitSeconds: 5, CompileSeconds: 2},
		"session-2 Restore": {Seconds: 70, LoadSeconds: 50, Recomputed: 1, RecomputeSeconds: 20},
	}
	p := newPlay(t, s)
	var said []Status
	for _, at := range []string{"Restore 1", "Update 1", "Update 2", "Update 3", "Update 4", "Update 5"} {
		p.hooks[at] = func() {
			said = append(said, p.status())
		}
	}
	p.train(nil)
	p.result()
	var got [][2]float64
	for _, st := range said {
		got = append(got, [2]float64{float64(st.AtRisk), st.RebuildSeconds})
	}
	require.Equal(t, [][2]float64{
		{0, 0}, // nothing is loaded yet
		{0, 30}, {1, 40}, {2, 50},
		{0, 50}, // after the snapshot of version 3, on another device
		{1, 70},
	}, got)

	r := train{Workflows: &Workflows{}, Carry: Carry{Next: 12, Snapshot: 10, Rebuilding: rebuilding{Load: 30.2, Update: 10}}, ready: true}
	require.Contains(t, r.details(), "| updates since the last snapshot | 2, about 50s to load and apply again |")
	r.Rebuilding = rebuilding{}
	require.Contains(t, r.details(), "| updates since the last snapshot | 2 |")
}
