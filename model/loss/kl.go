package loss

import "math"

// KLEstimator names an estimate of KL(π‖π_ref) at one sampled token, from its
// log-probs under both (http://joschu.net/blog/kl-approx.html; verl's kl_penalty).
// With d = log π − log π_ref:
type KLEstimator string

const (
	// K1 is d: unbiased, positive or negative (verl: kl). Its gradient has expectation
	// 0, so in the loss it adds only noise: use it in the reward.
	K1 KLEstimator = "k1"
	// K2 is ½d²: biased, never negative (verl: mse). On policy its expected gradient is
	// the gradient of the KL at the token (arXiv 2506.09477).
	K2 KLEstimator = "k2"
	// K3 is exp(−d) + d − 1: unbiased, never negative (verl: low_var_kl; GRPO, arXiv
	// 2402.03300, equation 4). On policy its expected gradient is the gradient of the
	// reverse divergence, KL(π_ref‖π) (arXiv 2506.09477).
	K3 KLEstimator = "k3"
	// KAbs is |d| (verl: abs).
	KAbs KLEstimator = "abs"
)

// k3Max bounds K3, as in verl. verl also bounds −d at 20, which never applies: K3
// reaches its own bound first.
const k3Max = 10

// Valid reports whether e names an estimator.
func (e KLEstimator) Valid() bool { return e == K1 || e == K2 || e == K3 || e == KAbs }

// Estimate returns the estimate at a token, in nats, and its derivative by logProb.
// K3's estimate is at most 10, as in verl; at the bound its derivative is 0. An
// estimator that is not Valid gives NaN.
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
