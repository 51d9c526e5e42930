package selection

import (
	"math"
	"slices"
)

var topP = Method{
	Name: "top_p", Also: []string{"snr", "snr_filter", "snr_adaptive", "snr_adaptive_filtering"},
	Kept: "those from the highest s on, until Σs ≥ p·Σ_all − slack", Source: "RAGEN-2, arXiv 2604.06268", File: "top_p.go",
	Value: "p", Ranks: true, Fits: isShare,
	Choose: func(scores []float64, o Options, _ int) []int { return TopP(scores, o.Value, o.Slack, o.Order) },
}

var topPSoftmax = Method{
	Name: "top_p_softmax", Kept: "those from the highest s on, until Σe^s ≥ p·Σ_all", Source: "RAGEN-2, softmax top-p", File: "top_p.go",
	Value: "p", Ranks: true, Fits: isShare,
	Choose: func(scores []float64, o Options, _ int) []int { return TopPSoftmax(scores, o.Value, o.Order) },
}

// rounding is the tolerance for sums, relative to the total: in float64 0.4 + 0.3 + 0.2 is
// slightly less than 0.9.
const rounding = 1e-9

// TopP keeps the best groups, in the order of the ranking, until the sum of their scores
// reaches p·Σs − slack. So it keeps few groups if a few scores are much larger than the
// others, and many if all are similar (RAGEN-2, arXiv 2604.06268, linear top-p;
// recommended p 0.9, slack 0.01). With p = 1 it keeps all.
//
// It never keeps groups with scores of 0 or below. It keeps no group at all if the sum
// cannot be reached, for instance with negative scores, or if p·Σs is at most the slack,
// which is possible with small rewards because the slack is in units of the score. p is in
// [0, 1], slack at least 0.
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

// TopPSoftmax keeps the best groups that together have the probability p under the softmax
// of the scores or, for Smallest, of their negatives (RAGEN-2's softmax top-p, a nucleus
// of groups): at least one if there is any. The softmax depends on absolute differences of
// scores: with rewards in [0, 1], standard deviations differ by at most 0.7, and it is
// nearly flat. p is in [0, 1]; with p = 1 all are kept.
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
