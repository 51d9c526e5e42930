package gae

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
)

// EntryTurns is the method in the table.
var EntryTurns = credit.Algorithm{
	Name: "turn_gae", By: "a critic over turns and the tokens inside them (turn-level GAE)",
	Formula: "the same over turns; inside a turn over its tokens, with the turn's return at its last",
	Paper:   "VAGEN, arXiv 2510.16907; RAGEN's `bi_level_gae`", File: "gae/turn_gae.go",
	Critic: true, Reads: []string{"gamma", "lambda", "turn_gamma", "turn_lambda", "value_at", "whiten"},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
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
func TurnGAE(rewards, values [][]float64, turns [][]credit.Span, o credit.Options) (advantages, returns [][]float64, err error) {
	if err := checkTokens(o); err != nil {
		return nil, nil, err
	}
	mask, turnValues, err := turnValues(o, values, turns)
	if err != nil {
		return nil, nil, err
	}
	if err := credit.CheckPerTurn("rewards", rewards, turns); err != nil {
		return nil, nil, err
	}
	upper, err := TurnAdvantages(rewards, turnValues, o.TurnGamma, o.TurnLambda)
	if err != nil {
		return nil, nil, err
	}
	advantages, returns = credit.Zeros(mask), credit.Zeros(mask)
	rewardAt := credit.Zeros(mask)
	for row, spans := range turns {
		for k, s := range spans {
			rewardAt[row][s.To-1] = upper[row][k] + turnValues[row][k]
			t := backwards(o, rewardAt[row][s.From:s.To], values[row][s.From:s.To], mask[row][s.From:s.To],
				advantages[row][s.From:s.To], returns[row][s.From:s.To])
			if t >= 0 {
				t += s.From
				return nil, nil, fmt.Errorf("%w: the value at row %d, token %d is %v", credit.ErrNotFinite, row, t, values[row][t])
			}
		}
	}
	if o.Whiten {
		credit.Whiten(advantages, mask)
	}
	return advantages, returns, nil
}

// TurnAdvantages is the upper level of TurnGAE: it computes A_k of each turn from the
// rewards and values of the turns, all [rows][turns]. It can be used when a trajectory's
// turns are not in one row; OverTurns then copies A_k to the turn's tokens (VAGEN's
// no-concat variant). gamma and lambda are in [0, 1].
// Errors are of kind ErrRewards, ErrNotFinite (a value) or ErrInput.
func TurnAdvantages(rewards, values [][]float64, gamma, lambda float64) ([][]float64, error) {
	if err := credit.CheckUnit("TurnGamma", gamma); err != nil {
		return nil, err
	}
	if err := credit.CheckUnit("TurnLambda", lambda); err != nil {
		return nil, err
	}
	if err := credit.CheckTurns(rewards); err != nil {
		return nil, err
	}
	if len(rewards) != len(values) {
		return nil, fmt.Errorf("%w: rewards of %d rows, values of %d", credit.ErrInput, len(rewards), len(values))
	}
	out := make([][]float64, len(rewards))
	for row, turns := range rewards {
		if len(turns) != len(values[row]) {
			return nil, fmt.Errorf("%w: row %d has %d rewards and %d values", credit.ErrInput, row, len(turns), len(values[row]))
		}
		out[row] = make([]float64, len(turns))
		next, advantage := 0.0, 0.0
		for k := len(turns) - 1; k >= 0; k-- {
			v := values[row][k]
			if !credit.Finite(v) {
				return nil, fmt.Errorf("%w: the value of row %d, turn %d is %v", credit.ErrNotFinite, row, k, v)
			}
			delta := turns[k] + float64(gamma*next) - v
			advantage = delta + float64(gamma*lambda*advantage)
			out[row][k] = advantage
			next = v
		}
	}
	return out, nil
}
