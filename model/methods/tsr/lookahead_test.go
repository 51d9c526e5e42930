package tsr

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

// The slots of a search that looks ahead take the turns that search.Lookahead takes on the same rewards,
// where episodes end early, where values are equal, and where it looks ahead as far as the episode has turns.
func TestLookahead(t *testing.T) {
	for seed := range int64(60) {
		candidates, depth := 1+int(seed%3), 1+int(seed/3%3)
		const last = 4
		// Quarters, so that sums are exact and many are equal.
		after := func(path []int) []float64 {
			a := draw.Address{Purpose: draw.Sample, Seed: uint64(seed)}
			for _, c := range path {
				a.Member = 10*a.Member + int64(c) + 1
			}
			numbers := a.Rand()
			if len(path) == last || len(path) > 0 && numbers.IntN(5) == 0 {
				return nil
			}
			var rewards []float64
			for range candidates {
				rewards = append(rewards, float64(numbers.IntN(4))/4)
			}
			return rewards
		}
		want, _, err := search.Lookahead(after, depth, last)
		require.NoError(t, err)

		s := Lookahead.Breadth(option.Values{"candidates": candidates, "depth": depth})
		slots := s.Slots()
		paths, ended := make([][]int, slots), make([]bool, slots)
		var turns []episode.Turn
		var choices []episode.ChoiceRow
		var over bool
		sampled := 0
		for turn := 1; turn <= last && !over; turn++ {
			rewards, alive, done := make([]float64, slots), make([]bool, slots), make([]bool, slots)
			for slot := range slots {
				if alive[slot] = !ended[slot] && slot%s.Apart(turn) == 0; !alive[slot] {
					continue
				}
				sampled++
				candidate := slot / s.Apart(turn) % candidates
				rewards[slot] = after(paths[slot])[candidate]
				paths[slot] = append(slices.Clip(paths[slot]), candidate)
				ended[slot] = len(after(paths[slot])) == 0
				done[slot] = ended[slot]
			}
			turns = append(turns, episodetest.Turn(turn, slots, rewards, alive, done))
			if choices, over, err = choose(s, slots, turns, turn == last); err != nil {
				break
			}
			require.NoError(t, episode.Follow(turns, choices))
			next, stopped := make([][]int, len(turns[0].Generate)), make([]bool, len(turns[0].Generate))
			for row, c := range choices {
				for _, n := range c.Next {
					next[n], stopped[n] = paths[row], ended[row]
				}
			}
			paths, ended = next, stopped
		}
		require.NoError(t, err)
		require.Len(t, paths, 1, "a trajectory a search")
		require.Equal(t, want.Path, paths[0], "seed %d: %d candidates, depth %d", seed, candidates, depth)
		require.Equal(t, want.Score, episode.ScoreOf(turns, 0))
		if candidates == 3 && depth == 3 {
			require.LessOrEqual(t, sampled, 3+9+27+27)
		}
	}

	s := Lookahead.Breadth(option.Values{"candidates": 2})
	require.Equal(t, []int{4, 2, 1, 1}, []int{s.Slots(), s.Apart(1), s.Apart(2), s.Apart(3)})
	require.Equal(t, []int{8, 1}, []int{Beam.Breadth(option.Values{}).Slots(), search.Breadth{}.Apart(1)})
	_, _, err := choose(s, 4, []episode.Turn{episodetest.Turn(1, 4, []float64{math.NaN(), 0, 0, 0}, nil, nil)}, false)
	require.ErrorIs(t, err, store.ErrInvalid)
}
