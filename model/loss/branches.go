package loss

import "fmt"

// BranchWeights returns the weight of each token in a loss of trajectories and their branches, each
// as a mean over its own tokens (DEEP-GRPO, arXiv 2602.14169):
//
//	mean over main tokens + λ · mean over the branches' tokens
//
// mask and the result are as in Weights; a branch's prefix, which it shares with its parent,
// is not in its mask. branch: [rows], true for branches. lambda, at least 0, is λ (authors: 1).
// Errors are of kind ErrInput.
func BranchWeights(mask [][]bool, branch []bool, lambda float64) ([][]float64, error) {
	if len(branch) != len(mask) {
		return nil, fmt.Errorf("%w: %d rows, of which %d are known as branches or not", ErrInput, len(mask), len(branch))
	}
	if !(lambda >= 0) || !finite(lambda) {
		return nil, fmt.Errorf("%w: lambda is %v, must be at least 0", ErrInput, lambda)
	}
	var tokens [2]float64
	kind := func(row int) int {
		if branch[row] {
			return 1
		}
		return 0
	}
	for row, sampled := range mask {
		for _, yes := range sampled {
			if yes {
				tokens[kind(row)]++
			}
		}
	}
	weight := [2]float64{1 / tokens[0], lambda / tokens[1]} // read where there are tokens
	out := make([][]float64, len(mask))
	for row, sampled := range mask {
		out[row] = make([]float64, len(sampled))
		for t, yes := range sampled {
			if yes {
				out[row][t] = weight[kind(row)]
			}
		}
	}
	return out, nil
}
