package iteration

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A search chooses after each turn, or after the last one where it compares whole trajectories. Every
// later step has the choices, and the rollout ends when all that are kept have ended.
func TestSearchChooses(t *testing.T) {
	for _, c := range []struct {
		search string
		over   bool // after the first turn
		want   []string
	}{
		{spec.BeamSearch, false, []string{"Generate", "Step", "Choose", "Generate", "Step", "Choose last", "Select"}},
		{spec.GreedySearch, true, []string{"Generate", "Step", "Choose", "Select"}},
		{spec.BestOfN, false, []string{"Generate", "Step", "Generate", "Step", "Choose last", "Select"}},
	} {
		sc := everything()
		sc.start.Due, sc.start.Plan.Suites, sc.start.Plan.Search = Due{}, nil, c.search
		it := New(sc.start, sc.state())
		var names []string
		in, err := it.ToCommit(func(call Call) (any, error) {
			result, name := sc.result(call), call.Name
			switch in := call.Input.(type) {
			case activities.StepInput:
				result = &activities.StepResult{Table: ref("step", in), Alive: 1}
			case activities.ChooseInput:
				result.(*activities.ChooseResult).Over = c.over
				require.Nil(t, in.Turns[len(in.Turns)-1].Choices)
				if in.Last {
					name += " last"
				}
			case activities.SelectInput:
				branches := ref("branches")
				result.(*activities.SelectResult).Branches = &branches
			case activities.CreditInput:
				require.Equal(t, ref("branches"), *in.Branches)
			}
			names = append(names, name)
			return result, nil
		})
		require.NoError(t, err)
		require.Equal(t, c.want, names[:len(c.want)], c.search)
		require.Equal(t, ref("branches"), *in.Branches)
		require.NotNil(t, in.Turns[len(in.Turns)-1].Choices)
		require.False(t, it.Rollout.Over)
		if c.search == spec.BestOfN {
			require.Nil(t, in.Turns[0].Choices)
		}
		require.Equal(t, slices.Contains(c.want, "Choose last") || c.over, it.Rollout.Done)
	}
}
