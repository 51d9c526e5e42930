package selection

import "math"

// TopFraction keeps the groups with the highest scores: ⌊keep·groups⌋ of them
// (RAGEN), at least one where there is any. Of equal scores the lower index is
// kept. keep is in (0, 1].
//
// It is risk-seeking: among groups of few members the ones that were lucky vary
// most, so with a rare reward it learns to gamble (RAGEN's Bandit with the high
// arm at 0.10 still learns the high arm).
func TopFraction(scores []float64, keep float64) []int {
	return TopCount(scores, countOf(keep, len(scores)), Largest)
}

// countOf is how many of n groups a fraction is: rounded down, at least one. The
// small addend undoes the rounding of products such as 0.29·100.
func countOf(keep float64, n int) int {
	return max(int(math.Floor(float64(keep*float64(n))+1e-9)), 1)
}
