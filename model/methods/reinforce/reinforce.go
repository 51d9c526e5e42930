package reinforce

import "github.com/reprise-rl/reprise/model/credit"

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "reinforce_pp", Also: []string{"reinforce++", "reinforce_plus_plus", "reinforce"}, By: "the batch's mean and standard deviation (REINFORCE++)",
	Formula: "A_t = w(Σ_{k≥t} γ^{k−t} r_k)", Paper: "REINFORCE++, arXiv 2501.03262", File: "reinforce/reinforce.go",
	Reads: []string{"gamma", "reward_at"},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return credit.ByToken(ReinforcePlusPlus(in.Tokens, in.Mask, o.Gamma))
	},
}

// EntryBaseline is the method in the table.
var EntryBaseline = credit.Algorithm{
	Name: "reinforce_pp_baseline", Also: []string{"reinforce++_baseline", "reinforce_plus_plus_baseline"}, By: "the group's mean and the batch's standard deviation (REINFORCE++ with a baseline)",
	Formula: "A = w(R − mean_G)", Paper: "REINFORCE++, arXiv 2501.03262, \"w/ baseline\"", File: "reinforce/reinforce.go",
	Compares: true,
	Compute: func(in credit.Input, _ credit.Options) ([][]float64, [][]float64, error) {
		return credit.ByToken(ReinforcePlusPlusBaseline(in.Returns, in.Groups, in.Mask))
	},
}

// ReinforcePlusPlus computes the advantage of each sampled token as its discounted return,
// whitened over all tokens of the batch (REINFORCE++, arXiv 2501.03262; verl's
// compute_reinforce_plus_plus_outcome_advantage):
//
//	G_t = r_t + γ·G_{t+1},  A = whiten(G)
//
// It uses neither a critic nor groups: the batch's mean is the baseline. The caller has
// already applied the paper's KL penalty to the rewards (KLInReward with k1).
//
// rewards: [rows][tokens], each at a sampled token. gamma: in [0, 1] (paper: 1).
// The result is [rows][tokens].
//
// Difference from verl: the environment's tokens are skipped, as in GAE. verl sets the
// running return to 0 at every token that was not sampled, so that the reward of a
// trajectory would reach only its last turn.
//
// Errors are of kind ErrRewards or ErrInput.
func ReinforcePlusPlus(rewards [][]float64, mask [][]bool, gamma float64) ([][]float64, error) {
	return whitenedReturns(rewards, mask, gamma, false)
}

// whitenedReturns are the discounted returns of the sampled tokens, whitened. With byTurn a
// token sees the rewards of its own turn alone.
func whitenedReturns(rewards [][]float64, mask [][]bool, gamma float64, byTurn bool) ([][]float64, error) {
	if err := credit.CheckUnit("Gamma", gamma); err != nil {
		return nil, err
	}
	if err := credit.CheckTokenRewards(rewards, mask); err != nil {
		return nil, err
	}
	returns := credit.Zeros(mask)
	for row, sampled := range mask {
		sum := 0.0
		for t := len(sampled) - 1; t >= 0; t-- {
			if sampled[t] {
				sum = rewards[row][t] + float64(gamma*sum)
				returns[row][t] = sum
			} else if byTurn {
				sum = 0
			}
		}
	}
	credit.Whiten(returns, mask)
	return returns, nil
}

// ReinforcePlusPlusBaseline is REINFORCE++ with the group's mean as the baseline
// (arXiv 2501.03262, the "w/ baseline" variant; verl's
// compute_reinforce_plus_plus_baseline_outcome_advantage):
//
//	A = whiten(R_i − mean(R_group)) over all sampled tokens
//
// The standard deviation is the whole batch's, so a group whose rewards hardly vary has
// little weight, whereas GRPO would scale it up.
//
// rewards and groups are as in GRPO. For a group of one the mean counts as 0, as in verl. The
// result is [rows][tokens]. Errors are of kind ErrRewards or ErrInput.
func ReinforcePlusPlusBaseline(rewards []float64, groups []int, mask [][]bool) ([][]float64, error) {
	centred, err := credit.DrGRPO(rewards, groups)
	if err != nil {
		return nil, err
	}
	tokens, err := credit.OverRows(centred, mask)
	if err != nil {
		return nil, err
	}
	credit.Whiten(tokens, mask)
	return tokens, nil
}
