package loss

import "math"

// ExplainedVariance is the fraction of the returns' variance that the values explain,
// over sampled tokens: 1 for exact values, 0 for a constant, negative for values that are
// worse than a constant (verl's critic/vf_explained_var):
//
//	1 − var(G − V) / (var(G) + 1e-5)
//
// with the variance of a sample (n−1). It is 0 if fewer than two tokens were sampled.
// All arguments are [rows][tokens]. Errors are of kind ErrInput.
func ExplainedVariance(values, returns [][]float64, mask [][]bool) (float64, error) {
	if err := CheckShape("values", values, mask); err != nil {
		return math.NaN(), err
	}
	if err := CheckShape("returns", returns, mask); err != nil {
		return math.NaN(), err
	}
	var errors, targets []float64
	for row, sampled := range mask {
		for t, yes := range sampled {
			if yes {
				errors = append(errors, returns[row][t]-values[row][t])
				targets = append(targets, returns[row][t])
			}
		}
	}
	if len(targets) < 2 {
		return 0, nil
	}
	return 1 - variance(errors)/(variance(targets)+1e-5), nil
}

// variance is the sample variance (n−1) of at least two numbers.
func variance(xs []float64) float64 {
	var mean, squares float64
	for _, x := range xs {
		mean += x
	}
	mean /= float64(len(xs))
	for _, x := range xs {
		squares += float64((x - mean) * (x - mean))
	}
	return squares / float64(len(xs)-1)
}
