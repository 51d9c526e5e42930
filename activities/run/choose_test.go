package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// pairs are two groups of two; the second varies more, and a limit cut one of its members.
func pairs() []TrajectoryRow {
	row := func(reward float64, tokens int32, cut bool) TrajectoryRow {
		return TrajectoryRow{Rewards: []float64{reward}, Penalties: []float64{0}, SampledLengths: []int32{tokens}, Truncated: cut}
	}
	return []TrajectoryRow{row(0, 5, false), row(1, 3, false), row(3, 8, true), row(0, 2, false)}
}

func TestTruncatedGroupsAreLeftOut(t *testing.T) {
	s := spec.Selection{Method: "top_count", Count: 1, LossScale: "none"}
	kept, _, err := SelectedGroups(s, pairs(), 2, 2)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true}, kept)
	s.DropTruncated = true
	kept, _, err = SelectedGroups(s, pairs(), 2, 2)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, kept)
}

func TestKeptMembers(t *testing.T) {
	for metric, want := range map[string][]bool{
		"": {false, true, false, true}, "shortest": {false, true, false, true}, "reward_per_token": {false, true, true, false},
		"return":    {false, true, true, false},
		"deviation": {true, false, true, false}, // equal members rank by index
	} {
		kept, err := KeptMembers(spec.Selection{Members: 1, MemberMetric: metric}, pairs(), 2)
		require.NoError(t, err)
		require.Equal(t, want, kept, metric)
	}
	kept, err := KeptMembers(spec.Selection{}, pairs(), 2)
	require.NoError(t, err)
	require.Nil(t, kept, "all of them")
	_, err = KeptMembers(spec.Selection{Members: 1, MemberMetric: "luck"}, pairs(), 2)
	require.ErrorIs(t, err, store.ErrInvalid)
}
