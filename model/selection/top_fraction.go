package selection

import "math"

// topFraction keeps the groups with the highest scores: ⌊keep·groups⌋ of them
// (RAGEN), at least one if there is any. Equal scores rank by index. keep is in (0, 1].
//
// It is risk-seeking: among groups of few members, those with a lucky member vary most, so
// with rare rewards the policy is trained to gamble (in RAGEN's Bandit it prefers the high
// arm even at a probability of 0.10).
var topFraction = Method{
	Name: "top_fraction", Kept: "the ⌊keep · G⌋ with the highest s", Source: "StarPO-S, arXiv 2504.20073", File: "top_fraction.go",
	Value: "keep", Ranks: true,
	Fits: func(value float64, _ Order) bool { return value > 0 && value <= 1 },
	Choose: func(scores []float64, o Options, groups int) []int {
		return TopCount(scores, countOf(o.Value, groups), o.Order)
	},
}

// countOf is the number of groups for a fraction of n: rounded down, at least one. The
// small addend corrects the rounding error of products such as 0.29·100.
func countOf(keep float64, n int) int { return max(int(math.Floor(float64(keep*float64(n))+1e-9)), 1) }
