package selection

import (
	"cmp"
	"slices"
)

var topCount = Method{
	Name: "top_count", Kept: "the `count` with the highest s", Source: "RAGEN v2 `top_k_abs`", File: "top_count.go",
	Value: "count", Ranks: true,
	Fits: func(value float64, _ Order) bool {
		return value >= 1 && value <= 1<<31 && value == float64(int(value))
	},
	Choose: func(scores []float64, o Options, _ int) []int { return TopCount(scores, int(o.Value), o.Order) },
}

// TopCount keeps the n groups with the largest or smallest scores, or all if there are at
// most n (RAGEN v2's top_k_abs). n is at least 0.
func TopCount(scores []float64, n int, order Order) []int {
	kept := ranked(scores, order)[:min(n, len(scores))]
	slices.Sort(kept)
	return kept
}

// ranked returns the groups' indexes from the best score to the worst. Equal scores rank
// by index.
func ranked(scores []float64, order Order) []int {
	at := All(len(scores))
	slices.SortStableFunc(at, func(a, b int) int {
		if order == Smallest {
			return cmp.Compare(scores[a], scores[b])
		}
		return cmp.Compare(scores[b], scores[a])
	})
	return at
}
