package study

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLure(t *testing.T) {
	for _, shared := range []bool{false, true} {
		s := Setting{Probability: 0.1, Shared: shared}
		for _, share := range []float64{0.1, 0.5, 1} {
			require.InDelta(t, 0.1, s.Lure(share, 8, 16, 8), 1e-9, "all groups kept tell the truth")
		}
		require.True(t, math.IsNaN(s.Lure(0, 8, 16, 2)))
	}
	// Two groups of two always choose the high arm; the group that varies more is kept.
	// With p = 1/2 half of the groups vary and pay one of two; the others pay both or
	// none: always a half.
	require.InDelta(t, 0.5, Setting{Probability: 0.5}.Lure(1, 2, 2, 1), 1e-9)
	// With p = 1/4 a group varies with 6/16 and then pays 1/2; it pays all with 1/16.
	// A group that varies is kept unless neither does: 1 − (10/16)². One that does not
	// pays 1/10 on average.
	varies := 1 - math.Pow(10.0/16, 2)
	require.InDelta(t, varies/2+(1-varies)/10, Setting{Probability: 0.25}.Lure(1, 2, 2, 1), 1e-9)
}

// TestLureIsWhatSelectionKeeps compares it with groups that are drawn.
func TestLureIsWhatSelectionKeeps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range []Setting{{Probability: 0.1}, {Probability: 0.25, Shared: true}} {
		var paid, pulled float64
		for range 20000 {
			type group struct{ deviation, high, wins float64 }
			groups := make([]group, 8)
			for g := range groups {
				payout := r.Float64() < s.Probability
				rewards := make([]float64, 16)
				for m := range rewards {
					rewards[m] = LowReward
					if r.Float64() < 0.5 {
						if !s.Shared {
							payout = r.Float64() < s.Probability
						}
						rewards[m] = 0
						groups[g].high++
						if payout {
							rewards[m] = HighReward
							groups[g].wins++
						}
					}
				}
				mean, squares := 0.0, 0.0
				for _, x := range rewards {
					mean += x / 16
				}
				for _, x := range rewards {
					squares += (x - mean) * (x - mean)
				}
				groups[g].deviation = squares
			}
			slices.SortFunc(groups, func(a, b group) int {
				if a.deviation > b.deviation {
					return -1
				}
				return 1
			})
			for _, g := range groups[:2] {
				paid, pulled = paid+g.wins, pulled+g.high
			}
		}
		require.InDelta(t, paid/pulled, s.Lure(0.5, 8, 16, 2), 0.006)
	}
}
