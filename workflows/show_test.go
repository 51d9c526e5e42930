package workflows

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// No success is below 0, although Student's interval of three small ones reaches there.
func TestSweepShowsPossibleIntervals(t *testing.T) {
	s := &sweeping{Workflows: &Workflows{}, ready: true, definition: sweep.Definition{Metrics: []string{"success/mean"}, Goal: sweep.Maximize}}
	for i, success := range []float64{0.02, 0.05, 0.3} {
		value := sweep.NoValue().Add(success, 1, sweep.Maximize)
		s.trials = append(s.trials, &trial{TrialRecord: activities.TrialRecord{State: sweep.Done, Values: []sweep.Value{value}}, of: sweep.Trial{Setting: "a", Seed: uint64(i)}})
	}
	require.Contains(t, s.details(), "| `a` | 3 of 3 | 0.1233 | 0 to 0.5052 |")
}

// The Web UI draws no space between cells: what keeps them apart is in the cells.
func TestDetailsAreSpaced(t *testing.T) {
	require.Equal(t, "**x** | y\n\n| a\u00a0\u00a0\u00a0| b\u00a0\u00a0\u00a0|\n|---|---|\n| 1\u00a0\u00a0\u00a0| 2\u00a0\u00a0\u00a0|\n| | |\n", spaced("**x** | y\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| | |\n"))
}

// An evaluation that is the first and the newest is shown once.
func TestDetailsShowAnEvaluationOnce(t *testing.T) {
	first, same := &store.EvaluationRef{Version: 0}, &store.EvaluationRef{Version: 0}
	tr := &train{Workflows: &Workflows{}, ready: true, Carry: Carry{First: first, Last: same}}
	require.Equal(t, 1, strings.Count(tr.details(), "| evaluation of version 0 |"))
	tr.Last = &store.EvaluationRef{Version: 10}
	require.Contains(t, tr.details(), "| evaluation of version 10 |")
}
