// Package credit turns the rewards of trajectories into advantages, which say how much
// better each trajectory was than expected: the arithmetic that several algorithms share, and
// what an algorithm declares. The algorithms are rooms below model/methods.
//
// Functions here are pure and work on slices in row order. Sums run in that order, in
// float64, and products are rounded before they are added, so that the same rows give
// the same bits, also on machines that fuse products with sums.
//
// # Shapes
//
// A row is a trajectory. Numbers of rows are [rows], numbers of turns [rows][turns] and
// numbers of tokens [rows][tokens]; rows may differ in length. A mask, [rows][tokens], is
// true at the sampled tokens, which are the tokens of the loss. Every result is 0 if
// the mask is false.
//
// Token t of a row is ids[t]. Its log-prob and its value are computed from ids[<t], as in
// model's Score: values[row][t] is the critic's estimate of the future return before
// token t is chosen.
//
// # From one shape to another
//
// Mask, TokenRewards, TurnSums, OverRows and OverTurns convert between numbers of rows,
// turns and tokens. KLInReward and Overlong change the rewards before an algorithm reads
// them.
package credit

import (
	"errors"
	"fmt"
	"math"
)

var (
	// ErrRewards says that rewards cannot be turned into advantages.
	ErrRewards = errors.New("unusable rewards")
	// ErrNotFinite says that a log-prob of the policy or a value of the critic is NaN
	// or infinite. The rewards are valid, so the update can be skipped and recorded.
	ErrNotFinite = errors.New("not finite")
	// ErrInput says that arguments do not fit together or that an option is out of
	// its range.
	ErrInput = errors.New("unusable input")
)

// Finite reports whether x is neither NaN nor infinite: only their difference from
// themselves is not 0. It must be fast, because it is called for every token of a batch.
func Finite(x float64) bool {
	difference := x - x
	return difference == 0
}

// Check returns an error for rewards that are not finite, or if their number differs from
// the number of group indexes or state keys.
func Check(rewards []float64, beside string, n int) error {
	if len(rewards) != n {
		return fmt.Errorf("%w: %d rewards, %d %s", ErrRewards, len(rewards), n, beside)
	}
	for i, r := range rewards {
		if !Finite(r) {
			return fmt.Errorf("%w: row %d has %v", ErrRewards, i, r)
		}
	}
	return nil
}

// CheckTurns returns an error for turn rewards that are not finite.
func CheckTurns(rewards [][]float64) error {
	for row, turns := range rewards {
		for k, r := range turns {
			if !Finite(r) {
				return fmt.Errorf("%w: row %d, turn %d has %v", ErrRewards, row, k, r)
			}
		}
	}
	return nil
}

// CheckShape returns an error for numbers that do not have the mask's shape.
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

// CheckUnit returns an error for an option outside [0, 1].
func CheckUnit(name string, x float64) error {
	if !(x >= 0 && x <= 1) {
		return fmt.Errorf("%w: %s is %v, must be from 0 to 1", ErrInput, name, x)
	}
	return nil
}

// RowsOf returns the rows of each group, with groups in the order of their first rows.
func RowsOf[K comparable](groups []K) [][]int {
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

// MeanStd returns the mean and the sample standard deviation (n−1) of values, in two
// passes. The standard deviation of equal values, or of fewer than two, is 0.
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
