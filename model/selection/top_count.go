package selection

import (
	"cmp"
	"slices"
)

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
