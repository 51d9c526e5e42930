package pivots

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

func forksOf(o option.Values, t search.Trees, turns []episode.Turn, before []search.Branched, address func(int) draw.Address) ([]episode.ForkRow, error) {
	return Search.Fork(search.Forking{Trees: t, Options: o, Wave: 1, Turns: turns, Before: before, Address: address})
}

// unplayed drops the rows that have no turns, as a selection does.
func unplayed(rows []episode.TrajectoryRow) {
	for i := range rows {
		rows[i].Dropped = rows[i].Turns() == 0
	}
}

// Branches of a trajectory that failed begin at one turn of it, not the last. One that succeeded, or has a
// single turn, has none.
func TestPivotsOfFailedTrajectories(t *testing.T) {
	trees := search.Trees{Trees: 2, Branches: 2, Expansions: 1}
	roots := func(more ...bool) []bool { // of two groups of six
		out := make([]bool, 12)
		for i, yes := range more {
			out[i/2*6+i%2] = yes
		}
		return out
	}
	// The first group's trajectories have three turns without a reward, and one turn. The second's have a reward
	// in the second of three turns, and fail after two.
	rewarded := make([]float64, 12)
	rewarded[6] = 1
	turns := []episode.Turn{
		episodetest.Turn(1, 6, make([]float64, 12), roots(true, true, true, true), roots(false, true, false, false)),
		episodetest.Turn(2, 6, rewarded, roots(true, false, true, true), roots(false, false, false, true)),
		episodetest.Turn(3, 6, make([]float64, 12), roots(true, false, true, false), roots(true, false, true, false)),
	}
	address := func(group int) draw.Address { return draw.Address{Purpose: draw.Fork, Group: int64(group)} }
	forks, err := forksOf(nil, trees, turns, nil, address)
	require.NoError(t, err)
	require.Len(t, forks, 4)
	for i, want := range []episode.ForkRow{{Row: 2, Member: 2}, {Row: 3, Member: 3}, {Row: 10, Group: 1, Member: 4, Parent: 7, Turn: 1, Places: 1}, {Row: 11, Group: 1, Member: 5, Parent: 7, Turn: 1, Places: 1}} {
		got := forks[i]
		a := address(int(want.Group))
		a.Member, a.Turn = int64(want.Parent%6), 1
		require.Equal(t, a.Rand().Float64(), got.Draw, "siblings share one draw")
		if want.Parent == 0 {
			want.Places, want.Turn = 2, 2
			if got.Draw < 1.0/5 { // the places weigh (1/3)² and (2/3)²
				want.Turn = 1
			}
		}
		want.Draw = got.Draw
		require.Equal(t, want, got)
	}
	// Branches that were saved early alone make early pivots likelier: with a fit, other draws take the first place.
	var before []search.Branched
	for range 200 {
		before = append(before, search.Branched{Position: 1.0 / 3, Saved: true}, search.Branched{Position: 2.0 / 3, Saved: false})
	}
	fitted, err := forksOf(nil, trees, turns, before, address)
	require.NoError(t, err)
	require.EqualValues(t, 1, fitted[0].Turn)
	require.Less(t, fitted[0].Draw, .9)

	_, err = forksOf(nil, trees, turns, []search.Branched{{Position: 2}}, address)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// A pivot was worth it if one of its branches succeeds. The oldest are forgotten.
func TestPivotsAreLabelled(t *testing.T) {
	trees := search.Trees{Trees: 2, Branches: 2, Expansions: 1}
	row := func(member int32, rewards ...float64) episode.TrajectoryRow {
		return episode.TrajectoryRow{Row: member, Member: member, Rewards: rewards, PromptLengths: make([]int32, len(rewards))}
	}
	rows := []episode.TrajectoryRow{row(0, 0, 0, 0, 0), row(1, 0, 1), row(2, 0, 0), row(3, 0, 0, 1), row(4), row(5)}
	unplayed(rows)
	before := make([]search.Branched, newestPivots)
	before[0].Saved = true
	after, metrics := remember(trees, before, rows, []episode.BranchRow{{}, {Row: 2, Inherited: true}, {Row: 2, Turn: 1, Slot: 2}, {Row: 3, Inherited: true}})
	require.Len(t, after, newestPivots)
	require.False(t, after[0].Saved)
	require.Equal(t, search.Branched{Position: .25, Saved: true}, after[newestPivots-1])
	require.Equal(t, []float64{1, 1}, []float64{metrics["pivots/number"], metrics["pivots/saved"]})
	after, metrics = remember(trees, nil, []episode.TrajectoryRow{row(0, 0), row(1, 1), {Dropped: true}, {Dropped: true}, {Dropped: true}, {Dropped: true}}, nil)
	require.NotNil(t, after)
	require.Empty(t, after)
	require.Zero(t, metrics["pivots/saved"])
}

// The pivots of each group and tree are its own, in every round, and so are their places. The newest come last, and
// the buffer keeps so many.
func TestPivotsOfGroups(t *testing.T) {
	trees := search.Trees{Trees: 2, Branches: 2, Expansions: 1}
	row := func(at int32, rewards ...float64) episode.TrajectoryRow {
		return episode.TrajectoryRow{Row: at, Group: at / 6, Member: at % 6, Rewards: rewards, PromptLengths: make([]int32, len(rewards))}
	}
	rows := []episode.TrajectoryRow{
		row(0, 0, 0), row(1, 0, 1), row(2, 0, 0), row(3, 0), row(4), row(5), // the first tree has a pivot after one of two turns
		row(6, 0, 0, 0, 0, 0), row(7, 0, 0, 0, 0), row(8), row(9, 0, 0, 1), row(10, 0), row(11, -1, 1), // both trees have one
	}
	unplayed(rows)
	branches := []episode.BranchRow{{Row: 2, Inherited: true}, {Row: 2, Turn: 1, Slot: 2}, {Row: 3, Inherited: true}, {Row: 9, Slot: 6, Inherited: true}, {Row: 9, Turn: 1, Slot: 6, Inherited: true}, {Row: 10, Slot: 7, Inherited: true}, {Row: 11, Slot: 7, Inherited: true}, {Row: 8, Slot: 6, Inherited: true}, {Row: 8, Turn: 1, Slot: 6, Inherited: true}}
	after, m := remember(trees, []search.Branched{{Position: .1}}, rows, branches)
	require.Equal(t, []search.Branched{{Position: .1, Saved: false}, {Position: .5, Saved: false}, {Position: .4, Saved: true}, {Position: .25, Saved: false}}, after, "a sum of 0 is no success")
	require.Equal(t, []float64{3, 1.0 / 3}, []float64{m["pivots/number"], m["pivots/saved"]})
	again, _ := remember(trees, []search.Branched{{Position: .1}}, rows, branches)
	require.Equal(t, after, again)
	for _, n := range []int{9_996, 9_997, 9_998} {
		after, _ := remember(trees, make([]search.Branched, n), rows, branches)
		require.Len(t, after, min(n+3, 10_000))
		require.Equal(t, search.Branched{Position: .25, Saved: false}, after[len(after)-1])
	}
}

// A trajectory whose rewards add up to 0 has failed, and one above has not; the weight of branches is over the tokens of
// the batch, in whatever group the branch is.
func TestPivotsAtTheBoundary(t *testing.T) {
	trees := search.Trees{Trees: 1, Branches: 1, Expansions: 1}
	turn := func(n int, rewards ...float64) episode.Turn {
		out := episodetest.Turn(n, 2, rewards, []bool{true, false, true, false, true, false}, nil)
		for i := range out.Step {
			out.Step[i].Reward = rewards[i]
		}
		return out
	}
	turns := []episode.Turn{turn(1, 1, 0, 1, 0, 1, 0), turn(2, -1, 0, -.75, 0, -1.25, 0)}
	forks, err := forksOf(option.Values{"pivot_gamma": 1.0}, trees, turns, nil, func(group int) draw.Address { return draw.Address{Group: int64(group)} })
	require.NoError(t, err)
	require.Equal(t, []int32{1, 5}, []int32{forks[0].Row, forks[1].Row})
	require.Len(t, forks, 2)
	_, err = forksOf(nil, search.Trees{Trees: 2, Branches: 1, Expansions: 1}, turns, nil, nil)
	require.ErrorIs(t, err, store.ErrInvalid, "six rows are no groups of four")
}
