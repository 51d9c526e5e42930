package search

import (
	"fmt"
	"math"
	"slices"
)

// Recovery is a model of how likely a failed trajectory is saved by branching at a place of it:
// σ(Weight·x + Bias), x from 0 (its beginning) to 1 (its end).
type Recovery struct {
	Weight, Bias float64
	// Fitted is false before there is enough to learn from. Every place is then as likely.
	Fitted bool
}

const (
	// leastLabels is how many labels a fit needs.
	leastLabels = 11
	// newtonSteps bounds the fit, which takes about ten.
	newtonSteps = 100
)

// FitRecovery fits the model to what branching has achieved (DEEP-GRPO, arXiv 2602.14169). It
// minimises, over the pivots seen,
//
//	½·Weight² − Σ [y·log σ(f) + (1 − y)·log(1 − σ(f))],  f = Weight·x + Bias
//
// which is scikit-learn's logistic regression with its default of C = 1: the bias has no
// penalty. positions: [pivots], the place of each. saved: [pivots], whether one of
// its branches succeeded. Before 11 labels, or if all are alike, there is no fit.
//
// It is Newton's method to convergence, in the order given. The authors' code fits with L-BFGS
// before every draw, so there its model depends on which row finishes first.
//
// Errors are of kind ErrInput.
func FitRecovery(positions []float64, saved []bool) (Recovery, error) {
	if len(positions) != len(saved) {
		return Recovery{}, fmt.Errorf("%w: %d positions of pivots, %d labels", ErrInput, len(positions), len(saved))
	}
	successes := 0
	for i, x := range positions {
		if !(x >= 0 && x <= 1) {
			return Recovery{}, fmt.Errorf("%w: pivot %d is at %v, must be from 0 to 1", ErrInput, i, x)
		}
		if saved[i] {
			successes++
		}
	}
	if len(saved) < leastLabels || successes == 0 || successes == len(saved) {
		return Recovery{}, nil
	}
	fit := Recovery{Fitted: true}
	cost := fit.cost(positions, saved)
	for range newtonSteps {
		w, b := fit.step(positions, saved)
		next, better := fit, cost
		for size := 1.0; size > 1e-3; size /= 2 { // a full step can overshoot
			next.Weight, next.Bias = fit.Weight-float64(size*w), fit.Bias-float64(size*b)
			if better = next.cost(positions, saved); better < cost {
				break
			}
		}
		if !(better < cost) {
			// The cost cannot tell the two apart any more. The step still gains digits.
			fit.Weight, fit.Bias = fit.Weight-w, fit.Bias-b
			break
		}
		fit, cost = next, better
	}
	return fit, nil
}

// At is the chance that branching at a place saves the trajectory; 1 before there is a fit.
func (m Recovery) At(x float64) float64 {
	if !m.Fitted {
		return 1
	}
	return 1 / (1 + math.Exp(-(float64(m.Weight*x) + m.Bias)))
}

// cost is what FitRecovery minimises.
func (m Recovery) cost(positions []float64, saved []bool) float64 {
	sum := float64(m.Weight*m.Weight) / 2
	for i, x := range positions {
		f := float64(m.Weight*x) + m.Bias
		if saved[i] {
			f = -f
		}
		// log(1 + e^f), without overflow
		sum += max(f, 0) + math.Log1p(math.Exp(-math.Abs(f)))
	}
	return sum
}

// step is Newton's: the gradient divided by the matrix of second derivatives.
func (m Recovery) step(positions []float64, saved []bool) (w, b float64) {
	gw, gb, hww, hwb, hbb := m.Weight, 0.0, 1.0, 0.0, 0.0
	for i, x := range positions {
		p := m.At(x)
		off, slope := p, float64(p*(1-p))
		if saved[i] {
			off--
		}
		gw += float64(off * x)
		gb += off
		hww += float64(slope * float64(x*x))
		hwb += float64(slope * x)
		hbb += slope
	}
	determinant := float64(hww*hbb) - float64(hwb*hwb)
	if determinant <= 0 {
		return 0, 0
	}
	return (float64(hbb*gw) - float64(hwb*gb)) / determinant, (float64(hww*gb) - float64(hwb*gw)) / determinant
}

// Pivots is the distribution from which a failed trajectory's pivot is drawn, [candidates]
// (DEEP-GRPO, arXiv 2602.14169):
//
//	q(i) ∝ P(saved | x_i)·x_i^γ,  x_i = (i+1)/segments
//
// Only the first candidates of the segments can be branched from: not the last one of a finished
// trajectory. γ above 0 prefers late pivots. With γ = 0 and no fit it is uniform.
// Defaults of the authors' scripts: γ 2 (the class's own is 0.1), segments of 50 tokens.
//
// Errors are of kind ErrInput.
func (m Recovery) Pivots(segments, candidates int, gamma float64) ([]float64, error) {
	if candidates < 1 || candidates > segments {
		return nil, fmt.Errorf("%w: %d candidates for a pivot in %d segments", ErrInput, candidates, segments)
	}
	if !(gamma >= 0) || !finite(gamma) {
		return nil, fmt.Errorf("%w: gamma is %v, must be at least 0", ErrInput, gamma)
	}
	q := make([]float64, candidates)
	var sum float64
	for i := range q {
		x := float64(i+1) / float64(segments)
		q[i] = float64(m.At(x) * math.Pow(x, gamma))
		sum += q[i]
	}
	if !(sum > 0) || !finite(sum) {
		return nil, fmt.Errorf("%w: the weights of the pivots sum to %v", ErrInput, sum)
	}
	for i := range q {
		q[i] /= sum
	}
	return q, nil
}

// Saved is the label of a pivot: whether any of its branches has a reward above the threshold
// (authors: 0).
func Saved(branches []float64, threshold float64) bool {
	return slices.ContainsFunc(branches, func(r float64) bool { return r > threshold })
}

// Pick is the index that a draw from [0, 1) takes from a distribution: the first at which the
// sum of the probabilities exceeds the draw. Errors are of kind ErrInput.
func Pick(distribution []float64, draw float64) (int, error) {
	if len(distribution) == 0 || !(draw >= 0 && draw < 1) {
		return 0, fmt.Errorf("%w: draw %v from a distribution over %d", ErrInput, draw, len(distribution))
	}
	var sum float64
	for i, q := range distribution {
		if sum += q; draw < sum {
			return i, nil
		}
	}
	return len(distribution) - 1, nil // the sum may end a little below 1
}
