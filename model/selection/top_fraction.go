package selection

import "math"

// TopFraction keeps the groups with the highest scores: ⌊keep·groups⌋ of them
// (RAGEN), at least one if there is any. Equal scores rank by index. keep is in (0, 1].
//
// It is risk-seeking: among groups of few members, those with a lucky member vary most, so
// with rare rewards the policy is trained to gamble (in RAGEN's Bandit it prefers the high
// arm even at a probability of 0.10).
func TopFraction(scores []float64, keep float64) []int {
	return TopCount(scores, countOf(keep, len(scores)), Largest)
}

// countOf is the number of groups for a fraction of n: rounded down, at least one. The
// small addend corrects the rounding error of products such as 0.29·100.
func countOf(keep float64, n int) int {
	return max(int(math.Floor(float64(keep*float64(n))+1e-9)), 1)
}
