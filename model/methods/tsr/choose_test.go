package tsr

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

// A group of two is one search of two prefixes with two candidates each. Its best two prefixes of a
// turn may share their parent; one that ended competes with its score and is played no further.
func TestBeamSearchOverTurns(t *testing.T) {
	s := Beam.Breadth(option.Values{"beam": 2, "candidates": 2})
	first := episodetest.Turn(1, 4, []float64{0, 1, 3, 2, 5, 5, 5, 5}, nil, []bool{false, false, true, false, false, false, false, false})
	choices, over, err := choose(s, 4, []episode.Turn{first}, false)
	require.NoError(t, err)
	require.False(t, over)
	require.Equal(t, []int32{2, 3, 4, 5}, kept(choices), "equal scores keep the first")
	require.Equal(t, []int32{0, 1}, choices[2].Next)
	require.Equal(t, []int32{2, 3}, choices[3].Next)
	require.Equal(t, []int32{6, 7}, choices[5].Next)

	turns := []episode.Turn{first}
	require.NoError(t, episode.Follow(turns, choices))
	require.Equal(t, []int32{2, 2, 3, 3, 4, 4, 5, 5}, turns[0].Slots)
	// Rows 0 and 1 are the episode that ended. Of the other prefix both candidates are worse than it
	// or better.
	alive := []bool{false, false, true, true, true, true, true, true}
	turns = append(turns, episodetest.Turn(2, 4, []float64{0, 0, 2, 1.5, 0, 1, 2, 3}, alive, alive))
	choices, over, err = choose(s, 4, turns, false)
	require.NoError(t, err)
	require.True(t, over, "all that are kept have ended")
	require.Equal(t, []int32{2, 3, 6, 7}, kept(choices))
	require.Equal(t, 4.0, choices[2].Score, "the sum over the turns")
	require.Equal(t, 3.0, choices[0].Score, "an episode that ended competes with its score")
	require.Equal(t, []int32{3}, choices[7].Next, "a trajectory each")

	require.NoError(t, episode.Follow(turns, choices))
	require.Len(t, turns[1].Generate, 4)
	require.Equal(t, []int32{3, 3, 5, 5}, turns[0].Slots)
	require.Equal(t, []int32{2, 3, 6, 7}, turns[1].Slots)
	require.Equal(t, []int32{103}, turns[0].Generate[1].SampledIDs)
	require.Equal(t, []int32{203}, turns[1].Generate[1].SampledIDs)
	require.Equal(t, []int32{1, 1, 1}, []int32{turns[1].Generate[3].Group, turns[1].Generate[3].Member, turns[1].Step[3].Member})

	// What trajectories share is marked, and learned from once; in the second if the first is left out.
	branches := episode.Branches(turns, 4)
	require.Equal(t, []episode.BranchRow{
		{Row: 4, Slot: 3}, {Row: 4, Turn: 1, Slot: 2}, {Row: 5, Slot: 3, Inherited: true}, {Row: 5, Turn: 1, Slot: 3}, {Row: 6, Slot: 5}, {Row: 6, Turn: 1, Slot: 6}, {Row: 7, Slot: 5, Inherited: true}, {Row: 7, Turn: 1, Slot: 7},
	}, branches)
	rows := make([]episode.TrajectoryRow, 4)
	for i := range rows {
		rows[i] = episode.TrajectoryRow{Row: int32(4 + i), Group: int32(i / 2), PromptLengths: make([]int32, 2)}
	}
	trained, err := episode.Trained(rows, branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true}, {false, true}, {true, true}, {false, true}}, trained)
	trained, err = episode.Trained(rows[1:], branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true}, {true, true}, {false, true}}, trained)
	_, err = episode.Trained([]episode.TrajectoryRow{{Row: 9, PromptLengths: make([]int32, 1)}}, branches)
	require.ErrorIs(t, err, store.ErrInvalid)

	played := []episode.Turn{first, episodetest.Turn(2, 4, make([]float64, 8), alive, nil)}
	require.Equal(t, episode.Searched{Turns: 6 + 2, Tokens: 8}, episode.SearchedOf(played, branches))
}

