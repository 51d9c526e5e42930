package loss

import (
	"fmt"
	"math"
)

// Pairs are the pairs of a success and a failure of one group, [winner, loser], in the order of
// the winners, then of the losers (arXiv 2509.19199: all pairs; a comment in the
// authors' code speaks of one to one).
func Pairs(success []bool) [][2]int {
	pairs := [][2]int{}
	for winner, won := range success {
		for loser, alsoWon := range success {
			if won && !alsoWon {
				pairs = append(pairs, [2]int{winner, loser})
			}
		}
	}
	return pairs
}

// Preference is the loss of a reward model over pairs, −log σ(q_winner − q_loser), as a mean
// (DPO, arXiv 2305.18290, equation 7; arXiv 2509.19199). scores, [rows], are q: there
// the sum of a trajectory's step rewards (credit.StepRewards), and in its code their mean. Without
// pairs it is 0. Errors are of kind ErrInput.
func Preference(scores []float64, pairs [][2]int) (float64, error) {
	var sum float64
	for i, p := range pairs {
		if min(p[0], p[1]) < 0 || max(p[0], p[1]) >= len(scores) {
			return 0, fmt.Errorf("%w: pair %d is of rows %d and %d of %d", ErrInput, i, p[0], p[1], len(scores))
		}
		x := scores[p[1]] - scores[p[0]]
		if !finite(x) {
			return 0, fmt.Errorf("%w: the scores of pair %d are %v and %v", ErrInput, i, scores[p[0]], scores[p[1]])
		}
		sum += max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) // log(1 + e^x), without overflow
	}
	if len(pairs) == 0 {
		return 0, nil
	}
	return sum / float64(len(pairs)), nil
}

// PreferenceGradient is the derivative of Preference by the scores, [rows]:
//
//	∂/∂q_winner = −σ(q_loser − q_winner) / pairs, and the negative of it for the loser
//
// summed over the pairs in their order. The pairs are of rows that there are, and the scores finite.
func PreferenceGradient(scores []float64, pairs [][2]int) []float64 {
	out := make([]float64, len(scores))
	for _, p := range pairs {
		by := 1 / (1 + math.Exp(scores[p[0]]-scores[p[1]])) / float64(len(pairs))
		out[p[0]] -= by
		out[p[1]] += by
	}
	return out
}
