package gigpo

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

// overTurns takes the mean and the standard deviation of a group over its turns, each with its
// trajectory's return, as verl-agent does by default. Without it they are over trajectories, as in the paper.
var overTurns = option.Option{
	Section: option.Credit, Name: "over_turns", Switch: true, Source: "GiGPO (arXiv 2505.10978); verl-agent: true",
	Doc: "Takes the group's mean and standard deviation over turns instead of trajectories (%s): longer trajectories count more.",
}

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "gigpo", By: "the group and by equal states inside it (GiGPO)",
	Formula: "A_k = A^E(R in G) + ω · A^S(G_k among equal states of G)", Paper: "GiGPO, arXiv 2505.10978", File: "gigpo/gigpo.go",
	Compares: true, Reads: []string{"normalize_by_std", "epsilon", "floor", "gamma", "step_weight"}, StepWeight: "GiGPO's ω", Own: []option.Option{overTurns},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return in.ByTurn(GiGPO(in.Rewards, in.Groups, in.Keys, o))
	},
}

// GiGPO computes the advantage of each turn from two comparisons: the trajectory with its
// group, and the turn with all turns of the group that began in the same state, its
// anchor group (group-in-group policy optimisation, arXiv 2505.10978; verl-agent's
// gigpo):
//
//	A^E_i = (R_i − mean(R_group)) / F
//	G_k   = r_k + γ·G_{k+1}
//	A^S_k = (G_k − mean(G_anchor)) / F, 0 for a turn alone in its anchor group
//	A_k   = A^E_i + ω·A^S_k
//
// where F is the sample standard deviation plus ε, or 1. There is no critic.
//
// rewards: [rows][turns], penalties included; R_i is their undiscounted sum.
// groups: [rows]. keys: [rows][turns], the StateKey of the environment when the
// turn began. Rows may have different numbers of turns, or none. The result,
// [rows][turns], applies to every sampled token of the turn (OverTurns).
//
// A state that occurs twice in one trajectory counts twice, as in the paper. Differences
// from the paper: anchors are equal states, neither equal observation texts nor similar
// ones. A StateKey does not include the number of turns left, so two turns of one anchor
// may have different budgets (as in the paper, if the text does not show it). There is a
// floor, and equal returns give exactly 0. In a group of one row A^E is the return, as in
// GRPO. With OverTurns the mean and F of A^E are over the turns of the group, so that longer
// trajectories count more: verl-agent's default (compute_mean_std_cross_steps). verl-agent's default and its WebShop
// script have F = 1 (mean_norm), its search and mathematics F = std. It also has enable_similarity: anchors of texts
// that are similar by 0.95.
//
// Errors are of kind ErrRewards or ErrInput.
func GiGPO(rewards [][]float64, groups []int, keys [][]string, o credit.Options) ([][]float64, error) {
	if err := credit.CheckUnit("Gamma", o.Gamma); err != nil {
		return nil, err
	}
	if !credit.Finite(o.StepWeight) {
		return nil, fmt.Errorf("%w: StepWeight is %v", credit.ErrInput, o.StepWeight)
	}
	if err := credit.CheckTurns(rewards); err != nil {
		return nil, err
	}
	if len(keys) != len(rewards) {
		return nil, fmt.Errorf("%w: rewards of %d rows, state keys of %d", credit.ErrInput, len(rewards), len(keys))
	}
	episodes, err := episodeAdvantages(o, rewards, groups)
	if err != nil {
		return nil, err
	}

	// The anchors and returns of all turns, row after row.
	type anchor struct {
		group int
		key   string
	}
	var anchors []anchor
	var returns []float64
	for row, turns := range rewards {
		if len(keys[row]) != len(turns) {
			return nil, fmt.Errorf("%w: row %d has %d rewards and %d state keys", credit.ErrInput, row, len(turns), len(keys[row]))
		}
		first, sum := len(returns), 0.0
		returns = append(returns, turns...)
		for k := len(turns) - 1; k >= 0; k-- {
			sum = turns[k] + float64(o.Gamma*sum)
			returns[first+k] = sum
		}
		for _, key := range keys[row] {
			anchors = append(anchors, anchor{groups[row], key})
		}
	}
	for _, members := range credit.RowsOf(anchors) {
		o.ScaleAt(returns, members) // a turn alone in its anchor group gets 0
	}

	out := credit.RowsLike(rewards, returns)
	for row, turns := range out {
		for k := range turns {
			turns[k] = episodes[row] + float64(o.StepWeight*turns[k])
		}
	}
	return out, nil
}

// episodeAdvantages is A^E of each row.
func episodeAdvantages(o credit.Options, rewards [][]float64, groups []int) ([]float64, error) {
	returns := credit.Returns(rewards)
	if !overTurns.On(o.Own) {
		return credit.GRPO(returns, groups, o)
	}
	if err := credit.Check(returns, "group indexes", len(groups)); err != nil {
		return nil, err
	}
	var ofTurns []float64
	var groupOfTurns []int
	for row, turns := range rewards {
		for range turns {
			ofTurns, groupOfTurns = append(ofTurns, returns[row]), append(groupOfTurns, groups[row])
		}
	}
	scaled, err := credit.GRPO(ofTurns, groupOfTurns, o)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(rewards))
	for row, turns := range rewards {
		if len(turns) > 0 {
			out[row], scaled = scaled[0], scaled[len(turns):]
		}
	}
	return out, nil
}
