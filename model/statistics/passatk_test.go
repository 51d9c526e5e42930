package statistics

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPassAtK(t *testing.T) {
	for _, c := range []struct {
		n, c, k int
		want    float64
	}{
		{1, 0, 1, 0}, {1, 1, 1, 1}, {4, 1, 1, 0.25}, {5, 2, 2, 0.7}, {5, 0, 5, 0}, {5, 1, 5, 1}, {10, 9, 2, 1}, {4, 2, 2, 5.0 / 6},
	} {
		require.InDelta(t, c.want, PassAtK(c.n, c.c, c.k), 1e-15)
	}
}

// Against exact binomials.
func TestPassAtKIsExact(t *testing.T) {
	for _, n := range []int64{1, 2, 7, 40, 200} {
		for c := int64(0); c <= n; c += 1 + n/9 {
			for k := int64(1); k <= n; k += 1 + n/9 {
				none := new(big.Rat).SetFrac(new(big.Int).Binomial(n-c, k), new(big.Int).Binomial(n, k))
				want, _ := new(big.Rat).Sub(big.NewRat(1, 1), none).Float64()
				require.InDelta(t, want, PassAtK(int(n), int(c), int(k)), 1e-12, "n %d, c %d, k %d", n, c, k)
			}
		}
	}
	for _, c := range [][3]int{{0, 0, 1}, {3, 4, 1}, {3, -1, 1}, {3, 1, 0}, {3, 1, 4}} {
		require.True(t, math.IsNaN(PassAtK(c[0], c[1], c[2])), c)
	}
}