// Best of n compares whole trajectories, of which some ended before others.
func TestBestOfWhole(t *testing.T) {
	s := BestOfN.Breadth(option.Values{"candidates": 2})
	turns := []episode.Turn{
		episodetest.Turn(1, 4, []float64{4, 1, 0, 0, 0, 1, 0, 0}, nil, []bool{true, false, false, false, false, false, false, false}),
		episodetest.Turn(2, 4, []float64{0, 2, 1, 2, 0, 0, 3, 2}, []bool{false, true, true, true, true, true, true, true}, nil),
	}
	choices, _, err := choose(s, 4, turns, true)
	require.NoError(t, err)
	require.Equal(t, []int32{0, 3, 5, 6}, kept(choices))
	require.NoError(t, episode.Follow(turns, choices))
	require.False(t, turns[1].Generate[0].Alive)
	require.Equal(t, []int32{203}, turns[1].Generate[1].SampledIDs)
}

// With one candidate nothing moves, whatever the scores are.
func TestSearchWithOneCandidateMovesNothing(t *testing.T) {
	one := option.Values{"candidates": 1}
	for _, how := range []search.Breadth{
		Beam.Breadth(option.Values{"beam": 2, "candidates": 1}), Beam.Breadth(option.Values{"beam": 4, "candidates": 1}), Greedy.Breadth(one), BestOfN.Breadth(one),
		Lookahead.Breadth(option.Values{"candidates": 1, "depth": 3}),
	} {
		turns := []episode.Turn{episodetest.Turn(1, 4, []float64{0, 3, 1, 2, 7, 5, 6, 4}, nil, nil)}
		want := []episode.Turn{episodetest.Turn(1, 4, []float64{0, 3, 1, 2, 7, 5, 6, 4}, nil, nil)}
		choices, _, err := choose(how, 4, turns, false)
		require.NoError(t, err)
		require.NoError(t, episode.Follow(turns, choices))
		want[0].Slots = []int32{0, 1, 2, 3, 4, 5, 6, 7}
		require.Equal(t, want, turns)
	}
}

func kept(rows []episode.ChoiceRow) []int32 {
	var out []int32
	for _, r := range rows {
		if r.Kept {
			out = append(out, r.Row)
		}
	}
	return out
}

// playSearch plays a round of searches at random and stores it as the steps of a rollout do. It returns the stored
// turns, and the tokens that were sampled.
func playSearch(t *testing.T, s store.Store, how search.Breadth, groups, slots, most, round int, seed uint64) (refs []store.TurnRefs, tokens int) {
	t.Helper()
	numbers := rand.New(rand.NewPCG(seed, uint64(round)))
	for turn, over := 1, false; !over; turn++ {
		before, err := recorded.Turns(t.Context(), s, refs)
		require.NoError(t, err)
		var now episode.Turn
		for i := range groups * slots {
			g := episode.GenerateRow{Row: int32(i), Group: int32(i / slots), Member: int32(i % slots)}
			g.Alive = i%slots%how.Apart(turn) == 0
			if turn > 1 {
				last := before[turn-2]
				g.Alive = g.Alive && last.Generate[i].Alive && !last.Step[i].Done
			}
			st := episode.StepRow{Row: g.Row, Group: g.Group, Member: g.Member, Alive: g.Alive, Done: true}
			if g.Alive {
				for range 1 + numbers.IntN(3) {
					tokens++
					g.SampledIDs = append(g.SampledIDs, int32(tokens))
				}
				st.Done, st.Reward = turn == most || numbers.IntN(4) == 0, float64(numbers.IntN(3))
			}
			now.Generate, now.Step = append(now.Generate, g), append(now.Step, st)
		}
		refs = append(refs, episodetest.PutTurn(t, s, round, now))
		turns, err := recorded.Turns(t.Context(), s, refs)
		require.NoError(t, err)
		var choices []episode.ChoiceRow
		over = turn == most
		if !how.Whole {
			choices, over, err = choose(how, slots, turns, over)
			require.NoError(t, err)
		} else if over {
			choices, _, err = choose(how, slots, turns, true)
			require.NoError(t, err)
		}
		if choices != nil {
			ref := episodetest.Put(t, s, choices)
			refs[len(refs)-1].Choices = &ref
		}
	}
	return refs, tokens
}

