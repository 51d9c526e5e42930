package entropy

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

func forksOf(o option.Values, t search.Trees, vocabulary int, turns []episode.Turn, address func(int) draw.Address) ([]episode.ForkRow, error) {
	return Search.Fork(search.Forking{Trees: t, Options: o, Wave: 1, Vocabulary: vocabulary, Turns: turns, Address: address})
}

// Branches begin after turns that another one follows, rather where the policy had become less certain,
// and rows that are left begin anew.
func TestUncertainForks(t *testing.T) {
	trees := Search.Trees(option.Values{"trees": 3, "branches": 2}, 6)
	const vocabulary = 100
	turns := func(second float64) []episode.Turn {
		var out []episode.Turn
		for turn, p := range []float64{0.5, second, 0.5} {
			alive := []bool{true, true, turn < 2, false, false, false} // the third trajectory has two turns
			played := episodetest.Turn(turn+1, 6, make([]float64, 6), alive, make([]bool, 6))
			for i := range played.Generate {
				// The tokens after the twentieth are not read.
				played.Generate[i].RolloutLogProbs = append(slices.Repeat([]float32{float32(math.Log(p))}, firstTokens), -50)
			}
			out = append(out, played)
		}
		return out
	}
	address := func(group int) draw.Address { return draw.Address{Purpose: draw.Fork, Group: int64(group)} }
	asked := func(member, turn, number int) float64 {
		a := address(0)
		a.Member, a.Turn, a.Step = int64(member), int64(turn), int64(number)
		return a.Rand().Float64()
	}
	for _, second := range []float64{0.5, 0.9, 1e-6} {
		got, err := forksOf(nil, trees, vocabulary, turns(second), address)
		require.NoError(t, err)
		var want []episode.ForkRow
		begin := func(f episode.ForkRow) {
			if len(want) < 3 {
				f.Row, f.Member, f.Places = int32(3+len(want)), int32(3+len(want)), 1
				want = append(want, f)
			}
		}
		for turn, members := range [][]int{{0, 1, 2}, {0, 1}} {
			less := 0.0
			if turn == 1 {
				less = (math.Log(0.5) - math.Log(second)) / math.Log(vocabulary)
			}
			for _, member := range members {
				for number := range 2 {
					if u := asked(member, turn+1, number); u-0.2*less <= 0.5 {
						begin(episode.ForkRow{Parent: int32(member), Turn: int32(turn + 1), Draw: u})
					}
				}
			}
		}
		for len(want) < 3 {
			begin(episode.ForkRow{})
		}
		require.Equal(t, want, got, second)
	}

	// Nobody is asked where nobody goes on: all begin anew.
	got, err := forksOf(nil, trees, vocabulary, turns(0.5)[:1], address)
	require.NoError(t, err)
	require.Equal(t, []episode.ForkRow{{Row: 3, Member: 3, Places: 1}, {Row: 4, Member: 4, Places: 1}, {Row: 5, Member: 5, Places: 1}}, got)

	// The less certain the policy has become, the more begin: of many groups, whose draws differ.
	begun := func(second float64) (n int) {
		for group := range 200 {
			forks, err := forksOf(nil, Search.Trees(option.Values{"trees": 3}, 6), vocabulary, turns(second),
				func(int) draw.Address { return address(group) })
			require.NoError(t, err)
			for _, f := range forks {
				if f.Turn == 2 {
					n++
				}
			}
		}
		return n
	}
	require.Greater(t, begun(1e-12), begun(0.5))
	require.Greater(t, begun(0.5), begun(1))

	_, err = forksOf(nil, trees, 1, turns(0.5), address)
	require.ErrorIs(t, err, store.ErrInvalid)
	unknown := turns(math.NaN())
	_, err = forksOf(nil, trees, vocabulary, unknown, address)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// Each group has its own draws and its own rows, and a turn that the group has no room for begins nothing.
func TestUncertainForksOfGroups(t *testing.T) {
	trees := search.Trees{Trees: 2, Branches: 2, Expansions: 1, Rows: 2}
	turns := []episode.Turn{episodetest.Turn(1, 4, make([]float64, 12), nil, nil), episodetest.Turn(2, 4, make([]float64, 12), nil, nil), episodetest.Turn(3, 4, make([]float64, 12), nil, nil)}
	turns[1].Generate[4].Alive, turns[2].Generate[4].Alive = false, false // the first of the second group has one turn
	turns[1].Generate[8].Alive, turns[1].Generate[9].Alive = false, false // the third group's have one
	turns[2].Generate[8].Alive, turns[2].Generate[9].Alive = false, false
	address := func(group int) draw.Address { return draw.Address{Purpose: draw.Fork, Group: int64(20 + group)} }
	forks, err := forksOf(option.Values{"branch_probability": 1.0}, trees, 100, turns, address)
	require.NoError(t, err)
	u := func(group, member, turn, number int) float64 {
		a := address(group)
		a.Member, a.Turn, a.Step = int64(member), int64(turn), int64(number)
		return a.Rand().Float64()
	}
	// With a probability of 1 every question begins a branch.
	require.Equal(t, []episode.ForkRow{
		{Row: 2, Group: 0, Member: 2, Parent: 0, Turn: 1, Places: 1, Draw: u(0, 0, 1, 0)}, {Row: 3, Group: 0, Member: 3, Parent: 0, Turn: 1, Places: 1, Draw: u(0, 0, 1, 1)},
		{Row: 6, Group: 1, Member: 2, Parent: 5, Turn: 1, Places: 1, Draw: u(1, 1, 1, 0)}, {Row: 7, Group: 1, Member: 3, Parent: 5, Turn: 1, Places: 1, Draw: u(1, 1, 1, 1)},
		{Row: 10, Group: 2, Member: 2, Parent: 8, Places: 1}, {Row: 11, Group: 2, Member: 3, Parent: 8, Places: 1},
	}, forks)
	require.Equal(t, 1, episode.FirstTurn(forks))
	_, err = forksOf(option.Values{"branch_probability": 1.0}, trees, 100, []episode.Turn{episodetest.Turn(1, 3, make([]float64, 6), nil, nil)}, address)
	require.ErrorIs(t, err, store.ErrInvalid, "six rows are no groups of four")
}

// How uncertain a turn is, is the mean over its first tokens, over the logarithm of the vocabulary.
func TestSurprise(t *testing.T) {
	l := float32(math.Log(10))
	turn := func(logProbs ...float32) episode.GenerateRow { return episode.GenerateRow{RolloutLogProbs: logProbs} }
	require.InDelta(t, 1, surprise(turn(-2*l), 100), 1e-6)
	require.InDelta(t, .75, surprise(turn(-l, -2*l), 100), 1e-6)
	require.Zero(t, surprise(turn(), 100))
	twenty := slices.Repeat([]float32{-l}, 20)
	require.InDelta(t, .5, surprise(turn(twenty...), 100), 1e-6)
	require.InDelta(t, .5, surprise(turn(append(twenty, -50)...), 100), 1e-6, "the twenty-first is not read")
	twenty[19] = -21 * l
	require.InDelta(t, 1, surprise(turn(twenty...), 100), 1e-6, "the twentieth is")
}
