package loss

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model/draw"
)

// Minibatches cuts n items, rows or micro-batches, into minibatches for a number of
// epochs: the items of each, ascending, epochs one after the other
// ([epochs·⌈n/size⌉][items]). Every epoch goes over all items once, in an order of
// its own, drawn from the address with purpose draw.Shuffle and Step the epoch, from 0;
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
		a.Purpose, a.Step = draw.Shuffle, int64(epoch)
		order := a.Permutation(n)
		for from := 0; from < n; from += size {
			items := order[from:min(from+size, n):min(from+size, n)]
			slices.Sort(items)
			out = append(out, items)
		}
	}
	return out, nil
}
