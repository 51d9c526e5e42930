package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
)

// From the second silence in a row on the run waits longer and longer before it asks for a session; a first one costs
// nothing. It says why, with the load of the machine, and pauses never.
func TestSilentWorkerIsAskedLater(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, load: &activities.Load{Average: 31, Cores: 2}}
	s.plan.StepFailures = 2
	p := newPlay(t, s)
	var opened []time.Time
	var last Status
	for n := 1; n <= 4; n++ {
		lost := make(chan struct{})
		p.lost[n], p.again[n+1] = lost, true
		s.stalls = append(s.stalls, lost)
		p.when("Generate", n, func() { close(lost) })
	}
	for n := 1; n <= 5; n++ {
		p.when("Restore", n, func() { opened = append(opened, p.Now()) })
	}
	p.when("Generate", 5, func() { last = p.status() })
	p.train(nil)
	r := p.result()
	require.Zero(t, r.LostDevices)
	require.Equal(t, 4, last.SilentDevices)
	require.Len(t, last.Failing, 1)
	require.Zero(t, last.Failing[0].Count)
	require.Equal(t, 4, last.Failing[0].Silent)
	require.Equal(t, "its worker was silent for more than 5s, and is here again: its machine has too much to do (load 31 on 2 cores)", last.Failing[0].Error)
	var waits []time.Duration
	for i := 1; i < len(opened); i++ {
		waits = append(waits, opened[i].Sub(opened[i-1]).Round(time.Second))
	}
	require.Equal(t, []time.Duration{0, 5 * time.Second, 10 * time.Second, 20 * time.Second}, waits)
	for _, c := range s.commits {
		require.Zero(t, c.Lost)
	}
}

// A damaged snapshot that was passed over is a warning of the run.
func TestDamagedSnapshotIsAWarning(t *testing.T) {
	s := &stage{plan: testPlan(), base: true, attributes: true, damaged: []int{4}}
	p := newPlay(t, s)
	var got Status
	p.when("Update", 1, func() { got = p.status() })
	p.train(nil)
	p.result()
	require.Equal(t, []string{"the snapshot of version 4 is damaged or gone, and counts as removed: the policy was rebuilt from the one before. " +
		"reprise verify " + testRun + " names its objects"}, got.Warnings)
}
