package credit

import "math"

// whitenEpsilon is added to the variance (verl's masked_whiten).
const whitenEpsilon = 1e-8

// Whiten scales the numbers where the mask is true to mean 0 and deviation 1 over the
// whole batch, and sets the others to 0 (verl's masked_whiten):
//
//	(x − mean) / √(var + 1e-8)
//
// with the variance of a sample (n−1). values, [rows][tokens] and finite, are
// changed in place. If the mask is true at fewer than two tokens, or all values there are
// equal, they become 0 everywhere.
//
// Mean and deviation are taken over tokens, so long trajectories have more influence than
// short ones. They are those of the given rows: after a selection, of the selected rows.
func Whiten(values [][]float64, mask [][]bool) {
	var sum, first float64
	n, equal := 0, true
	for row, sampled := range mask {
		tokens := values[row][:len(sampled)]
		for t, yes := range sampled {
			if !yes {
				continue
			}
			v := tokens[t]
			if n == 0 {
				first = v
			}
			if v != first {
				equal = false
			}
			sum += v
			n++
		}
	}
	mean, scale := first, 0.0
	if !equal {
		mean = sum / float64(n)
		var squares float64
		for row, sampled := range mask {
			tokens := values[row][:len(sampled)]
			for t, yes := range sampled {
				if yes {
					off := tokens[t] - mean
					squares += float64(off * off)
				}
			}
		}
		scale = 1 / math.Sqrt(squares/float64(n-1)+whitenEpsilon)
	}
	for row, sampled := range mask {
		tokens := values[row][:len(sampled)]
		for t, yes := range sampled {
			if yes {
				tokens[t] = (tokens[t] - mean) * scale
			} else {
				tokens[t] = 0
			}
		}
	}
}
