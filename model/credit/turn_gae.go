package credit

import "fmt"

// ValuePlace is the token at which the critic's value of a turn is read.
type ValuePlace = string

const (
	// LastPromptToken reads it at the last token before the turn's first sampled
	// one: the critic's expectation before the policy has sampled anything. That is
	// values[row][span.From].
	LastPromptToken ValuePlace = "last_prompt_token"
	// FinalToken reads it at the turn's final sampled token, as RAGEN does: the
	// critic's expectation given all other tokens of the turn. The baseline then
	// already contains most of the turn's effect. That is values[row][span.To−1].
	FinalToken ValuePlace = "final_token"
)

var turnGAE = Algorithm{
	Name: "turn_gae", By: "a critic over turns and the tokens inside them (turn-level GAE)",
	Formula: "the same over turns; inside a turn over its tokens, with the turn's return at its last",
	Paper:   "VAGEN, arXiv 2510.16907; RAGEN's `bi_level_gae`", File: "turn_gae.go",
	Critic: true, Reads: []string{"gamma", "lambda", "turn_gamma", "turn_lambda", "value_at", "whiten"},
	Compute: func(in Input, o Options) ([][]float64, [][]float64, error) {
		return TurnGAE(in.Rewards, in.Values, in.Turns, o)
	},
}

// TurnGAE is generalised advantage estimation on two levels, turns and the tokens inside
// them (bi-level GAE of VAGEN, arXiv 2510.16907; RAGEN's bi_level_gae). Over the turns k of
// a row, from the last to the first, it computes
//
//	δ_k = r_k + γ_turn·V_{k+1} − V_k
//	A_k = δ_k + γ_turn·λ_turn·A_{k+1}
//
// and inside turn k ordinary GAE over its tokens with γ and λ. There the turn's return
// A_k + V_k is the reward of its last token, and the future value after it is 0: values
// cross the end of a turn only through the upper level.
//
// rewards: [rows][turns], penalties included. values: [rows][tokens], as in GAE.
// turns: [rows][turns], the span of each. advantages and returns: [rows][tokens],
// returns = advantages (before whitening) + values.
//
// Differences from RAGEN: turns are given as spans. RAGEN recognises a turn's end by a
// reward that is not 0, so it misses turns with reward 0, and with the one reward that it
// supports, at the sequence's end, its method is plain GAE. The value's place is an
// option, and the turns have their own λ.
//
// Errors are of kind ErrRewards, ErrNotFinite (a value) or ErrInput.
func TurnGAE(rewards, values [][]float64, turns [][]Span, o Options) (advantages, returns [][]float64, err error) {
	if err := o.checkTokens(); err != nil {
		return nil, nil, err
	}
	mask, turnValues, err := o.turnValues(values, turns)
	if err != nil {
		return nil, nil, err
	}
	if err := checkPerTurn("rewards", rewards, turns); err != nil {
		return nil, nil, err
	}
	upper, err := TurnAdvantages(rewards, turnValues, o.TurnGamma, o.TurnLambda)
	if err != nil {
		return nil, nil, err
	}
	advantages, returns = zeros(mask), zeros(mask)
	rewardAt := zeros(mask)
	for row, spans := range turns {
		for k, s := range spans {
			rewardAt[row][s.To-1] = upper[row][k] + turnValues[row][k]
			t := o.backwards(rewardAt[row][s.From:s.To], values[row][s.From:s.To], mask[row][s.From:s.To],
				advantages[row][s.From:s.To], returns[row][s.From:s.To])
			if t >= 0 {
				t += s.From
				return nil, nil, fmt.Errorf("%w: the value at row %d, token %d is %v", ErrNotFinite, row, t, values[row][t])
			}
		}
	}
	if o.Whiten {
		whiten(advantages, mask)
	}
	return advantages, returns, nil
}

// TurnAdvantages is the upper level of TurnGAE: it computes A_k of each turn from the
// rewards and values of the turns, all [rows][turns]. It can be used when a trajectory's
// turns are not in one row; OverTurns then copies A_k to the turn's tokens (VAGEN's
// no-concat variant). gamma and lambda are in [0, 1].
// Errors are of kind ErrRewards, ErrNotFinite (a value) or ErrInput.
func TurnAdvantages(rewards, values [][]float64, gamma, lambda float64) ([][]float64, error) {
	if err := checkUnit("TurnGamma", gamma); err != nil {
		return nil, err
	}
	if err := checkUnit("TurnLambda", lambda); err != nil {
		return nil, err
	}
	if err := checkTurns(rewards); err != nil {
		return nil, err
	}
	if len(rewards) != len(values) {
		return nil, fmt.Errorf("%w: rewards of %d rows, values of %d", ErrInput, len(rewards), len(values))
	}
	out := make([][]float64, len(rewards))
	for row, turns := range rewards {
		if len(turns) != len(values[row]) {
			return nil, fmt.Errorf("%w: row %d has %d rewards and %d values", ErrInput, row, len(turns), len(values[row]))
		}
		out[row] = make([]float64, len(turns))
		next, advantage := 0.0, 0.0
		for k := len(turns) - 1; k >= 0; k-- {
			v := values[row][k]
			if !finite(v) {
				return nil, fmt.Errorf("%w: the value of row %d, turn %d is %v", ErrNotFinite, row, k, v)
			}
			delta := turns[k] + float64(gamma*next) - v
			advantage = delta + float64(gamma*lambda*advantage)
			out[row][k] = advantage
			next = v
		}
	}
	return out, nil
}
