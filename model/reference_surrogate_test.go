package model

import (
	"math"

	"github.com/reprise-rl/reprise/model/loss"
)

// tokenNumbers are what the loss of a token is computed from.
type tokenNumbers struct {
	// ratio is exp of the bounded log-ratio, whose derivative by the log-prob is inside: 1
	// within the bound, 0 beyond.
	ratio, inside           float64
	logProb, old, advantage float64
	// geometric is loss.GMPO's mean over the row, for this token's row.
	geometric float64
}

// term is a token's part of the surrogate. byLogProb does not differentiate the weights in
// front of the log-prob.
type term struct {
	loss, byLogProb float64
	clipped, dual   bool
}

// surrogate is the reference of the surrogates and the dual clip in package losses.
func (o PolicyOptions) surrogate(x tokenNumbers, c Clip) term {
	a := x.advantage
	switch o.Surrogate {
	case loss.CISPO:
		weight := min(x.ratio, 1+c.High)
		return term{loss: -weight * a * x.logProb, byLogProb: -weight * a, clipped: x.ratio > 1+c.High}
	case loss.SAPO:
		tau := o.TauNegative
		if a > 0 {
			tau = o.TauPositive
		}
		gate := 1 / (1 + math.Exp(-tau*(x.ratio-1)))
		return term{loss: -a * 4 / tau * gate, byLogProb: -4 * a * x.ratio * gate * (1 - gate) * x.inside}
	case loss.DPPOTV:
		moved := math.Exp(x.logProb) - math.Exp(x.old)
		if a > 0 && moved > c.High || !(a > 0) && moved < -c.Low {
			return term{clipped: true}
		}
		weight := min(x.ratio, o.RatioCap)
		return term{loss: -weight * a * x.logProb, byLogProb: -weight * a}
	case loss.DPPOKL:
		p, q := math.Exp(x.logProb), math.Exp(x.old)
		far := q*(x.old-x.logProb) + (1-q)*math.Log((1-q+1e-8)/(1-p+1e-8))
		if a > 0 && p > q && far > c.High || !(a > 0) && p < q && far > c.Low {
			return term{clipped: true}
		}
		weight := min(x.ratio, o.RatioCap)
		return term{loss: -weight * a * x.logProb, byLogProb: -weight * a}
	case loss.GMPO:
		mean, inside := bound(x.geometric, math.Inf(-1), sequenceLogRatioBound)
		_, clipped := geometric(x.logProb-x.old, a, c)
		s := term{loss: -a * math.Exp(mean), clipped: clipped}
		if !clipped {
			s.byLogProb = s.loss * inside
		}
		return s
	}
	plain := -a * x.ratio
	bounded := -a * min(max(x.ratio, 1-c.Low), 1+c.High)
	s := term{loss: plain, byLogProb: plain * x.inside}
	if bounded > plain {
		s = term{loss: bounded, clipped: true}
	}
	if most := -a * o.DualClip; o.DualClip != 0 && a < 0 && s.loss > most {
		s.loss, s.byLogProb, s.dual = most, 0, true
	}
	return s
}

// geometric is what a token adds to loss.GMPO's mean, and whether its bound acts.
func geometric(logRatio, a float64, c Clip) (of float64, clipped bool) {
	switch {
	case a > 0 && logRatio > c.High:
		return c.High, true
	case a < 0 && logRatio < -c.Low:
		return -c.Low, true
	case a == 0:
		return 0, false
	}
	return logRatio, false
}

// geometricMean is loss.GMPO's mean over a row.
func (b PolicyBatch) geometricMean(row int, o PolicyOptions) float64 {
	var sum, n float64
	for t, yes := range b.Mask[row] {
		if yes {
			of, _ := geometric(b.LogProbs[row][t]-b.OldLogProbs[row][t], b.Advantages[row][t], o.clip(b.turn(row, t)))
			sum, n = sum+of, n+1
		}
	}
	return sum / max(n, 1)
}
