package loss

import "math"

// KLEstimator names an estimate of KL(π‖π_ref) at one sampled token, from its
// log-probs under both (http://joschu.net/blog/kl-approx.html; verl's kl_penalty).
// With d = log π − log π_ref:
type KLEstimator string

const (
	// K1 is d: unbiased, of either sign (verl: kl). Its gradient's expectation is
	// 0, so in the loss it does nothing but add noise: it is for the reward.
	K1 KLEstimator = "k1"
	// K2 is ½d²: biased, never negative (verl: mse). On policy its gradient is in
	// expectation that of the KL at the token (arXiv 2506.09477).
	K2 KLEstimator = "k2"
	// K3 is exp(−d) + d − 1: unbiased, never negative (verl: low_var_kl; GRPO, arXiv
	// 2402.03300, equation 4). On policy its gradient is in expectation that of
	// KL(π_ref‖π), the other way round (arXiv 2506.09477).
	K3 KLEstimator = "k3"
	// KAbs is |d| (verl: abs).
	KAbs KLEstimator = "abs"
)

// k3Max bounds K3, as in verl (whose bound on −d, 20, lies beyond it).
const k3Max = 10

// Valid tells whether e names an estimator.
func (e KLEstimator) Valid() bool { return e == K1 || e == K2 || e == K3 || e == KAbs }

// Estimate gives the estimate at a token, in nats, and its derivative by logProb.
// K3's estimate never exceeds 10, as in verl; there its derivative is 0. An estimator that is not Valid gives NaN.
func (e KLEstimator) Estimate(logProb, refLogProb float64) (kl, byLogProb float64) {
	d := logProb - refLogProb
	switch e {
	case K1:
		return d, 1
	case K2:
		return d * d / 2, d
	case K3:
		ratio := math.Exp(-d)
		if kl := ratio + d - 1; !(kl > k3Max) {
			return kl, 1 - ratio
		}
		return k3Max, 0
	case KAbs:
		switch {
		case d > 0:
			return d, 1
		case d < 0:
			return -d, -1
		default:
			return d, 0
		}
	}
	return math.NaN(), math.NaN()
}
