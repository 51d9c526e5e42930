// Package otb compares each token of a group's trajectories with the baseline of least variance at its place (OTB).
package otb

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

var tailBaseline = option.Option{
	Section: option.Credit, Name: "tail_baseline", Switch: true, Source: "verl: `handle_zero_tail` is true over several turns, false over one",
	Doc: "Also subtracts the baseline where the longest trajectory of a group goes on alone (%s): it is that trajectory's own return " +
		"then, so that nothing is learned there. Without, these tokens have their return.",
}

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "optimal_token_baseline", Also: []string{"otb", "tir_optimal_token_baseline"},
	By:      "the group's mean at each token, weighed by how uncertain the tokens up to there were (optimal token baseline)",
	Formula: "A_t = G_t − Σ_G W_t·G_t / Σ_G W_t, G_t = Σ_{k≥t} r_k, W_t = Σ_{k≤t} (1 − 2π_k + Σπ_k²), t: sampled tokens",
	Paper:   "OTB, arXiv 2602.07078", File: "otb/otb.go",
	Compares: true, ReadsSumSquares: true, Reads: []string{"reward_at"}, Own: []option.Option{tailBaseline},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return credit.ByToken(OptimalTokenBaseline(in.Tokens, in.Old, in.SumSquares, in.Mask, in.Groups, tailBaseline.On(o.Own)))
	},
}

// OptimalTokenBaseline computes the advantage of each sampled token with a baseline of its own place (arXiv
// 2602.07078; verl's compute_multi_turn_optimal_token_baseline_advantage). With t counting the sampled tokens of
// a row, over its turns, and sums over the rows of a group that have a token t,
//
//	w_t = 1 − 2π_t + Σ_v π_t(v)²,   W_t = Σ_{k≤t} w_k,   G_t = Σ_{k≥t} r_k
//	A_t = G_t − Σ W_t·G_t / Σ W_t
//
// The baseline that makes the gradient's variance smallest weighs each return by the squared norm of its
// gradient. w is that norm by the logits of one token, ‖e_a − π‖²: near 0 where the policy was certain, near 1
// where it was not. It needs no backward pass. Where every token is as uncertain, it is the mean of those rows that
// are as long; OPO takes the same norm to grow with the row's length, and has one baseline a row.
//
// rewards: [rows][tokens], each at a sampled token. old, sumSquares: [rows][tokens], log π_t and Σ_v π_t(v)²
// of the distribution that the token was sampled from, at the rollout's temperature; read where the mask is true.
// groups: [rows]. The result is [rows][tokens].
//
// A row alone in its group, among those with a sampled token, has no baseline. Neither have the tokens with which the
// longest row of a group goes on alone, unless tail: then their advantage is 0. tail is verl's
// compute_optimal_token_baseline_advantage where a row has one turn; over several turns that compares tokens which
// stand at the same place of the row, the environment's counted, and this one those with as many sampled before.
//
// Differences from verl: returns that are equal at a place give exactly 0; nothing is added to ΣW, and where it is
// 0, since all tokens up to there were certain, the baseline is 0; w is at least 0, which rounding may undercut;
// w is never scaled by weights against the sampler.
//
// Errors are of kind ErrRewards, ErrNotFinite (a log-prob or a sum of squares) or ErrInput.
func OptimalTokenBaseline(rewards, old, sumSquares [][]float64, mask [][]bool, groups []int, tail bool) ([][]float64, error) {
	if err := credit.CheckTokenRewards(rewards, mask); err != nil {
		return nil, err
	}
	if err := credit.CheckShape("log-probs", old, mask); err != nil {
		return nil, err
	}
	if err := credit.CheckShape("sums of squares", sumSquares, mask); err != nil {
		return nil, err
	}
	if len(groups) != len(mask) {
		return nil, fmt.Errorf("%w: %d rows, %d group indexes", credit.ErrInput, len(mask), len(groups))
	}
	out, paths := credit.Zeros(mask), make([]path, len(mask))
	for row := range mask {
		var err error
		if paths[row], err = follow(rewards[row], old[row], sumSquares[row], mask[row]); err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
	}
	for _, rows := range credit.RowsOf(groups) {
		members := 0
		for t := 0; ; t++ {
			there := rows[:0:0]
			for _, row := range rows {
				if t < len(paths[row].at) {
					there = append(there, row)
				}
			}
			members = max(members, len(there))
			if len(there) == 0 || tail && len(there) < min(members, 2) {
				break // or the rest is the tail of the longest, and stays 0
			}
			compare(paths, there, t, out)
		}
	}
	return out, nil
}

// path is a row by its sampled tokens: where they stand, the returns from each on, and W up to each.
type path struct {
	at               []int
	returns, weights []float64
}

func follow(rewards, old, sumSquares []float64, sampled []bool) (path, error) {
	var p path
	weight := 0.0
	for t, yes := range sampled {
		if !yes {
			continue
		}
		if !credit.Finite(old[t]) || !credit.Finite(sumSquares[t]) {
			return p, fmt.Errorf("%w: token %d has the log-prob %v and the sum of squares %v", credit.ErrNotFinite, t, old[t], sumSquares[t])
		}
		weight += max(1-float64(2*math.Exp(old[t]))+sumSquares[t], 0)
		p.at, p.weights = append(p.at, t), append(p.weights, weight)
	}
	p.returns = make([]float64, len(p.at))
	togo := 0.0
	for k := len(p.at) - 1; k >= 0; k-- {
		togo += rewards[p.at[k]]
		p.returns[k] = togo
	}
	return p, nil
}

// compare gives the t-th tokens of the rows that have one their advantages. One alone has its return.
func compare(paths []path, rows []int, t int, out [][]float64) {
	first := paths[rows[0]].returns[t]
	var sum, weights float64
	equal := len(rows) > 1
	for _, row := range rows {
		p := paths[row]
		sum += float64(p.weights[t] * p.returns[t]) // rounded, so that no machine fuses it
		weights += p.weights[t]
		equal = equal && p.returns[t] == first
	}
	baseline := 0.0
	if len(rows) > 1 && weights > 0 {
		baseline = sum / weights
	}
	for _, row := range rows {
		if !equal {
			out[row][paths[row].at[t]] = paths[row].returns[t] - baseline
		}
	}
}
