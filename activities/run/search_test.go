package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// searchTurn is a turn of two groups with the given slots each. A row says its place, and ends if done.
// A NaN-free reward for each row; rows that are not alive have none.
func searchTurn(turn, slots int, rewards []float64, alive, done []bool) Turn {
	var out Turn
	for i, r := range rewards {
		g := GenerateRow{Row: int32(i), Group: int32(i / slots), Member: int32(i % slots), Alive: alive == nil || alive[i]}
		st := StepRow{Row: g.Row, Group: g.Group, Member: g.Member, Alive: g.Alive, Done: !g.Alive || done != nil && done[i]}
		if g.Alive {
			g.SampledIDs, st.Reward = []int32{int32(100*turn + i)}, r
		}
		out.Generate, out.Step = append(out.Generate, g), append(out.Step, st)
	}
	return out
}

// A group of two is one search of two prefixes with two candidates each. Its best two prefixes of a
// turn may share their parent; one that ended competes with its score and is played no further.
func TestBeamSearchOverTurns(t *testing.T) {
	s := spec.Rollout{Search: spec.BeamSearch, Beam: 2, Candidates: 2}.SearchOf()
	first := searchTurn(1, 4, []float64{0, 1, 3, 2, 5, 5, 5, 5}, nil, []bool{false, false, true, false, false, false, false, false})
	choices, over, err := ChooseRows(s, 4, []Turn{first}, false)
	require.NoError(t, err)
	require.False(t, over)
	require.Equal(t, []int32{2, 3, 4, 5}, kept(choices), "equal scores keep the first")
	require.Equal(t, []int32{0, 1}, choices[2].Next)
	require.Equal(t, []int32{2, 3}, choices[3].Next)
	require.Equal(t, []int32{6, 7}, choices[5].Next)

	turns := []Turn{first}
	require.NoError(t, follow(turns, choices))
	require.Equal(t, []int32{2, 2, 3, 3, 4, 4, 5, 5}, turns[0].Slots)
	// Rows 0 and 1 are the episode that ended. Of the other prefix both candidates are worse than it
	// or better.
	alive := []bool{false, false, true, true, true, true, true, true}
	turns = append(turns, searchTurn(2, 4, []float64{0, 0, 2, 1.5, 0, 1, 2, 3}, alive, alive))
	choices, over, err = ChooseRows(s, 4, turns, false)
	require.NoError(t, err)
	require.True(t, over, "all that are kept have ended")
	require.Equal(t, []int32{2, 3, 6, 7}, kept(choices))
	require.Equal(t, 4.0, choices[2].Score, "the sum over the turns")
	require.Equal(t, 3.0, choices[0].Score, "an episode that ended competes with its score")
	require.Equal(t, []int32{3}, choices[7].Next, "a trajectory each")

	require.NoError(t, follow(turns, choices))
	require.Len(t, turns[1].Generate, 4)
	require.Equal(t, []int32{3, 3, 5, 5}, turns[0].Slots)
	require.Equal(t, []int32{2, 3, 6, 7}, turns[1].Slots)
	require.Equal(t, []int32{103}, turns[0].Generate[1].SampledIDs)
	require.Equal(t, []int32{203}, turns[1].Generate[1].SampledIDs)
	require.Equal(t, []int32{1, 1, 1}, []int32{turns[1].Generate[3].Group, turns[1].Generate[3].Member, turns[1].Step[3].Member})

	// What trajectories share is marked, and learned from once; in the second if the first is left out.
	branches := Branches(turns, 4)
	require.Equal(t, []BranchRow{
		{4, 0, 3, false}, {4, 1, 2, false}, {5, 0, 3, true}, {5, 1, 3, false}, {6, 0, 5, false}, {6, 1, 6, false}, {7, 0, 5, true}, {7, 1, 7, false},
	}, branches)
	rows := make([]TrajectoryRow, 4)
	for i := range rows {
		rows[i] = TrajectoryRow{Row: int32(4 + i), Group: int32(i / 2), PromptLengths: make([]int32, 2)}
	}
	trained, err := Trained(rows, branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true}, {false, true}, {true, true}, {false, true}}, trained)
	trained, err = Trained(rows[1:], branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true}, {true, true}, {false, true}}, trained)
	_, err = Trained([]TrajectoryRow{{Row: 9, PromptLengths: make([]int32, 1)}}, branches)
	require.ErrorIs(t, err, store.ErrInvalid)

	played := []Turn{first, searchTurn(2, 4, make([]float64, 8), alive, nil)}
	require.Equal(t, Searched{Turns: 6 + 2, Tokens: 8}, SearchedOf(played, branches))
}

