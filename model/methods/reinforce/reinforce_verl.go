package reinforce

import "github.com/reprise-rl/reprise/model/credit"

// EntryVerl is the method in the table.
var EntryVerl = credit.Algorithm{
	Name:    "reinforce_pp_verl",
	By:      "the batch's mean and standard deviation, of returns that end with a turn (REINFORCE++ as verl computes it)",
	Formula: "A_t = w(Σ_{k≥t, same turn} γ^{k−t} r_k)", Paper: "verl, compute_reinforce_plus_plus_outcome_advantage", File: "reinforce/reinforce_verl.go",
	Reads: []string{"gamma", "reward_at"},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return credit.ByToken(ReinforcePlusPlusVerl(in.Tokens, in.Mask, o.Gamma))
	},
}

// ReinforcePlusPlusVerl is ReinforcePlusPlus as verl computes it
// (compute_reinforce_plus_plus_outcome_advantage): the running return is set to 0 at every
// token that was not sampled, so a token sees the rewards of its own turn alone. With all
// rewards at the end of a trajectory, only the last turn has a return other than 0. It is
// for comparisons with runs of verl and RAGEN.
//
// Arguments, result and errors are those of ReinforcePlusPlus.
func ReinforcePlusPlusVerl(rewards [][]float64, mask [][]bool, gamma float64) ([][]float64, error) {
	return whitenedReturns(rewards, mask, gamma, true)
}
