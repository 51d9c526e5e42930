// Package search has the arithmetic of rollouts that search: which continuations of a prefix
// to keep (TSR), from which turn to branch (DEEP-GRPO), and whether to branch at all (ARPO).
// All of it is pure, on plain numbers: rewards, entropies and draws come from the caller.
// Rollouts choose by recorded scores, and those that look ahead are tested against Lookahead; BestOfN and Extremes are
// for comparison alone. The advantages of such rollouts are in package credit.
package search

import "errors"

// ErrInput says that arguments do not fit together, are not finite or are out of their range.
var ErrInput = errors.New("unusable input")

func finite(x float64) bool { return x-x == 0 }
