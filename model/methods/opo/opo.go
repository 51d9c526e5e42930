// Package opo compares the trajectories of a group with the baseline of least variance (OPO).
package opo

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "opo", By: "the mean of the group, weighed by sampled tokens (OPO)",
	Formula: "A = R − Σ_G l·R / Σ_G l, l: sampled tokens", Paper: "OPO, arXiv 2505.23585", File: "opo/opo.go",
	Compares: true, DropsFlat: true,
	Compute: func(in credit.Input, _ credit.Options) ([][]float64, [][]float64, error) {
		lengths := make([]int, len(in.Turns))
		for row, turns := range in.Turns {
			for _, s := range turns {
				lengths[row] += s.To - s.From
			}
		}
		return in.ByRow(OPO(in.Returns, lengths, in.Groups))
	},
}

// OPO computes the advantage of each row's trajectory with the baseline of least variance (arXiv
// 2505.23585; verl's compute_opo_outcome_advantage):
//
//	A_i = R_i − Σ l_j·R_j / Σ l_j, over the rows j of the group
//
// The baseline that makes the gradient's variance smallest weighs each return by the squared norm of its
// gradient. The paper takes that norm to grow with the number of sampled tokens l.
//
// returns and lengths: [rows], the return of each trajectory, penalties included, and its sampled tokens.
// groups: [rows], the group of each; a group's rows need not be adjacent. The result, [rows], applies to
// every sampled token of the row (credit.OverRows).
//
// As in verl, a group of one row has no baseline. Differences from verl: a group of equal returns gets exactly
// 0, and a group without any sampled token has no baseline; sums are in float64 in row order. OPO trains exactly
// on policy, without a distance or an entropy term (verl's page of OPO): so does its preset. verl's optimal token
// baseline (arXiv 2602.07078) is not here: it reads Σπ² of each token's distribution, which Score does not keep.
//
// Errors are of kind ErrRewards or ErrInput.
func OPO(returns []float64, lengths, groups []int) ([]float64, error) {
	if err := credit.Check(returns, "group indexes", len(groups)); err != nil {
		return nil, err
	}
	if len(lengths) != len(returns) {
		return nil, fmt.Errorf("%w: %d returns, %d lengths", credit.ErrInput, len(returns), len(lengths))
	}
	out := make([]float64, len(returns))
	for _, rows := range credit.RowsOf(groups) {
		var sum, tokens float64
		equal := true
		for _, row := range rows {
			if lengths[row] < 0 {
				return nil, fmt.Errorf("%w: row %d has %d tokens", credit.ErrInput, row, lengths[row])
			}
			length := float64(lengths[row])
			sum += float64(length * returns[row]) // rounded, so that no machine fuses it
			tokens += length
			equal = equal && returns[row] == returns[rows[0]]
		}
		for _, row := range rows {
			switch {
			case len(rows) == 1 || tokens == 0:
				out[row] = returns[row]
			case !equal:
				out[row] = returns[row] - sum/tokens
			}
		}
	}
	return out, nil
}