// Whatever the search and the round, each sampled token is in the trajectories, or it is inherited or was not
// kept.
func TestTokensOfSearchesAreKept(t *testing.T) {
	for _, r := range []struct {
		search.Method
		options option.Values
		size    int
	}{
		{Beam, option.Values{"beam": 2, "candidates": 2}, 4}, {Greedy, option.Values{"candidates": 3}, 2},
		{BestOfN, option.Values{"candidates": 3}, 2}, {Lookahead, option.Values{"candidates": 2, "depth": 2}, 2},
	} {
		how := r.Breadth(r.options)
		for seed := range uint64(3) {
			s := store.NewMemory()
			const groups, most = 2, 4
			for round := range 2 {
				refs, tokens := playSearch(t, s, how, groups, r.size*how.Slots()/how.Width, most, round, seed)
				turns, err := recorded.Turns(t.Context(), s, refs)
				require.NoError(t, err)
				require.Len(t, turns[0].Generate, groups*r.size, r.Name)
				branches := episode.Branches(turns, 0)
				var rows []episode.TrajectoryRow
				for i := range turns[0].Generate {
					row := episode.TrajectoryRow{Row: int32(i), Group: turns[0].Generate[i].Group}
					for _, turn := range turns {
						if g := turn.Generate[i]; g.Alive {
							require.EqualValues(t, i/r.size, g.Group, "a row stays in its group")
							row.PromptLengths, row.SampledLengths = append(row.PromptLengths, 0), append(row.SampledLengths, int32(len(g.SampledIDs)))
						}
					}
					rows = append(rows, row)
				}
				var played []episode.Turn
				for _, ref := range refs {
					ref.Choices = nil
					turn, err := recorded.Turns(t.Context(), s, []store.TurnRefs{ref})
					require.NoError(t, err)
					played = append(played, turn...)
				}
				require.Equal(t, tokens, episode.SampledTokens(rows, branches)+episode.SearchedOf(played, branches).Tokens, "%s, seed %d", r.Name, seed)
				trained, err := episode.Trained(rows, branches)
				require.NoError(t, err)
				learned := 0
				for i, of := range trained {
					for k, yes := range of {
						if yes {
							learned += int(rows[i].SampledLengths[k])
						}
					}
				}
				require.Equal(t, episode.SampledTokens(rows, branches), learned, "%s, seed %d", r.Name, seed)
			}
		}
	}
}

// Each search of a group chooses among its own slots, in every group: a better row of another search or group
// makes no difference.
func TestSearchesOfAGroupAreApart(t *testing.T) {
	s := Greedy.Breadth(option.Values{"candidates": 2})
	// Two groups of two searches of two candidates.
	turns := []episode.Turn{episodetest.Turn(1, 4, []float64{1, 0, 8, 9, -3, -2, -5, -5}, nil, nil)}
	choices, over, err := choose(s, 4, turns, false)
	require.NoError(t, err)
	require.False(t, over)
	require.Equal(t, []int32{0, 3, 5, 6}, kept(choices), "equal scores keep the first")
	for i, want := range []episode.ChoiceRow{
		{Row: 0, Group: 0, Member: 0, Alive: true, Score: 1, Kept: true, Next: []int32{0, 1}}, {Row: 1, Group: 0, Member: 1, Alive: true},
		{Row: 2, Group: 0, Member: 2, Alive: true, Score: 8}, {Row: 3, Group: 0, Member: 3, Alive: true, Score: 9, Kept: true, Next: []int32{2, 3}},
		{Row: 4, Group: 1, Member: 0, Alive: true, Score: -3}, {Row: 5, Group: 1, Member: 1, Alive: true, Score: -2, Kept: true, Next: []int32{4, 5}},
		{Row: 6, Group: 1, Member: 2, Alive: true, Score: -5, Kept: true, Next: []int32{6, 7}}, {Row: 7, Group: 1, Member: 3, Alive: true, Score: -5},
	} {
		require.Equal(t, want, choices[i])
	}
	last, _, err := choose(s, 4, turns, true)
	require.NoError(t, err)
	require.Equal(t, [][]int32{{0}, {1}, {2}, {3}}, [][]int32{last[0].Next, last[3].Next, last[5].Next, last[6].Next}, "a trajectory each")

	// Penalties count as rewards do, and those of a row that had ended do not.
	turns[0].Step[1].Penalty, turns[0].Step[0].Penalty = 0, -2
	choices, _, err = choose(s, 4, turns, false)
	require.NoError(t, err)
	require.Equal(t, []int32{1, 3, 5, 6}, kept(choices))
	require.Equal(t, -1.0, choices[0].Score)
}

// A turn that does not fit a search is refused.
func TestChoosingThatDoesNotFit(t *testing.T) {
	_, _, err := choose(search.Breadth{Width: 3, Candidates: 1}, 2, []episode.Turn{episodetest.Turn(1, 2, make([]float64, 4), nil, nil)}, false)
	require.ErrorIs(t, err, store.ErrInvalid)
}
