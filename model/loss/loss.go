// Package loss holds what the host decides about the loss of an update: how the new
// policy is compared with the old one (Ratio), how the distance from the reference is
// estimated (KLEstimator), how much each token weighs (Weights, which turns every way
// of averaging into one weighted sum) and which rows form a minibatch (Minibatches).
// ExplainedVariance measures the critic. Preference is a loss of reward models. BranchWeights
// are weights where trajectories branch. All of it
// gives the same bits on machines that fuse products with sums.
//
// The losses that train are declared in package terms and computed on the device, by package losses;
// the tests of package model compute the same losses in float64.
//
// Shapes are as in package credit: [rows][tokens], rows of any length, where token t's
// log-prob and value were computed from ids[<t]. A mask is true at the sampled tokens;
// other tokens are never read.
package loss

import (
	"errors"
	"fmt"
	"math"
)

// ErrInput says that arguments do not fit together or that an option is out of its
// range.
var ErrInput = errors.New("unusable input")

// finite reports whether x is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// CheckShape returns an error of kind ErrInput unless values has the mask's shape;
// name is what the error calls them.
func CheckShape(name string, values [][]float64, mask [][]bool) error {
	if len(values) != len(mask) {
		return fmt.Errorf("%w: %d rows of %s, %d of the mask", ErrInput, len(values), name, len(mask))
	}
	for row := range values {
		if len(values[row]) != len(mask[row]) {
			return fmt.Errorf("%w: row %d has %d %s for %d tokens", ErrInput, row, len(values[row]), name, len(mask[row]))
		}
	}
	return nil
}

// CheckAtLeast returns an error of kind ErrInput unless the option x is finite and
// at least least.
func CheckAtLeast(name string, x, least float64) error {
	if !(x >= least) || !finite(x) {
		return fmt.Errorf("%w: %s is %v, must be at least %v", ErrInput, name, x, least)
	}
	return nil
}

// Zeros returns rows of zeros in the mask's shape.
func Zeros(mask [][]bool) [][]float64 {
	out := make([][]float64, len(mask))
	for row, sampled := range mask {
		out[row] = make([]float64, len(sampled))
	}
	return out
}
