// Package medians is the medians of what the lab measures, and how sure they are.
package medians

import (
	"math"
	"slices"
)

// Of is the middle of xs, the mean of the two middle ones of an even number;
// 0 if there are none.
func Of(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// By is the median of what of gives for each of xs.
func By[T any](xs []T, of func(T) float64) float64 {
	values := make([]float64, len(xs))
	for i, x := range xs {
		values[i] = of(x)
	}
	return Of(values)
}

// Interval is an interval for the median of what the values are drawn from, of at least the given
// confidence, such as 0.95: two of the values, between which the median is by the binomial distribution
// of how many values are below it (a sign test's interval). It assumes no distribution of the values, but
// that they are independent. ok is false where there are too few: for 0.95, fewer than six.
func Interval(values []float64, confidence float64) (low, high float64, ok bool) {
	n := len(values)
	// The interval from the k-th smallest to the k-th largest value misses the median on one side with
	// the probability that fewer than k values are below it.
	k, missed := 0, 0.0
	for ; k < n; k++ {
		if missed += math.Exp(logChoose(n, k) - float64(float64(n)*math.Ln2)); !(missed <= (1-confidence)/2) {
			break
		}
	}
	if k == 0 || 2*k > n {
		return 0, 0, false
	}
	s := slices.Sorted(slices.Values(values))
	return s[k-1], s[n-k], true
}

// logChoose is the logarithm of the number of ways to choose k of n.
func logChoose(n, k int) float64 {
	of := func(n int) float64 {
		l, _ := math.Lgamma(float64(n + 1))
		return l
	}
	return of(n) - of(k) - of(n-k)
}
