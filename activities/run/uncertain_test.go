package run

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Branches begin after turns that another one follows, rather where the policy had become less certain,
// and rows that are left begin anew.
func TestUncertainForks(t *testing.T) {
	trees := spec.Rollout{Search: spec.EntropySearch, GroupSize: 6, Trees: 3, Branches: 2}.TreesOf()
	const vocabulary = 100
	turns := func(second float64) []Turn {
		var out []Turn
		for turn, p := range []float64{0.5, second, 0.5} {
			alive := []bool{true, true, turn < 2, false, false, false} // the third trajectory has two turns
			played := searchTurn(turn+1, 6, make([]float64, 6), alive, make([]bool, 6))
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
		got, err := UncertainForks(trees, vocabulary, turns(second), address)
		require.NoError(t, err)
		var want []ForkRow
		begin := func(f ForkRow) {
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
						begin(ForkRow{Parent: int32(member), Turn: int32(turn + 1), Draw: u})
					}
				}
			}
		}
		for len(want) < 3 {
			begin(ForkRow{})
		}
		require.Equal(t, want, got, second)
	}

	// Nobody is asked where nobody goes on: all begin anew.
	got, err := UncertainForks(trees, vocabulary, turns(0.5)[:1], address)
	require.NoError(t, err)
	require.Equal(t, []ForkRow{{Row: 3, Member: 3, Places: 1}, {Row: 4, Member: 4, Places: 1}, {Row: 5, Member: 5, Places: 1}}, got)

	// The less certain the policy has become, the more begin: of many groups, whose draws differ.
	begun := func(second float64) (n int) {
		for group := range 200 {
			forks, err := UncertainForks(spec.Rollout{Search: spec.EntropySearch, GroupSize: 6, Trees: 3}.TreesOf(), vocabulary, turns(second),
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

	_, err = UncertainForks(trees, 1, turns(0.5), address)
	require.ErrorIs(t, err, store.ErrInvalid)
	unknown := turns(math.NaN())
	_, err = UncertainForks(trees, vocabulary, unknown, address)
	require.ErrorIs(t, err, store.ErrInvalid)
}
