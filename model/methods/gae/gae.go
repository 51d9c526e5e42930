package gae

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "gae", Also: []string{"ppo", "actor_critic"}, By: "a critic over tokens (GAE: PPO)",
	Formula: "δ_t = r_t + γV_{t+1} − V_t; A = w(Σ (γλ)^k δ_{t+k})", Paper: "GAE, arXiv 1506.02438, eq. 16; RAGEN", File: "gae/gae.go",
	Critic: true, Reads: []string{"gamma", "lambda", "reward_at", "whiten"},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return GAE(in.Tokens, in.Values, in.Mask, o)
	},
}

// checkTokens returns an error for a Gamma or Lambda outside its range.
func checkTokens(o credit.Options) error {
	if err := credit.CheckUnit("Gamma", o.Gamma); err != nil {
		return err
	}
	return credit.CheckUnit("Lambda", o.Lambda)
}

// GAE computes the advantage of each sampled token by generalised advantage estimation
// with a critic (arXiv 1506.02438, equation 16; verl's compute_gae_advantage_return), and
// the returns, which are the critic's targets:
//
//	δ_t = r_t + γ·V_{t+1} − V_t
//	A_t = δ_t + γλ·A_{t+1}
//	G_t = A_t + V_t, with A_t before whitening
//
// Tokens of the environment are skipped: t+1 is the row's next sampled token, and the
// tokens between are neither discounted nor valued. After a row's last sampled token the
// value is 0, also if the episode was truncated (RAGEN does not bootstrap either).
//
// rewards: [rows][tokens], each reward at a sampled token (TokenRewards puts them
// there). values: [rows][tokens], computed when the rollout is scored; read where the
// mask is true. advantages and returns: [rows][tokens].
//
// Difference from verl: a reward at a token that was not sampled is an error; verl ignores
// it.
//
// Errors are of kind ErrRewards, ErrNotFinite (a value) or ErrInput.
func GAE(rewards, values [][]float64, mask [][]bool, o credit.Options) (advantages, returns [][]float64, err error) {
	if err := checkTokens(o); err != nil {
		return nil, nil, err
	}
	if err := credit.CheckShape("values", values, mask); err != nil {
		return nil, nil, err
	}
	if err := credit.CheckTokenRewards(rewards, mask); err != nil {
		return nil, nil, err
	}
	advantages, returns = credit.Zeros(mask), credit.Zeros(mask)
	for row, sampled := range mask {
		if t := backwards(o, rewards[row], values[row], sampled, advantages[row], returns[row]); t >= 0 {
			return nil, nil, fmt.Errorf("%w: the value at row %d, token %d is %v", credit.ErrNotFinite, row, t, values[row][t])
		}
	}
	if o.Whiten {
		credit.Whiten(advantages, mask)
	}
	return advantages, returns, nil
}

// backwards computes the advantages and returns of a row, or of a part of a row whose
// future value is 0, from the last token to the first. It returns the first token on this
// way whose value is not finite, or −1.
func backwards(o credit.Options, rewards, values []float64, sampled []bool, advantages, returns []float64) int {
	next, advantage := 0.0, 0.0
	for t := len(sampled) - 1; t >= 0; t-- {
		if !sampled[t] {
			continue
		}
		v := values[t]
		if !credit.Finite(v) {
			return t
		}
		delta := rewards[t] + float64(o.Gamma*next) - v
		advantage = delta + float64(o.Gamma*o.Lambda*advantage)
		advantages[t], returns[t] = advantage, advantage+v
		next = v
	}
	return -1
}
