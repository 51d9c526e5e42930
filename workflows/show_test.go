package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// No success is below 0, although Student's interval of three small ones reaches there.
func TestSweepShowsPossibleIntervals(t *testing.T) {
	s := &sweeping{ready: true, definition: sweep.Definition{Metrics: []string{"success/mean"}, Goal: sweep.Maximize}}
	for i, success := range []float64{0.02, 0.05, 0.3} {
		value := sweep.NoValue().Add(success, 1, sweep.Maximize)
		s.trials = append(s.trials, &trial{TrialRecord: activities.TrialRecord{State: sweep.Done, Values: []sweep.Value{value}}, of: sweep.Trial{Setting: "a", Seed: uint64(i)}})
	}
	require.Contains(t, s.details(), "| `a` | 3 of 3 | 0.1233 | 0 to 0.5052 |")
}
