package statistics

import "slices"

// Median is the middle of xs, the mean of the two middle ones of an even number;
// 0 if there are none.
func Median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// MedianOf is the median of what of gives for each of xs.
func MedianOf[T any](xs []T, of func(T) float64) float64 {
	values := make([]float64, len(xs))
	for i, x := range xs {
		values[i] = of(x)
	}
	return Median(values)
}
