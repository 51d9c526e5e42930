package episode_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
)

// A trajectory is cut where a prompt is the whole context again. Each stretch names its trajectory, numbers
// the turns of the trajectory, and says where its first sampled id is among the trajectory's.
func TestStretches(t *testing.T) {
	whole := episode.TrajectoryRow{
		Row: 3, IDs: []int32{20, 21, 22, 23}, PromptLengths: []int32{1, 1}, SampledLengths: []int32{1, 1}, Restarts: []bool{true, false},
	}
	without := episode.TrajectoryRow{Row: 4}
	require.Equal(t, []episode.Stretch{
		{Of: 0, Row: 3, Ids: []int32{20, 21, 22, 23}, Sampled: []bool{false, true, false, true}, Turns: []int32{0, 1, 0, 2}},
		{Of: 2, Row: 7, Ids: []int32{0, 1, 2, 3, 4, 5}, Sampled: []bool{false, false, true, false, true, true}, Turns: []int32{0, 0, 1, 0, 2, 2}},
		{Of: 2, Row: 7, Ids: []int32{6, 7, 8, 9, 10}, Sampled: []bool{false, true, true, true, true}, Turns: []int32{0, 3, 4, 4, 4}, First: 3},
	}, episode.Stretches([]episode.TrajectoryRow{whole, without, windowed()}))
	require.Nil(t, episode.Stretches([]episode.TrajectoryRow{without}))

	// A first turn begins a stretch, whatever the row says of it.
	whole.Restarts[0] = false
	require.Len(t, episode.Stretches([]episode.TrajectoryRow{windowed(), whole}), 3)
}

// All ids of trajectories are in stretches once, and all sampled ones are marked.
func TestStretchesKeepEveryToken(t *testing.T) {
	rows := []episode.TrajectoryRow{windowed(), windowed(), windowed()}
	rows[1].Restarts = []bool{true, true, true, true}
	rows[2].Restarts = []bool{true, false, false, false}
	ids, sampled := map[int]int{}, map[int]int{}
	for _, p := range episode.Stretches(rows) {
		require.Equal(t, sampled[p.Of], p.First)
		require.Len(t, p.Sampled, len(p.Ids))
		for i, id := range p.Ids {
			require.EqualValues(t, ids[p.Of], id, "the ids follow each other")
			ids[p.Of]++
			if p.Sampled[i] {
				sampled[p.Of]++
			}
			require.Equal(t, p.Sampled[i], p.Turns[i] > 0)
		}
	}
	for of, r := range rows {
		require.Equal(t, []int{len(r.IDs), r.Sampled()}, []int{ids[of], sampled[of]})
	}
}
