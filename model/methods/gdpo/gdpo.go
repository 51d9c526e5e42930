package gdpo

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "gdpo", By: "the group, each part of the reward apart (GDPO)",
	Formula: "whiten(Σ_c w_c · z_c), z_c = (R_c − mean_G) / (max(std_G, floor) + ε)", Paper: "GDPO, arXiv 2601.05242", File: "gdpo/gdpo.go",
	Compares: true, ReadsParts: true, Reads: []string{"normalize_by_std", "epsilon", "floor"},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return credit.ByToken(GDPO(in.Parts, in.PartWeights, in.Groups, in.Mask, o))
	},
}

// GDPO normalises each component of the reward within its group before it adds them up, and
// whitens the sums over the batch's tokens (arXiv 2601.05242; verl's
// compute_gdpo_outcome_advantage):
//
//	z_c = (R_c − mean(R_c of the group)) / (max(std(R_c of the group), floor) + ε)
//	A   = whiten(Σ_c w_c·z_c) over all sampled tokens
//
// A sum of rewards gives different combinations of components one advantage: of four members,
// one right and two others in the right format, the sums are [1, 1, 1, 0]. Here the
// rarer component counts more.
//
// components: [rows][components], each row's return of each component; weights:
// [components]; groups and options are as in GRPO. A component that does not vary in a group
// adds nothing there. The result is [rows][tokens].
//
// Errors are of kind ErrRewards or ErrInput.
func GDPO(components [][]float64, weights []float64, groups []int, mask [][]bool, o credit.Options) ([][]float64, error) {
	sums, err := ComponentSums(components, weights, groups, o)
	if err != nil {
		return nil, err
	}
	tokens, err := credit.OverRows(sums, mask)
	if err != nil {
		return nil, err
	}
	credit.Whiten(tokens, mask)
	return tokens, nil
}

// ComponentSums is GDPO before its whitening: Σ_c w_c·z_c of each row, [rows]. The arguments
// and errors are GDPO's.
func ComponentSums(components [][]float64, weights []float64, groups []int, o credit.Options) ([]float64, error) {
	for c, w := range weights {
		if !credit.Finite(w) {
			return nil, fmt.Errorf("%w: the weight of component %d is %v", credit.ErrInput, c, w)
		}
	}
	for row, values := range components {
		if len(values) != len(weights) {
			return nil, fmt.Errorf("%w: row %d has %d components, there are %d weights", credit.ErrInput, row, len(values), len(weights))
		}
	}
	if len(components) != len(groups) {
		return nil, fmt.Errorf("%w: components of %d rows, %d group indexes", credit.ErrInput, len(components), len(groups))
	}
	sums, one := make([]float64, len(components)), make([]float64, len(components))
	for c, w := range weights {
		for row := range components {
			one[row] = components[row][c]
		}
		normalised, err := credit.GRPO(one, groups, o)
		if err != nil {
			return nil, fmt.Errorf("component %d: %w", c, err)
		}
		for row, z := range normalised {
			sums[row] += float64(w * z)
		}
	}
	return sums, nil
}