// Best of n compares whole trajectories, of which some ended before others.
func TestBestOfWhole(t *testing.T) {
	s := spec.Rollout{Search: spec.BestOfN, Candidates: 2}.SearchOf()
	turns := []Turn{
		searchTurn(1, 4, []float64{4, 1, 0, 0, 0, 1, 0, 0}, nil, []bool{true, false, false, false, false, false, false, false}),
		searchTurn(2, 4, []float64{0, 2, 1, 2, 0, 0, 3, 2}, []bool{false, true, true, true, true, true, true, true}, nil),
	}
	choices, _, err := ChooseRows(s, 4, turns, true)
	require.NoError(t, err)
	require.Equal(t, []int32{0, 3, 5, 6}, kept(choices))
	require.NoError(t, follow(turns, choices))
	require.False(t, turns[1].Generate[0].Alive)
	require.Equal(t, []int32{203}, turns[1].Generate[1].SampledIDs)
}

// With one candidate nothing moves, whatever the scores are.
func TestSearchWithOneCandidateMovesNothing(t *testing.T) {
	for _, r := range []spec.Rollout{
		{Search: spec.BeamSearch, Beam: 2, Candidates: 1}, {Search: spec.BeamSearch, Beam: 4, Candidates: 1}, {Search: spec.GreedySearch, Candidates: 1}, {Search: spec.BestOfN, Candidates: 1},
		{Search: spec.LookaheadSearch, Candidates: 1, Depth: 3},
	} {
		turns := []Turn{searchTurn(1, 4, []float64{0, 3, 1, 2, 7, 5, 6, 4}, nil, nil)}
		want := []Turn{searchTurn(1, 4, []float64{0, 3, 1, 2, 7, 5, 6, 4}, nil, nil)}
		choices, _, err := ChooseRows(r.SearchOf(), 4, turns, false)
		require.NoError(t, err)
		require.NoError(t, follow(turns, choices))
		want[0].Slots = []int32{0, 1, 2, 3, 4, 5, 6, 7}
		require.Equal(t, want, turns)
	}
}

// Choices that do not fit their turn are refused.
func TestChoicesThatDoNotFit(t *testing.T) {
	turns := func() []Turn { return []Turn{searchTurn(1, 2, make([]float64, 4), nil, nil)} }
	row := func(group int32, next ...int32) ChoiceRow { return ChoiceRow{Group: group, Next: next} }
	for _, choices := range [][]ChoiceRow{
		{row(0, 0), row(0)}, {row(0), row(0), row(1), row(1)}, {row(0, 1), row(0), row(1, 0), row(1)}, {row(0, 0, 1), row(0), row(1, 2), row(1)},
		{row(0, 0), row(0), row(1), row(1)}, {row(0, 0, 1, 2), row(0), row(1, 3), row(1)},
	} {
		require.ErrorIs(t, follow(turns(), choices), store.ErrInvalid, "%v", choices)
	}
	_, _, err := ChooseRows(spec.Search{Width: 3, Candidates: 1}, 2, turns(), false)
	require.ErrorIs(t, err, store.ErrInvalid)
}

func kept(rows []ChoiceRow) []int32 {
	var out []int32
	for _, r := range rows {
		if r.Kept {
			out = append(out, r.Row)
		}
	}
	return out
}
