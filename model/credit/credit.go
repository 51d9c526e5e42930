// Package credit turns the rewards of trajectories into advantages: how much
// better each was than could be expected. One file an algorithm, each readable
// from top to bottom, with its source and what it does differently.
//
// Functions here are pure and work on slices in row order; sums run in that
// order, in float64, and products are rounded before they are added, so the same
// rows give the same bits, also on machines that fuse the two.
//
// # Shapes
//
// A row is a trajectory. What is one a row is [rows]; one a turn [rows][turns];
// one a token [rows][tokens], where rows may differ in length. A mask, [rows]
// [tokens], is true at the tokens that were sampled: what the loss covers. Every
// result is 0 where the mask is false.
//
// Token t of a row is ids[t]. Its log-prob and its value are what was computed
// from ids[<t], as model's Score does it: values[row][t] is the critic's estimate
// of what is still to come before token t is chosen.
//
// # From one shape to another
//
// Mask, TokenRewards, TurnSums, OverRows and OverTurns lead from turns and rows to
// tokens and back. KLInReward and Overlong change rewards before any algorithm
// sees them.
package credit

import (
	"errors"
	"fmt"
	"math"
)

var (
	// ErrRewards says that rewards cannot be turned into advantages.
	ErrRewards = errors.New("unusable rewards")
	// ErrNotFinite says that a number the policy or the critic computed, a
	// log-prob or a value, is NaN or infinite. The rewards are sound: an update
	// can be skipped and recorded.
	ErrNotFinite = errors.New("not finite")
	// ErrInput says that arguments do not fit together or that an option is out of
	// its range.
	ErrInput = errors.New("unusable input")
)

// finite tells whether x is neither NaN nor infinite: of those alone the difference
// from itself is not 0. It looks at every token of a batch, so it is to be quick.
func finite(x float64) bool {
	difference := x - x
	return difference == 0
}

// check refuses rewards that are not finite and groups that do not match them.
func check(rewards []float64, groups []int) error {
	if len(rewards) != len(groups) {
		return fmt.Errorf("%w: %d rewards, %d group indexes", ErrRewards, len(rewards), len(groups))
	}
	for i, r := range rewards {
		if !finite(r) {
			return fmt.Errorf("%w: row %d has %v", ErrRewards, i, r)
		}
	}
	return nil
}

// checkTurns refuses turn rewards that are not finite.
func checkTurns(rewards [][]float64) error {
	for row, turns := range rewards {
		for k, r := range turns {
			if !finite(r) {
				return fmt.Errorf("%w: row %d, turn %d has %v", ErrRewards, row, k, r)
			}
		}
	}
	return nil
}

// checkShape refuses numbers that do not have a mask's shape.
func checkShape(name string, values [][]float64, mask [][]bool) error {
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

// checkUnit refuses an option outside [0, 1].
func checkUnit(name string, x float64) error {
	if !(x >= 0 && x <= 1) {
		return fmt.Errorf("%w: %s is %v, must be from 0 to 1", ErrInput, name, x)
	}
	return nil
}

// rowsOf gives the rows of each group, groups in the order of their first row.
func rowsOf[K comparable](groups []K) [][]int {
	place := map[K]int{}
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
		std += float64((v - mean) * (v - mean))
	}
	return mean, math.Sqrt(std / float64(len(values)-1))
}
