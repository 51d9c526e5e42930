package selection

import "slices"

var minP = Method{
	Name: "min_p", Kept: "those with s ≥ p · max s", Source: "RAGEN v2; min-p sampling, arXiv 2407.01082", File: "min_p.go",
	Value: "p", Ranks: true,
	Fits: func(value float64, order Order) bool {
		return isShare(value, order) && (value > 0 || order == Largest)
	},
	Choose: func(scores []float64, o Options, _ int) []int { return MinP(scores, o.Value, o.Order) },
}

// MinP keeps the groups whose score is at least a share of the best one: s ≥ share·max or,
// for Smallest, s ≤ min/share (RAGEN v2's min_p, after min-p sampling, arXiv 2407.01082).
// It is meant for scores that are not negative. share is in [0, 1], and above 0 for
// Smallest. The tolerance of 1e-10 for rounding is RAGEN's.
func MinP(scores []float64, share float64, order Order) []int {
	kept := []int{}
	if len(scores) == 0 {
		return kept
	}
	const near = 1e-10
	most, least := float64(slices.Max(scores)*share)-near, slices.Min(scores)/share+near
	for g, s := range scores {
		if order == Smallest && s <= least || order != Smallest && s >= most {
			kept = append(kept, g)
		}
	}
	return kept
}
