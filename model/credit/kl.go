package credit

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/loss"
)

// KLInReward subtracts a KL penalty against the reference policy from the rewards of
// sampled tokens (arXiv 2009.01325; verl's apply_kl_penalty):
//
//	r_t ← r_t − β·kl(log π_old(t), log π_ref(t))
//
// rewards, logProbs and refLogProbs: [rows][tokens]; the log-probs come from Score before
// the update and are read where the mask is true. coefficient is β, at least 0. The
// penalised rewards are new slices. mean is verl's actor/reward_kl_penalty: the mean over
// rows with a sampled token of the row's mean estimate over its sampled tokens.
//
// In the reward k1 is unbiased: its sum over a trajectory is the log ratio of the
// trajectory. Errors are of kind ErrRewards, ErrNotFinite (a log-prob) or ErrInput.
func KLInReward(
	rewards, logProbs, refLogProbs [][]float64, mask [][]bool, coefficient float64, e loss.KLEstimator,
) (penalised [][]float64, mean float64, err error) {
	if !(coefficient >= 0) || !Finite(coefficient) {
		return nil, 0, fmt.Errorf("%w: the coefficient is %v, must be at least 0", ErrInput, coefficient)
	}
	if !e.Valid() {
		return nil, 0, fmt.Errorf("%w: KL estimator %q", ErrInput, e)
	}
	if err := CheckTokenRewards(rewards, mask); err != nil {
		return nil, 0, err
	}
	if err := CheckShape("log-probs", logProbs, mask); err != nil {
		return nil, 0, err
	}
	if err := CheckShape("reference log-probs", refLogProbs, mask); err != nil {
		return nil, 0, err
	}
	penalised = Zeros(mask)
	var total float64
	rows := 0
	for row, sampled := range mask {
		var sum float64
		n := 0
		for t, yes := range sampled {
			if !yes {
				continue
			}
			lp, ref := logProbs[row][t], refLogProbs[row][t]
			if !Finite(lp) || !Finite(ref) {
				return nil, 0, fmt.Errorf("%w: the log-probs at row %d, token %d are %v and %v", ErrNotFinite, row, t, lp, ref)
			}
			kl, _ := e.Estimate(lp, ref)
			penalised[row][t] = rewards[row][t] - float64(coefficient*kl)
			sum += kl
			n++
		}
		if n > 0 {
			total += sum / float64(n)
			rows++
		}
	}
	if rows > 0 {
		mean = total / float64(rows)
	}
	return penalised, mean, nil
}

// Divergence is the mean of log π_old − log π_other over the sampled tokens, in nats: an estimate of KL(π_old ‖ π_other), the
// reverse KL where the other is a teacher. It is 0 without a sampled token. old and other: [rows][tokens], of mask's shape.
func Divergence(old, other [][]float64, mask [][]bool) float64 {
	var sum float64
	n := 0
	for row, sampled := range mask {
		for t, yes := range sampled {
			if yes {
				sum += old[row][t] - other[row][t]
				n++
			}
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}
