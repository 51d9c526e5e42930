package episode_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/infra/store"
)

// Branches that do not fit the turns are refused.
func TestForksThatDoNotFit(t *testing.T) {
	turns := func() []episode.Turn {
		return []episode.Turn{episodetest.Turn(1, 2, make([]float64, 4), nil, []bool{false, false, true, false}), episodetest.Turn(2, 2, make([]float64, 4), []bool{true, true, false, true}, nil)}
	}
	require.NoError(t, episode.Inherit(turns(), []episode.ForkRow{{Row: 1, Parent: 0, Turn: 1}}))
	for _, f := range []episode.ForkRow{
		{Row: 4, Parent: 0}, {Row: 1, Parent: 1}, {Row: 1, Parent: -1}, {Row: 1, Parent: 0, Turn: 2}, {Row: 1, Parent: 0, Turn: -1},
		{Row: 3, Group: 1, Parent: 2, Turn: 1}, {Row: 3, Group: 1, Parent: 0, Turn: 1},
	} {
		require.ErrorIs(t, episode.Inherit(turns(), []episode.ForkRow{f}), store.ErrInvalid, "%v", f)
	}
	require.NoError(t, episode.Inherit(turns(), nil), "no row needs to branch")
}

// A wave is read as far as its next turn: which rows play it, which begin later, and which have ended. Of two
// waves the newer one counts.
func TestReadWave(t *testing.T) {
	s := store.NewMemory()
	ctx := t.Context()
	turn := func(n int, members ...int) episode.Turn { // two groups of four
		alive := make([]bool, 8)
		for _, m := range members {
			alive[m], alive[4+m] = true, true
		}
		out := episodetest.Turn(n, 4, make([]float64, 8), alive, nil)
		for i := range out.Step {
			out.Step[i].NextIDs, out.Step[i].NextRestart = []int32{int32(n)}, true
		}
		return out
	}
	put := func(turn episode.Turn, forks ...episode.ForkRow) store.TurnRefs {
		refs := episodetest.PutTurn(t, s, 1, turn)
		if forks != nil {
			ref := episodetest.Put(t, s, forks)
			refs.Forks = &ref
		}
		return refs
	}
	w, err := recorded.Wave(ctx, s, 0, 1, nil)
	require.NoError(t, err)
	require.Equal(t, episode.Wave{}, w)

	refs := []store.TurnRefs{put(turn(1, 0, 1)), put(turn(2, 0, 1))}
	w, err = recorded.Wave(ctx, s, 0, 3, refs)
	require.NoError(t, err)
	require.Len(t, w.Turns, 2)
	require.Nil(t, w.Playing)
	require.Zero(t, w.Asleep)

	// Member 2 of the first group begins anew, that of the second after a turn.
	refs = []store.TurnRefs{put(turn(1, 0, 1)), put(turn(2, 0, 1), episode.ForkRow{Row: 2, Member: 2}, episode.ForkRow{Row: 6, Group: 1, Member: 2, Parent: 5, Turn: 1})}
	w, err = recorded.Wave(ctx, s, 1, 1, refs)
	require.NoError(t, err)
	require.Empty(t, w.Turns)
	require.Equal(t, []bool{false, false, true, false, false, false, false, false}, w.Playing)
	require.Equal(t, 1, w.Asleep)

	refs = append(refs, put(turn(11, 2)))
	refs[2] = put(func() episode.Turn { // the second group's is asleep
		out := turn(11, 2)
		out.Generate[6].Alive = false
		return out
	}())
	w, err = recorded.Wave(ctx, s, 1, 2, refs)
	require.NoError(t, err)
	require.Len(t, w.Turns, 1)
	require.Equal(t, []bool{false, false, true, false, false, false, true, false}, w.Playing)
	require.Zero(t, w.Asleep)
	require.Equal(t, [][]int32{{100}, {1102}, {104}, {105}, {105}}, [][]int32{
		episodetest.Sampled(w.Turns, 0), episodetest.Sampled(w.Turns, 2), episodetest.Sampled(w.Turns, 4), episodetest.Sampled(w.Turns, 5), episodetest.Sampled(w.Turns, 6),
	})
	for row, st := range w.Turns[0].Step {
		playing := row == 2 || row == 6
		require.Equal(t, !playing, st.Done, "row %d", row)
		require.Equal(t, playing, st.NextIDs != nil)
		require.Equal(t, playing, st.NextRestart)
	}

	// The third turn's rows are those of the wave, though the tables have other rows' third turns.
	refs = append(refs, put(turn(12, 2)))
	w, err = recorded.Wave(ctx, s, 1, 3, refs)
	require.NoError(t, err)
	require.Equal(t, [][]int32{{100, 200}, {1102, 1202}, {105, 1206}}, [][]int32{episodetest.Sampled(w.Turns, 0), episodetest.Sampled(w.Turns, 2), episodetest.Sampled(w.Turns, 6)})

	// A second wave continues rows of the first.
	refs[3] = put(turn(12, 2), episode.ForkRow{Row: 3, Member: 3, Parent: 2, Turn: 1}, episode.ForkRow{Row: 7, Group: 1, Member: 3, Parent: 6, Turn: 1})
	w, err = recorded.Wave(ctx, s, 2, 2, refs)
	require.NoError(t, err)
	require.Equal(t, []bool{false, false, false, true, false, false, false, true}, w.Playing)
	require.Equal(t, [][]int32{{1102}, {105}}, [][]int32{episodetest.Sampled(w.Turns, 3), episodetest.Sampled(w.Turns, 7)})
	require.Equal(t, []int32{2, 5}, []int32{w.Turns[0].Slots[3], w.Turns[0].Slots[7]}, "a turn's slot is that of the row that sampled it")

	for _, c := range []struct {
		wave, turn int
		refs       []store.TurnRefs
		says       string
	}{
		{1, 1, refs[:1], "turn 1 of wave 1 after 1 turns"}, // no wave has begun
		{1, 0, refs, "turn 0 of wave 1 after 4 turns"},
		{1, 4, refs, "turn 4 of wave 1 after 4 turns"},
	} {
		_, err := recorded.Wave(ctx, s, c.wave, c.turn, c.refs)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, c.says)
	}
	w, err = recorded.Wave(ctx, s, 1, 3, refs)
	require.NoError(t, err, "the turn after the last one of any row")
	require.Len(t, w.Turns, 2)
}
