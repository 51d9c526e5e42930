package selection

import (
	"math"
	"slices"
)

// rounding is the share of the whole that a sum may miss its mark by: 0.4 + 0.3 +
// 0.2 is a little less than 0.9.
const rounding = 1e-9

// TopP keeps the best groups that together have a share p of all scores, taken in
// order until their sum reaches p·Σs − slack, so that few are kept where a few
// stand out and many where all are alike (RAGEN-2, arXiv 2604.06268, linear top-p;
// recommended p 0.9, slack 0.01). With p = 1 all are kept.
//
// Scores that are not above 0 are never taken. Where the sum cannot be reached, as
// with negative scores, nothing is kept; nor where p·Σs is at most the slack, which
// for small rewards it can be: 0.01 is in units of the score. p is in [0, 1],
// slack at least 0.
func TopP(scores []float64, p, slack float64, order Order) []int {
	if p >= 1 {
		return All(len(scores))
	}
	var total, sum float64
	for _, s := range scores {
		total += s
	}
	enough := float64(p*total) - slack - float64(rounding*math.Abs(total))
	kept := []int{}
	for _, g := range ranked(scores, order) {
		if sum >= enough || scores[g] <= 0 {
			break
		}
		sum += scores[g]
		kept = append(kept, g)
	}
	if sum < enough {
		return []int{}
	}
	slices.Sort(kept)
	return kept
}

// TopPSoftmax keeps the best groups that together have the probability p under
// the softmax of the scores, or of their negatives where the smallest are kept
// (RAGEN-2's softmax top-p, a nucleus of groups): at least one where there is any.
// Scores count in absolute size here: with rewards in [0, 1] deviations are at most
// 0.7 apart and the softmax is nearly flat. p is in [0, 1]; with p = 1 all are
// kept.
func TopPSoftmax(scores []float64, p float64, order Order) []int {
	if p >= 1 || len(scores) == 0 {
		return All(len(scores))
	}
	sign := 1.0
	if order == Smallest {
		sign = -1
	}
	at := ranked(scores, order)
	best := sign * scores[at[0]]
	weights := make([]float64, len(at))
	var total float64
	for i, g := range at {
		weights[i] = math.Exp(sign*scores[g] - best)
		total += weights[i]
	}
	kept := []int{}
	var sum float64
	for i, g := range at {
		kept = append(kept, g)
		if sum += weights[i]; sum >= (p-rounding)*total {
			break
		}
	}
	slices.Sort(kept)
	return kept
}
