package episode_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
)

// Groups of later rounds have the same slots as those of the first, and other turns: all of them are learned
// from, each once.
func TestTrainedOfRounds(t *testing.T) {
	row := func(row, group int32, turns int) episode.TrajectoryRow {
		return episode.TrajectoryRow{Row: row, Group: group, PromptLengths: make([]int32, turns)}
	}
	branches := []episode.BranchRow{
		{Slot: 3}, {Turn: 1}, {Row: 1, Slot: 3, Inherited: true}, {Row: 1, Turn: 1, Slot: 1}, // round 1
		{Row: 2, Slot: 3}, {Row: 2, Turn: 1}, {Row: 3, Slot: 3, Inherited: true}, {Row: 3, Turn: 1, Slot: 1}, // round 2
	}
	rows := []episode.TrajectoryRow{row(0, 0, 2), row(1, 0, 2), row(2, 1, 2), row(3, 1, 2)}
	trained, err := episode.Trained(rows, branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true}, {false, true}, {true, true}, {false, true}}, trained)

	// The same where the update learns from some of the rows.
	trained, err = episode.Trained([]episode.TrajectoryRow{rows[1], rows[3]}, branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true}, {true, true}}, trained)
	trained, err = episode.Trained(rows[2:], branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true}, {false, true}}, trained)

	// One slot in two turns is two turns.
	trained, err = episode.Trained([]episode.TrajectoryRow{row(0, 0, 2), row(1, 0, 2)}, []episode.BranchRow{{Slot: 1}, {Turn: 1, Slot: 1}, {Row: 1, Slot: 1, Inherited: true}, {Row: 1, Turn: 1, Slot: 2}})
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true}, {false, true}}, trained)

	trained, err = episode.Trained(rows, nil)
	require.NoError(t, err)
	require.Nil(t, trained, "all turns of all rows")
	_, err = episode.Trained([]episode.TrajectoryRow{row(3, 1, 3)}, branches)
	require.ErrorContains(t, err, "turn 3 of row 3 has no branch")
}

// The rows of a later round have later numbers; the slots are those of its tables.
func TestBranchesOfRounds(t *testing.T) {
	turns := []episode.Turn{episodetest.Turn(1, 1, make([]float64, 3), nil, nil), episodetest.Turn(2, 1, make([]float64, 3), []bool{true, false, true}, nil)}
	require.Nil(t, episode.Branches(turns, 0), "nothing was chosen")
	require.Nil(t, episode.Branches(nil, 0))
	turns[0].Slots, turns[1].Slots = []int32{2, 2, 5}, []int32{2, 3, 4}
	want := []episode.BranchRow{{Slot: 2}, {Turn: 1, Slot: 2}, {Row: 1, Slot: 2, Inherited: true}, {Row: 2, Slot: 5}, {Row: 2, Turn: 1, Slot: 4}}
	require.Equal(t, want, episode.Branches(turns, 0))
	for i := range want {
		want[i].Row += 30
	}
	require.Equal(t, want, episode.Branches(turns, 30))
	turns[1].Slots = []int32{2, 3, 2}
	require.True(t, episode.Branches(turns, 0)[4].Inherited, "the second turn alone is shared")
}

// What was searched and not kept is counted in turns and in tokens.
func TestSearchedOf(t *testing.T) {
	played := []episode.Turn{episodetest.Turn(1, 2, make([]float64, 4), nil, nil), episodetest.Turn(2, 2, make([]float64, 4), []bool{true, true, false, true}, nil)}
	played[0].Generate[1].SampledIDs, played[1].Generate[0].SampledIDs = []int32{1, 2, 3}, []int32{1, 2, 3, 4, 5}
	branches := []episode.BranchRow{{}, {Turn: 1, Slot: 1}, {Row: 1, Slot: 2}, {Row: 1, Turn: 1, Slot: 3}}
	require.Equal(t, episode.Searched{Turns: 3, Tokens: 3 + 1 + 5}, episode.SearchedOf(played, branches))
	require.Equal(t, episode.Searched{Turns: 7, Tokens: 3 + 3 + 5 + 2}, episode.SearchedOf(played, nil))
}

// Tokens that several rows share are sampled once, in the rows of every round.
func TestSampledTokens(t *testing.T) {
	rows := []episode.TrajectoryRow{{Row: 0, SampledLengths: []int32{1, 2}}, {Row: 1, SampledLengths: []int32{1, 4}}, {Row: 2, SampledLengths: []int32{8}}, {Row: 3, SampledLengths: []int32{8, 16}}}
	require.Equal(t, 40, episode.SampledTokens(rows, nil))
	branches := []episode.BranchRow{{}, {Turn: 1}, {Row: 1, Inherited: true}, {Row: 1, Turn: 1, Slot: 1}, {Row: 2}, {Row: 3, Inherited: true}, {Row: 3, Turn: 1, Slot: 1}}
	require.Equal(t, 40-1-8, episode.SampledTokens(rows, branches))
}
