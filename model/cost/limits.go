package cost

import (
	"cmp"
	"slices"
)

// The limits of package model's programs. They are part of the programs: others may give other bits.
const (
	// AttentionQueries are the queries that attend at once, instead of a whole sequence. This also skips
	// the keys after each block of queries.
	AttentionQueries = 512
	// HeadLogits are the most logits, positions × vocabulary, that the head computes at once: 256 MiB.
	HeadLogits = 1 << 26
	// PrefillTokens are the most tokens of a prefill.
	PrefillTokens = 1 << 16
	// Lanes is the number of 32-bit sums that form the state fingerprint. It adds up LaneRows × LaneRows
	// words of a tensor at once. XLA adds up 32 numbers of an axis while it computes them; of a longer axis
	// it keeps them all, which are four times the tensor.
	Lanes    = 4
	LaneRows = 32
)

// PartRows is the number of rows of a part of a pass, a divisor of its rows: rows of so many tokens are
// prefilled in parts of so many tokens at most.
func PartRows[N int | int64](rows, tokens, most N) N {
	for n := rows; n > 1; n-- {
		if rows%n == 0 && n*tokens <= most {
			return n
		}
	}
	return 1
}

// Owners deals tensors, or bundles of them, of these sizes to n devices, and gives the device of each: the
// largest first, of equals the first, each to the device that has the least so far, of equals the first.
func Owners[N int | int64](sizes []N, n int) []int {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	out, has := make([]int, len(sizes)), make([]N, n)
	for _, i := range order {
		out[i] = slices.Index(has, slices.Min(has))
		has[out[i]] += sizes[i]
	}
	return out
}
