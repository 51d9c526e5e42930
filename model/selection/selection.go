// Package selection chooses the groups on which an update trains. Each method has one
// file. Functions are pure and deterministic, and return the indexes of the kept groups in
// ascending order, so that the order of rows does not change.
//
// A method reads one finite score for each group and keeps some of the groups. If scores
// are equal, the group with the lower index ranks first. Select does the whole selection:
// it computes scores, removes the groups whose rewards do not vary, and applies a method.
// An empty selection is not an error: the update is skipped.
//
// Methods and Metrics list all methods and all scores. A new method is a file with its
// function and its entry, a test of its numbers, and a line in that list.
//
// Instead of dropping groups, Reweight gives less weight to those whose rewards hardly
// vary. LossScale makes an update of few groups smaller.
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

// Order names the end of a ranking that is kept.
type Order string

const (
	// Largest keeps the highest scores (RAGEN's default).
	Largest Order = "largest"
	// Smallest keeps the lowest (RAGEN v1's std_rev).
	Smallest Order = "smallest"
)

var all = Method{
	Name: "all", Kept: "every group", Source: "StarPO, arXiv 2504.20073", File: "selection.go",
	Choose: func(scores []float64, _ Options, _ int) []int { return All(len(scores)) },
}

// All keeps all of n groups: 0 to n−1.
func All(n int) []int {
	kept := make([]int, n)
	for i := range kept {
		kept[i] = i
	}
	return kept
}

// Varied keeps the groups whose rewards vary: their standard deviation, [groups] of
// RewardStd, is above floor. With floor 0 these are DAPO's informative groups (arXiv
// 2503.14476, equation 11: neither all right nor all wrong); dynamic sampling draws
// groups until there are enough of these. A floor above 0, in units of the reward, also
// removes groups whose differences are too small to be worth a step (RAGEN v2 with
// include_zero off: 1e-10).
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
