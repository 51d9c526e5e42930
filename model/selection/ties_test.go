package selection

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// tiedSizes are numbers of groups at which an unstable sort shows: Go's sorts up
// to 12 elements by insertion, which is stable by accident.
var tiedSizes = []int{13, 16, 64, 300}

// tiedRewards gives groups of two members with only three different standard deviations
// and means, in an order drawn from the seed.
func tiedRewards(groups int, seed uint64) [][]float64 {
	r := rand.New(rand.NewPCG(seed, uint64(groups)))
	out := make([][]float64, groups)
	for g := range out {
		high := []float64{0.25, 0.5, 1}[r.IntN(3)]
		out[g] = []float64{0, high}
	}
	return out
}

// If scores are equal, the lower index is kept, whatever the method, the metric, the
// order and the number of groups. Each case cuts through groups that are tied, so that it
// could come out wrong.
func TestTiesKeepTheLowerIndex(t *testing.T) {
	cuts := map[string][]float64{
		"top_fraction":  {0.1, 0.25, 0.5, 0.8},
		"top_count":     {1, 2, 5, 11},
		"top_p":         {0.1, 0.3, 0.5, 0.9},
		"top_p_softmax": {0.1, 0.3, 0.5, 0.9},
	}
	for _, method := range methods {
		if method == "all" || method == "min_p" {
			continue // they keep all that are tied or none
		}
		require.NotEmpty(t, cuts[method], "a method that ranks groups needs its cases here: %s", method)
		for _, order := range []Order{Largest, Smallest} {
			for _, groups := range tiedSizes {
				t.Run(fmt.Sprintf("%s/%s/%d", method, order, groups), func(t *testing.T) {
					through := 0
					for seed := range uint64(4) {
						rewards := tiedRewards(groups, seed)
						input := Groups{Rewards: rewards, Entropies: rewards, Exact: rewards, Lengths: rewards}
						for _, metric := range Metrics {
							for _, value := range cuts[method] {
								got, err := Select(input, Options{Method: method, Metric: metric.Name, Order: order, Value: value, DropFlat: seed%2 == 1})
								require.NoError(t, err)
								if cutsThrough(t, got) {
									through++
								}
							}
						}
					}
					require.Positive(t, through, "no case cuts through a tie")
				})
			}
		}
	}
}

// cutsThrough fails the test where a kept group has a dropped one of the same score
// before it, and reports whether any tie was cut.
func cutsThrough(t *testing.T, got Result) bool {
	t.Helper()
	kept := make([]bool, len(got.Scores))
	scoreKept := map[float64]bool{}
	for _, g := range got.Kept {
		kept[g] = true
		scoreKept[got.Scores[g]] = true
	}
	firstDropped := map[float64]int{}
	cut := false
	for g, score := range got.Scores {
		dropped, seen := firstDropped[score]
		switch {
		case kept[g] && seen:
			require.Fail(t, "a tie is broken by the higher index", "group %d is kept, group %d of the same score %v is not", g, dropped, score)
		case !kept[g] && !seen:
			firstDropped[score] = g
			cut = cut || scoreKept[score]
		}
	}
	return cut
}

// The ranking itself, in full: by score, of equal scores the lower index first.
func TestRankedIsStable(t *testing.T) {
	for _, groups := range tiedSizes {
		scores := make([]float64, groups)
		for g, group := range tiedRewards(groups, 9) {
			scores[g] = group[1]
		}
		for order, levels := range map[Order][]float64{Largest: {1, 0.5, 0.25}, Smallest: {0.25, 0.5, 1}} {
			var want []int
			for _, level := range levels {
				for g, score := range scores {
					if score == level {
						want = append(want, g)
					}
				}
			}
			require.Equal(t, want, ranked(scores, order), "%d groups, %s", groups, order)
		}
	}
}
