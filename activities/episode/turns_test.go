package episode_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/infra/store"
)

// The turns of a round are read in their order, with both of their tables.
func TestReadTurns(t *testing.T) {
	s := store.NewMemory()
	first := episodetest.Turn(1, 2, []float64{1, 2, 3, 4}, nil, []bool{false, true, false, false})
	second := episodetest.Turn(2, 2, []float64{5, 0, 6, 7}, []bool{true, false, true, true}, []bool{true, true, true, true})
	for round := range 2 {
		refs := []store.TurnRefs{episodetest.PutTurn(t, s, round, first), episodetest.PutTurn(t, s, round, second)}
		turns, err := recorded.Turns(t.Context(), s, refs)
		require.NoError(t, err)
		require.Len(t, turns, 2)
		for row, want := range [][]int32{{100, 200}, {101}, {102, 202}, {103, 203}} {
			require.Equal(t, want, episodetest.Sampled(turns, row), "row %d", row)
		}
		require.Equal(t, []float64{6, 2, 9, 11}, []float64{episode.ScoreOf(turns, 0), episode.ScoreOf(turns, 1), episode.ScoreOf(turns, 2), episode.ScoreOf(turns, 3)})
		require.Nil(t, turns[0].Slots)
	}
	turns, err := recorded.Turns(t.Context(), s, nil)
	require.NoError(t, err)
	require.Empty(t, turns)
}

// Tables that do not fit each other are refused, and the error says in which turn.
func TestTurnsThatDoNotFit(t *testing.T) {
	s := store.NewMemory()
	four, two := episodetest.Turn(1, 2, make([]float64, 4), nil, nil), episodetest.Turn(1, 1, make([]float64, 2), nil, nil)
	of := func(turn episode.Turn) store.TurnRefs { return episodetest.PutTurn(t, s, 0, turn) }
	gone := of(four)
	gone.Step.Key = "runs/r/nothing"
	for name, c := range map[string]struct {
		refs []store.TurnRefs
		says string
		is   error
	}{
		"steps of fewer rows":   {[]store.TurnRefs{of(four), {Generate: of(four).Generate, Step: of(two).Step}}, "turn 2 has 4 sampled and 2 stepped rows", store.ErrInvalid},
		"samples of fewer rows": {[]store.TurnRefs{{Generate: of(two).Generate, Step: of(four).Step}}, "turn 1 has 2 sampled and 4 stepped rows", store.ErrInvalid},
		"a smaller turn":        {[]store.TurnRefs{of(four), of(two)}, "turn 2 has 2 sampled and 2 stepped rows", store.ErrInvalid},
		"a larger turn":         {[]store.TurnRefs{of(two), of(two), of(four)}, "turn 3 has 4 sampled and 4 stepped rows", store.ErrInvalid},
		"a table that is gone":  {[]store.TurnRefs{of(four), gone}, "runs/r/nothing", store.ErrNotFound},
	} {
		_, err := recorded.Turns(t.Context(), s, c.refs)
		require.ErrorIs(t, err, c.is, name)
		require.ErrorContains(t, err, c.says, name)
	}
	bad := of(four)
	choices := episodetest.Put(t, s, []episode.ChoiceRow{{Kept: true, Next: []int32{0}}})
	bad.Choices = &choices
	_, err := recorded.Turns(t.Context(), s, []store.TurnRefs{of(four), bad})
	require.ErrorContains(t, err, "turn 2: 1 choices about 4 rows")
	bad = of(four)
	forks := episodetest.Put(t, s, []episode.ForkRow{{Row: 9}})
	bad.Forks = &forks
	_, err = recorded.Turns(t.Context(), s, []store.TurnRefs{of(four), bad})
	require.ErrorContains(t, err, "turn 2: row 9 has 0 turns of row 0, of 4 rows and 2 turns")
}

// Choices after a turn give the later turns their past: the rows of the second turn continue those that the first
// choice kept, and the trajectories those that the second kept.
func TestReadTurnsOfASearch(t *testing.T) {
	s := store.NewMemory()
	// Two groups of one search with one prefix and two candidates.
	first, second := episodetest.PutTurn(t, s, 1, episodetest.Turn(1, 2, make([]float64, 4), nil, nil)), episodetest.PutTurn(t, s, 1, episodetest.Turn(2, 2, make([]float64, 4), nil, nil))
	one := episodetest.Put(t, s, []episode.ChoiceRow{{Row: 0}, {Row: 1, Kept: true, Next: []int32{0, 1}}, {Row: 2, Group: 1, Kept: true, Next: []int32{2, 3}}, {Row: 3, Group: 1}})
	two := episodetest.Put(t, s, []episode.ChoiceRow{{Row: 0, Kept: true, Next: []int32{0}}, {Row: 1}, {Row: 2, Group: 1}, {Row: 3, Group: 1, Kept: true, Next: []int32{1}}})
	first.Choices = &one
	turns, err := recorded.Turns(t.Context(), s, []store.TurnRefs{first})
	require.NoError(t, err)
	require.Equal(t, []int32{1, 1, 2, 2}, turns[0].Slots)

	turns, err = recorded.Turns(t.Context(), s, []store.TurnRefs{first, second})
	require.NoError(t, err)
	require.Equal(t, [][]int32{{101, 200}, {101, 201}, {102, 202}, {102, 203}}, [][]int32{episodetest.Sampled(turns, 0), episodetest.Sampled(turns, 1), episodetest.Sampled(turns, 2), episodetest.Sampled(turns, 3)})

	second.Choices = &two
	turns, err = recorded.Turns(t.Context(), s, []store.TurnRefs{first, second})
	require.NoError(t, err)
	require.Len(t, turns[0].Generate, 2)
	require.Equal(t, [][]int32{{101, 200}, {102, 203}}, [][]int32{episodetest.Sampled(turns, 0), episodetest.Sampled(turns, 1)})
	require.Equal(t, [][]int32{{1, 2}, {0, 3}}, [][]int32{turns[0].Slots, turns[1].Slots}, "the rows in which they were sampled")
}

