// Package reward has the arithmetic of rewards that come in parts: VAGEN's state
// reasoning, CM2's checklists, the use of tools, length, progress, and SCoRe's two
// attempts. All of it is pure, on plain numbers. Package envs/rewards finds the numbers in
// episodes.
package reward

import (
	"errors"
	"fmt"
	"slices"
)

// ErrShape says that the lengths of the inputs do not fit.
var ErrShape = errors.New("rewards of different shapes")

// Tools is the reward of a row for its tool calls: coefficient for each, paid only if the
// answer is correct (PyVision-RL, arXiv 2602.20739, eq. 1, "accumulative").
func Tools(correct bool, calls int, coefficient float64) float64 {
	if !correct {
		return 0
	}
	return coefficient * float64(calls)
}

// Length compares the lengths of a group's rows, in tokens: the shortest has 0.5, the
// longest −0.5, and those between lie on the line. A row that is not correct has at most 0,
// so that short failures earn nothing. If all lengths are equal, every row has 0 (Kimi
// k1.5, arXiv 2501.12599, §2.3.3). The error is of kind ErrShape.
func Length(tokens []int, correct []bool) ([]float64, error) {
	if len(tokens) != len(correct) {
		return nil, fmt.Errorf("%w: %d lengths of %d rows", ErrShape, len(tokens), len(correct))
	}
	out := make([]float64, len(tokens))
	if len(tokens) == 0 {
		return out, nil
	}
	least, most := slices.Min(tokens), slices.Max(tokens)
	if least == most {
		return out, nil
	}
	for i, n := range tokens {
		out[i] = 0.5 - float64(n-least)/float64(most-least)
		if !correct[i] {
			out[i] = min(0, out[i])
		}
	}
	return out, nil
}

// Progress is the reward of a step between two potentials. The potential form gamma × after
// − before adds up to the same for all paths between two states if gamma is 1, so that it
// changes no best play (Ng, Harada and Russell 1999). With gains only, a step that loses
// potential costs nothing: a policy that steps back and forth is paid each time.
func Progress(before, after, gamma float64, gainsOnly bool) float64 {
	change := float64(gamma*after) - before
	if gainsOnly {
		return max(0, change)
	}
	return change
}
