package credit

import (
	"fmt"
	"math"
)

// WorthAStep reports for each row whether the update learns from it: rows whose advantages
// are all smaller than least, in absolute value, are left out (LOOP, arXiv 2502.01600: 0.01). It
// saves their forward and backward pass, and in means over rows they no longer count.
//
// advantages: [rows][tokens], before the selection's weights. least is at least 0; with 0 every
// row is kept. The result is [rows]. Errors are of kind ErrInput.
func WorthAStep(advantages [][]float64, least float64) ([]bool, error) {
	if !(least >= 0) || !Finite(least) {
		return nil, fmt.Errorf("%w: the least advantage is %v, must be at least 0", ErrInput, least)
	}
	out := make([]bool, len(advantages))
	for row, tokens := range advantages {
		out[row] = least == 0
		for _, a := range tokens {
			out[row] = out[row] || !(math.Abs(a) < least)
		}
	}
	return out, nil
}
