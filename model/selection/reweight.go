package selection

import (
	"fmt"
	"math"
)

// Reweight computes the factor by which each group's advantages are multiplied if groups
// are weighted instead of dropped: [groups], the standard deviation of the group's
// rewards divided by the largest one (RAGEN v2's soft_advantage_reweight):
//
//	A ← A · s_g / max(s)
//
// The factors are in [0, 1], and all 0 if no group's rewards vary. spreads: [groups], the
// result of RewardStd.
func Reweight(spreads []float64) []float64 {
	out := make([]float64, len(spreads))
	most := 0.0
	for _, s := range spreads {
		most = max(most, s)
	}
	if most == 0 {
		return out
	}
	for g, s := range spreads {
		out[g] = s / most
	}
	return out
}

// Scaling names how the size of an update depends on the fraction of groups kept.
type Scaling string

const (
	// ScaleNone does not change it.
	ScaleNone Scaling = "none"
	// ScaleLinear multiplies by kept/groups.
	ScaleLinear Scaling = "linear"
	// ScaleSqrt multiplies by √(kept/groups).
	ScaleSqrt Scaling = "sqrt"
)

// LossScale computes the factor by which advantages are multiplied if kept of all groups
// were selected (RAGEN v2's filter_loss_scaling; default none). Without it, a mean over
// few groups is as large as a mean over all groups, and noisier. Errors are of kind
// ErrInput.
func LossScale(s Scaling, kept, groups int) (float64, error) {
	if groups < 1 || kept < 0 || kept > groups {
		return 0, fmt.Errorf("%w: %d of %d groups kept", ErrInput, kept, groups)
	}
	switch share := float64(kept) / float64(groups); s {
	case ScaleNone:
		return 1, nil
	case ScaleLinear:
		return share, nil
	case ScaleSqrt:
		return math.Sqrt(share), nil
	default:
		return 0, fmt.Errorf("%w: loss scaling %q", ErrInput, s)
	}
}
