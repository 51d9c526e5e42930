// Package selection chooses the groups an update learns from. One file a
// method; functions are pure and deterministic, and give the indexes of the kept
// groups in ascending order, so that rows keep theirs.
//
// A method takes scores, one a group and finite, and keeps some of the groups; of
// equal scores the group with the lower index comes first. Select does all of it:
// it scores, sets aside the groups whose rewards do not vary, and applies a method.
// An empty selection is a result like any other: the update is skipped.
//
// In place of dropping groups, Reweight makes those whose rewards hardly vary
// count less; LossScale makes an update of few groups smaller.
package selection

import (
	"errors"
	"math"
)

var (
	// ErrRewards says that groups cannot be ranked: a reward, entropy or length is
	// not finite.
	ErrRewards = errors.New("unusable rewards")
	// ErrInput says that arguments do not fit together or that an option is out of
	// its range.
	ErrInput = errors.New("unusable input")
)

// Order says which end of a ranking is kept.
type Order string

const (
	// Largest keeps the highest scores (RAGEN's default).
	Largest Order = "largest"
	// Smallest keeps the lowest (RAGEN v1's std_rev).
	Smallest Order = "smallest"
)

// All keeps every one of n groups: 0 to n−1.
func All(n int) []int {
	kept := make([]int, n)
	for i := range kept {
		kept[i] = i
	}
	return kept
}

// Varied keeps the groups whose rewards vary: those with a deviation, [groups] of
// RewardStd, above floor. With floor 0 these are DAPO's informative groups (arXiv
// 2503.14476, equation 11: neither all right nor all wrong), of which dynamic
// sampling draws more until there are enough. A floor in units of the reward also
// leaves out groups whose differences are too small to be worth a step (RAGEN v2
// with include_zero off: 1e-10).
func Varied(spreads []float64, floor float64) []int {
	kept := []int{}
	for g, s := range spreads {
		if s > floor {
			kept = append(kept, g)
		}
	}
	return kept
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
