package gae

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
)

// EntryTurnReturns is the method in the table.
var EntryTurnReturns = credit.Algorithm{
	Name: "turn_returns", By: "a critic over turns that learns at one token of each (VAGEN's returns)",
	Formula: "δ_k = r_k + γ·V_{k+1} − V_k over turns, the same for all tokens of a turn; the critic learns A_k + V_k at one",
	Paper:   "VAGEN, arXiv 2510.16907: `no_concat_gae`", File: "gae/turn_returns.go",
	Critic: true, Reads: []string{"turn_gamma", "turn_lambda", "value_at", "whiten"},
	Learns: func(in credit.Input, o credit.Options) [][]bool {
		learns := make([][]bool, len(in.Turns))
		for row, spans := range in.Turns {
			learns[row] = make([]bool, in.Lengths[row])
			for _, s := range spans {
				learns[row][valueToken(o, s)] = true
			}
		}
		return learns
	},
	Compute: func(in credit.Input, o credit.Options) (advantages, returns [][]float64, err error) {
		advantages, returns, _, err = TurnReturns(in.Rewards, in.Values, in.Turns, o)
		return advantages, returns, err
	},
}

// TurnReturns is GAE over turns whose critic learns at one token a turn (VAGEN's
// no_concat_gae, arXiv 2510.16907):
//
//	δ_k = r_k + γ_turn·V_{k+1} − V_k
//	A_k = δ_k + γ_turn·λ_turn·A_{k+1}, the same for all sampled tokens of turn k
//	G_k = A_k + V_k, at the token at which V_k is read
//
// Unlike TurnGAE it has no lower level: what the critic says inside a turn is neither read nor
// taught.
//
// rewards, values, turns and options are as in TurnGAE; Gamma and Lambda are not read.
// advantages, whitened over all sampled tokens if Whiten is set, and returns are [rows][tokens].
// learns, [rows][tokens], is true at the one token of each turn whose return the critic
// learns; other returns are 0.
//
// Differences from VAGEN: a row is a trajectory and not a turn, which changes what the values
// have seen. ValueAt LastPromptToken is its first-token variant, FinalToken the other. A reward
// of a truncated turn counts like any other.
//
// Errors are of kind ErrRewards, ErrNotFinite (a value) or ErrInput.
func TurnReturns(rewards, values [][]float64, turns [][]credit.Span,
	o credit.Options) (advantages, returns [][]float64, learns [][]bool, err error) {
	mask, turnValues, err := turnValues(o, values, turns)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := credit.CheckPerTurn("rewards", rewards, turns); err != nil {
		return nil, nil, nil, err
	}
	upper, err := TurnAdvantages(rewards, turnValues, o.TurnGamma, o.TurnLambda)
	if err != nil {
		return nil, nil, nil, err
	}
	advantages, returns = credit.Zeros(mask), credit.Zeros(mask)
	for row, spans := range turns {
		learns = append(learns, make([]bool, len(mask[row])))
		for k, s := range spans {
			for t := s.From; t < s.To; t++ {
				advantages[row][t] = upper[row][k]
			}
			at := valueToken(o, s)
			returns[row][at], learns[row][at] = upper[row][k]+turnValues[row][k], true
		}
	}
	if o.Whiten {
		credit.Whiten(advantages, mask)
	}
	return advantages, returns, learns, nil
}

// turnValues reads the value of each turn, [rows][turns], and makes the mask.
func turnValues(o credit.Options, values [][]float64, turns [][]credit.Span) (mask [][]bool, out [][]float64, err error) {
	switch o.ValueAt {
	case credit.LastPromptToken, credit.FinalToken, "":
	default:
		return nil, nil, fmt.Errorf("%w: value place %q, must be %q or %q", credit.ErrInput, o.ValueAt, credit.LastPromptToken, credit.FinalToken)
	}
	lengths := make([]int, len(values))
	for row := range values {
		lengths[row] = len(values[row])
	}
	if mask, err = credit.Mask(turns, lengths); err != nil {
		return nil, nil, err
	}
	for row, spans := range turns {
		out = append(out, make([]float64, len(spans)))
		for k, s := range spans {
			out[row][k] = values[row][valueToken(o, s)]
		}
	}
	return mask, out, nil
}

// valueToken is the token whose value is the turn's.
func valueToken(o credit.Options, s credit.Span) int {
	if o.ValueAt == credit.FinalToken {
		return s.To - 1
	}
	return s.From
}
