package loss

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/reprise-rl/reprise/model/draw"
)

// Shuffle draws the order of minibatches. It is part of the bits of every run.
const Shuffle draw.Purpose = "minibatch"

// Minibatches cuts n items, rows or micro-batches, into minibatches for a number of
// epochs: the items of each, ascending, epochs one after the other
// ([epochs·⌈n/size⌉][items]). Every epoch goes over all items once, in an order of
// its own, drawn from the address with Purpose Shuffle and Step the epoch, from 0;
// the other fields are the caller's. Its last minibatch is the smaller one where
// size does not divide n.
//
// Inside a minibatch the order does not matter to the mathematics, only to the
// rounding, so it is fixed; a minibatch of all items is the whole batch as it was.
// Errors are of kind ErrInput.
func Minibatches(n, size, epochs int, a draw.Address) ([][]int, error) {
	if n < 1 || size < 1 || epochs < 1 {
		return nil, fmt.Errorf("%w: %d items in minibatches of %d for %d epochs", ErrInput, n, size, epochs)
	}
	var out [][]int
	for epoch := range epochs {
		a.Purpose, a.Step = Shuffle, int64(epoch)
		order := permutation(n, a.Rand())
		for from := 0; from < n; from += size {
			items := order[from:min(from+size, n):min(from+size, n)]
			slices.Sort(items)
			out = append(out, items)
		}
	}
	return out, nil
}

// permutation shuffles 0 to n−1 (Fisher and Yates). It is written out because
// math/rand/v2 promises the stream of a generator, but not what Perm makes of it.
func permutation(n int, r *rand.Rand) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := below(uint64(i+1), r)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// below draws from 0 to n−1, each alike (Lemire, arXiv 1805.10941).
func below(n uint64, r *rand.Rand) int {
	for {
		high, low := bits.Mul64(r.Uint64(), n)
		if low >= -n%n {
			return int(high)
		}
	}
}
