package model

import "math"

// Softmax computes the log-prob of each id at one position, [vocabulary], and the
// distribution's entropy in nats. logits, [vocabulary], are already divided by the
// temperature; −Inf marks ids that cannot be sampled.
//
// The derivatives by the logits, of log p(i) and of the entropy H, are
//
//	∂ log p(i) / ∂ logit_j = [i = j] − p_j
//	∂ H / ∂ logit_j        = −p_j·(log p_j + H)
//
// which LogitGradient applies.
func Softmax(logits []float64) (logProbs []float64, entropy float64) {
	top := math.Inf(-1)
	for _, l := range logits {
		top = math.Max(top, l)
	}
	var sum float64
	for _, l := range logits {
		sum += math.Exp(l - top)
	}
	logProbs = make([]float64, len(logits))
	for i, l := range logits {
		logProbs[i] = l - top - math.Log(sum)
		if p := math.Exp(logProbs[i]); p > 0 {
			entropy -= p * logProbs[i]
		}
	}
	return logProbs, entropy
}

// LogitGradient returns the derivatives of a loss by a position's logits,
// [vocabulary]. It computes them from Softmax's results and the loss's derivatives by the
// log-prob of the sampled id and by the entropy.
func LogitGradient(logProbs []float64, entropy float64, id int, byLogProb, byEntropy float64) []float64 {
	out := make([]float64, len(logProbs))
	for j, lp := range logProbs {
		if p := math.Exp(lp); p > 0 {
			out[j] = -byLogProb*p - byEntropy*p*(lp+entropy)
		}
	}
	out[id] += byLogProb
	return out
}
