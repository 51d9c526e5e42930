// Package credit turns the rewards of trajectories into advantages: how much
// better each was than could be expected. One file an algorithm, each readable
// from top to bottom, with its source and what it does differently.
//
// Functions here are pure and work on slices in row order; sums run in that
// order, so the same rows give the same bits.
package credit

import (
	"errors"
	"fmt"
	"math"
)

// ErrRewards says that rewards cannot be turned into advantages.
var ErrRewards = errors.New("unusable rewards")

// check refuses rewards that are not finite and groups that do not match them.
func check(rewards []float64, groups []int) error {
	if len(rewards) != len(groups) {
		return fmt.Errorf("%w: %d rewards, %d group indexes", ErrRewards, len(rewards), len(groups))
	}
	for i, r := range rewards {
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return fmt.Errorf("%w: row %d has %v", ErrRewards, i, r)
		}
	}
	return nil
}

// rowsOf gives the rows of each group, groups in the order of their first row.
func rowsOf(groups []int) [][]int {
	place := map[int]int{}
	var rows [][]int
	for row, group := range groups {
		at, ok := place[group]
		if !ok {
			at = len(rows)
			place[group] = at
			rows = append(rows, nil)
		}
		rows[at] = append(rows[at], row)
	}
	return rows
}

// MeanStd gives the mean and the sample standard deviation (n−1) of values, in
// two passes. The deviation of fewer than two values, or of equal ones, is 0.
func MeanStd(values []float64) (mean, std float64) {
	if len(values) == 0 {
		return 0, 0
	}
	equal := true
	for _, v := range values {
		mean += v
		equal = equal && v == values[0]
	}
	if equal {
		return values[0], 0
	}
	mean /= float64(len(values))
	for _, v := range values {
		std += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(std / float64(len(values)-1))
}
