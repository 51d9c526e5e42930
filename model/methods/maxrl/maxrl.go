// Package maxrl weighs the trajectories of a group towards maximum likelihood of success (MaxRL).
package maxrl

import "github.com/reprise-rl/reprise/model/credit"

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "maxrl", Also: []string{"max_rl"}, By: "the group's mean, in units of that mean (MaxRL)",
	Formula: "A = (R − mean_G) / mean_G; 0 if mean_G ≤ 0", Paper: "MaxRL, arXiv 2602.02710", File: "maxrl/maxrl.go",
	Compares: true, DropsFlat: true,
	Compute: func(in credit.Input, _ credit.Options) ([][]float64, [][]float64, error) {
		return in.ByRow(MaxRL(in.Returns, in.Groups))
	},
}

// MaxRL computes the advantage of each row's trajectory in units of its group's mean (arXiv 2602.02710;
// prime-rl's MaxRLAlgorithm):
//
//	A_i = (R_i − mean(R_group)) / mean(R_group), 0 if the mean is not above 0
//
// With returns of 0 and 1 and N members, the gradient is unbiased for the maximum-likelihood objective cut
// off at order N: with N = 1 it is REINFORCE's, and the larger N, the nearer to that of the log of the chance
// of success. A group that rarely succeeds counts about 1/p, where Dr. GRPO gives all groups one unit.
//
// returns: [rows], the return of each trajectory, penalties included. groups: [rows], the group of each; a
// group's rows need not be adjacent. The result, [rows], applies to every sampled token of the row
// (credit.OverRows).
//
// The paper has returns of 0 and 1. Here as in prime-rl, others are taken as they are: a penalty lowers the mean,
// and a small mean makes large advantages, of which a group of N has at most N − 1 where no return is below 0.
// Differences from prime-rl: sums are in float64 in row order, and equal returns get exactly 0.
//
// Errors are of kind ErrRewards.
func MaxRL(returns []float64, groups []int) ([]float64, error) {
	if err := credit.Check(returns, "group indexes", len(groups)); err != nil {
		return nil, err
	}
	out := make([]float64, len(returns))
	for _, rows := range credit.RowsOf(groups) {
		group := make([]float64, len(rows))
		for i, row := range rows {
			group[i] = returns[row]
		}
		mean, _ := credit.MeanStd(group)
		if !(mean > 0) {
			continue
		}
		for i, row := range rows {
			out[row] = (group[i] - mean) / mean
		}
	}
	return out, nil
}
