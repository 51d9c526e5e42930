// Package selection chooses the groups an update learns from. One file a
// method; functions are pure and deterministic, and give the indexes of the kept
// groups in ascending order, so that rows keep theirs.
package selection

import (
	"errors"
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/credit"
)

// ErrRewards says that groups cannot be ranked by their rewards.
var ErrRewards = errors.New("unusable rewards")

// RewardStd scores each group by the sample standard deviation (n−1) of its
// members' rewards: [groups]. The rewards, [groups][members], are the raw returns
// plus penalties, before any normalisation (StarPO-S, arXiv 2504.20073; RAGEN's
// code ranks by rewards it has already normalised where GRPO is used, and calls
// the deviation a variance). Errors are of kind ErrRewards.
func RewardStd(rewards [][]float64) ([]float64, error) {
	scores := make([]float64, len(rewards))
	for g, group := range rewards {
		for m, r := range group {
			if math.IsNaN(r) || math.IsInf(r, 0) {
				return nil, fmt.Errorf("%w: group %d, member %d has %v", ErrRewards, g, m, r)
			}
		}
		_, scores[g] = credit.MeanStd(group)
	}
	return scores, nil
}

// All keeps every one of n groups: 0 to n−1.
func All(n int) []int {
	kept := make([]int, n)
	for i := range kept {
		kept[i] = i
	}
	return kept
}
