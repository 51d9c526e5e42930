package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The row of successes is counted over the rollouts of a branch, and is the same however often an
// iteration is counted. An iteration without a rollout of its own neither adds to it nor ends it.
func TestSuccessInARow(t *testing.T) {
	p := activities.Plan{StopSuccess: spec.StopSuccess{AtLeast: 0.5, For: 3}}
	previous := activities.Metrics{}
	for i, c := range []struct {
		success float64 // −1: no rollout
		row     float64
		reached bool
	}{{0.5, 1, false}, {1, 2, false}, {0.49, 0, false}, {0.6, 1, false}, {-1, 1, false}, {0.6, 2, false}, {0.6, 3, true}} {
		m := activities.Metrics{}
		if c.success >= 0 {
			m["success/mean"] = canon.Float(c.success)
		}
		p.CountStops(previous, m)
		p.CountStops(previous, m)
		require.EqualValues(t, c.row, m[activities.SuccessInARow], i)
		require.Equal(t, c.reached, p.Reached(m), i)
		previous = m
	}
	none := activities.Metrics{"success/mean": 1}
	activities.Plan{}.CountStops(previous, none)
	require.Equal(t, activities.Metrics{"success/mean": 1}, none)
	require.False(t, activities.Plan{}.Reached(previous))
}
