package selection

import (
	"cmp"
	"math"
	"slices"
)

// TopFraction keeps the groups with the highest scores: ⌊keep·groups⌋ of them
// (RAGEN), at least one where there is any. Of equal scores the lower index is
// kept. keep is in (0, 1].
//
// It is risk-seeking: among groups of few members the ones that were lucky vary
// most, so with a rare reward it learns to gamble (RAGEN's Bandit with the high
// arm at 0.10 still learns the high arm).
func TopFraction(scores []float64, keep float64) []int {
	// The small addend undoes the rounding of products such as 0.29·100.
	n := int(math.Floor(keep*float64(len(scores)) + 1e-9))
	n = min(max(n, 1), len(scores))
	order := All(len(scores))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	kept := order[:n]
	slices.Sort(kept)
	return kept
}
