package loss

import "fmt"

// BlockWeights returns the weight of each token in a loss in which every turn counts the same,
// whatever its length: the mean over rows of the sum over turns of the mean over the turn's
// tokens (blockwise advantage estimation, arXiv 2602.10231, algorithm 1):
//
//	ω_r / (n_{r,k} · Σ ω)
//
// with n_{r,k} the sampled tokens of turn k in row r, and ω a row's weight. mask, rowWeights and
// the result are as in Weights. turns: [rows][tokens], the turn of each token, read
// where the mask is true. Errors are of kind ErrInput.
func BlockWeights(mask [][]bool, turns [][]int32, rowWeights []float64) ([][]float64, error) {
	if len(turns) != len(mask) {
		return nil, fmt.Errorf("%w: turns of %d rows for %d rows", ErrInput, len(turns), len(mask))
	}
	out, err := Weights(mask, rowWeights, SeqMeanTokenSum, 0)
	if err != nil {
		return nil, err
	}
	for row, sampled := range mask {
		if len(turns[row]) != len(sampled) {
			return nil, fmt.Errorf("%w: row %d has turns of %d tokens, a mask of %d", ErrInput, row, len(turns[row]), len(sampled))
		}
		counts := map[int32]float64{}
		for t, yes := range sampled {
			if yes {
				counts[turns[row][t]]++
			}
		}
		for t, yes := range sampled {
			if yes {
				out[row][t] /= counts[turns[row][t]]
			}
		}
	}
	return out, nil
}
