package loss

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model/draw"
)

// Minibatches divides n items (rows or micro-batches) into minibatches for a number of
// epochs. It returns the items of each minibatch in ascending order, one epoch after the
// other: [epochs·⌈n/size⌉][items]. Every epoch covers all items once. Its order is drawn
// from the address a with Purpose draw.Shuffle and Step the epoch, from 0; the caller
// sets the other fields. The last minibatch of an epoch is smaller if size does not
// divide n.
//
// The order inside a minibatch does not matter to the mathematics, only to the
// rounding, so it is fixed: a minibatch of all items is the batch in its own order.
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