// A rollout is cut into its rounds. What follows a round that is missing is left out.
func TestRounds(t *testing.T) {
	refs := func(rounds ...int) (out []store.TurnRefs) {
		for i, round := range rounds {
			out = append(out, store.TurnRefs{Round: round, Generate: store.Ref{Key: fmt.Sprint(i)}})
		}
		return out
	}
	for _, c := range []struct{ rounds, lengths []int }{
		{nil, nil},
		{[]int{0}, []int{1}},
		{[]int{0, 0, 0}, []int{3}},
		{[]int{0, 0, 1, 2, 2, 2}, []int{2, 1, 3}},
		{[]int{0, 0, 2}, []int{2}},
		{[]int{1, 1}, nil},
		{[]int{0, 1, 1, 3, 2}, []int{1, 2}},
	} {
		var lengths, keys []int
		for _, of := range episode.Rounds(refs(c.rounds...)) {
			lengths = append(lengths, len(of))
			for _, r := range of {
				var key int
				_, err := fmt.Sscan(r.Generate.Key, &key)
				require.NoError(t, err)
				keys = append(keys, key)
			}
		}
		require.Equal(t, c.lengths, lengths, "%v", c.rounds)
		require.True(t, slices.IsSorted(keys))
		for i, key := range keys {
			require.Equal(t, i, key, "each turn is in one round, in its order")
		}
	}
}

// A trajectory has what its turns have, as far as it is alive: those of a shorter episode end it, and the
// last turn says whether it succeeded.
func TestTrajectories(t *testing.T) {
	label := func(group int) string { return []string{"shop", "lake"}[group] }
	turn := func(n int32, alive ...bool) episode.Turn {
		var out episode.Turn
		for i, yes := range alive {
			row := int32(i)
			g := episode.GenerateRow{Row: row, Group: row / 2, Member: row % 2, Alive: yes}
			st := episode.StepRow{Row: row, Group: row / 2, Member: row % 2, Alive: yes, StateBefore: fmt.Sprint("s", row, "-", n-1), StateKey: fmt.Sprint("s", row, "-", n), Valid: true}
			if yes {
				g.PromptIDs, g.SampledIDs, g.Restart = []int32{10*n + row}, []int32{100*n + row, 200*n + row}, n == 1
				g.RolloutLogProbs = []float32{float32(-n), float32(-row)}
				st.Reward, st.Penalty = float64(10*n+row), -float64(n)/4
				st.Actions, st.Effective, st.Invalid = []string{"Up", fmt.Sprint("Go ", n)}, n, n+row
			} else {
				st.Valid, st.Success = false, true // padding is not read
				g.Truncated, st.ContextFull = true, true
			}
			out.Generate, out.Step = append(out.Generate, g), append(out.Step, st)
		}
		return out
	}
	turns := []episode.Turn{turn(1, true, true, true, true), turn(2, true, false, true, true)}
	turns[0].Step[0].Success = true // and the second turn lost it again
	turns[1].Step[2].Success = true
	turns[0].Step[3].Valid, turns[0].Generate[3].Truncated = false, true
	turns[0].Step[2].ContextFull = true
	turns[1].Step[3].Actions = nil
	rows := episode.Trajectories(turns, label)
	require.Len(t, rows, 4)
	require.Equal(t, episode.TrajectoryRow{
		Row: 0, Group: 0, Member: 0, Environment: "shop", IDs: []int32{10, 100, 200, 20, 200, 400}, PromptLengths: []int32{1, 1}, SampledLengths: []int32{2, 2},
		Restarts: []bool{true, false}, StateKeys: []string{"s0-0", "s0-1", "s0-2"}, RolloutLogProbs: []float32{-1, 0, -2, 0},
		Rewards: []float64{10, 20}, Penalties: []float64{-0.25, -0.5}, Actions: []string{"Up || Go 1", "Up || Go 2"},
		Executed: []int32{2, 2}, Effective: []int32{1, 2}, Invalid: []int32{1, 2}, Valid: true,
	}, rows[0])
	require.Equal(t, episode.TrajectoryRow{
		Row: 1, Group: 0, Member: 1, Environment: "shop", IDs: []int32{11, 101, 201}, PromptLengths: []int32{1}, SampledLengths: []int32{2},
		Restarts: []bool{true}, StateKeys: []string{"s1-0", "s1-1"}, RolloutLogProbs: []float32{-1, -1},
		Rewards: []float64{11}, Penalties: []float64{-0.25}, Actions: []string{"Up || Go 1"},
		Executed: []int32{2}, Effective: []int32{1}, Invalid: []int32{2}, Valid: true,
	}, rows[1])
	for i, want := range []struct {
		environment               string
		valid, truncated, success bool
	}{{"shop", true, false, false}, {"shop", true, false, false}, {"lake", true, true, true}, {"lake", false, true, false}} {
		r := rows[i]
		require.Equal(t, want.environment, r.Environment)
		require.Equal(t, []bool{want.valid, want.truncated, want.success}, []bool{r.Valid, r.Truncated, r.Success}, "row %d", i)
	}
	require.Equal(t, []string{"Up || Go 1", ""}, rows[3].Actions)
	require.Equal(t, []int32{2, 0}, rows[3].Executed)
}
