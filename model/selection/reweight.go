package selection

import (
	"fmt"
	"math"
)

// Reweight gives each group the factor its advantages are multiplied by where
// groups are weighed in place of dropped: [groups], the group's reward deviation
// over the largest one (RAGEN v2's soft_advantage_reweight):
//
//	A ← A · s_g / max(s)
//
// so in [0, 1]; 0 everywhere where no group's rewards vary. spreads: [groups],
// RewardStd's.
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

// Scaling names how the size of an update follows the fraction of groups kept.
type Scaling string

const (
	// ScaleNone leaves it as it is.
	ScaleNone Scaling = "none"
	// ScaleLinear multiplies by kept/groups.
	ScaleLinear Scaling = "linear"
	// ScaleSqrt multiplies by √(kept/groups).
	ScaleSqrt Scaling = "sqrt"
)

// LossScale gives the factor that advantages are multiplied by where kept of so
// many groups were selected (RAGEN v2's filter_loss_scaling; default none): a mean
// over few groups is otherwise as large as one over all, and noisier. Errors are of
// kind ErrInput.
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
