package statistics

import "math"

// PassAtK estimates, without bias, the probability that at least one of k samples of an
// instance succeeds, from n samples with c successes (Chen et al. 2021, arXiv 2107.03374,
// equation 1):
//
//	1 − C(n−c, k) / C(n, k)
//
// It is computed as a product, so that nothing overflows. An evaluation's pass@k is the
// mean over its instances. The result is NaN unless 0 ≤ c ≤ n and 1 ≤ k ≤ n.
func PassAtK(n, c, k int) float64 {
	if c < 0 || c > n || k < 1 || k > n {
		return math.NaN()
	}
	if n-c < k {
		return 1 // fewer failures than draws
	}
	none := 1.0
	for i := n - c + 1; i <= n; i++ {
		none *= 1 - float64(k)/float64(i)
	}
	return 1 - none
}
