package golden

import "math"

// SoftCrossEntropy is the reference of the loss terms.Promise: that of chances whose targets are chances too,
// as a mean (AgentPRM, arXiv 2502.10325),
//
//	−[q·log p + (1 − q)·log(1 − p)]
//
// of targets q and as many predictions p.
func SoftCrossEntropy(targets, predictions []float64) float64 {
	sum := 0.0
	for i, q := range targets {
		sum -= float64(q*math.Log(predictions[i])) + float64((1-q)*math.Log1p(-predictions[i]))
	}
	return sum / float64(len(targets))
}
