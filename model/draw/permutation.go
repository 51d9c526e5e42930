package draw

import (
	"math/bits"
	"math/rand/v2"
)

// Permutation returns 0 to n−1, shuffled with the stream (Fisher and Yates). It does not
// use Perm, because math/rand/v2 guarantees the stream of a generator but not the result
// of Perm.
func (a Address) Permutation(n int) []int {
	r := a.Rand()
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

// Below draws an integer from 0 to n−1, uniformly, from the beginning of the stream. n is
// positive.
func (a Address) Below(n int) int { return below(uint64(n), a.Rand()) }

// below draws an integer from 0 to n−1, uniformly (Lemire, arXiv 1805.10941).
func below(n uint64, r *rand.Rand) int {
	for {
		high, low := bits.Mul64(r.Uint64(), n)
		if low >= -n%n {
			return int(high)
		}
	}
}
