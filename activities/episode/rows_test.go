package episode_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
)

// The actions of a turn are read as they were joined; a turn without one has none.
func TestExecutes(t *testing.T) {
	r := episode.TrajectoryRow{Actions: []string{"Up", "", "search[a || b]", "Up || Left || Up"}}
	require.Equal(t, []string{"Up"}, r.Executes(0))
	require.Nil(t, r.Executes(1))
	require.Equal(t, []string{"search[a", "b]"}, r.Executes(2))
	require.Equal(t, []string{"Up", "Left", "Up"}, r.Executes(3))
}

// What a turn and a row are worth: rewards, penalties and components, each counted once.
func TestReturns(t *testing.T) {
	r := episode.TrajectoryRow{Rewards: []float64{1, 0, 2}, Penalties: []float64{-0.25, 0, -0.5}}
	require.Equal(t, []float64{0.75, 0, 1.5}, []float64{r.TurnReward(0), r.TurnReward(1), r.TurnReward(2)})
	require.Equal(t, []float64{2.25, 2.25, 3}, []float64{r.Return(), r.Penalised(), r.Reward()})
	r.Added = []float64{8, 16, -4}
	require.Equal(t, []float64{8.75, 16, -2.5}, []float64{r.TurnReward(0), r.TurnReward(1), r.TurnReward(2)})
	require.Equal(t, []float64{22.25, 2.25, 3}, []float64{r.Return(), r.Penalised(), r.Reward()})
	require.Equal(t, []float64{8, 16, -4}, r.Added, "it is read, not cleared")
	require.Equal(t, []float64{0, 0, 0}, []float64{episode.TrajectoryRow{}.Return(), episode.TrajectoryRow{}.Penalised(), episode.TrajectoryRow{}.Reward()})
}

// windowed is a row of four turns whose contexts begin anew at turns 1 and 3. Its ids are their places.
func windowed() episode.TrajectoryRow {
	return episode.TrajectoryRow{
		Row: 7, IDs: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, PromptLengths: []int32{2, 1, 1, 0}, SampledLengths: []int32{1, 2, 1, 3},
		Restarts: []bool{true, false, true, false},
	}
}

// The context of a turn begins where the newest prompt before it was whole.
func TestTurnOfARow(t *testing.T) {
	r := windowed()
	require.Equal(t, 4, r.Turns())
	for k, want := range []struct{ context, sampled []int32 }{
		{[]int32{0, 1}, []int32{2}},
		{[]int32{0, 1, 2, 3}, []int32{4, 5}},
		{[]int32{6}, []int32{7}},
		{[]int32{6, 7}, []int32{8, 9, 10}},
	} {
		context, sampled := r.Turn(k)
		require.Equal(t, want.context, context, "turn %d", k)
		require.Equal(t, want.sampled, sampled, "turn %d", k)
	}
	context, sampled := r.Turn(4)
	require.Nil(t, context)
	require.Nil(t, sampled, "there is no such turn")
}
