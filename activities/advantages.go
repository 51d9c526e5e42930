package activities

import (
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// learned are trajectories as the algorithms of credit take them; a token's place
// is that in the trajectory's ids.
type learned struct {
	returns []float64       // [rows], penalties included
	rewards [][]float64     // [rows][turns], the same, turn by turn
	keys    [][]string      // [rows][turns], the state at each turn's beginning
	groups  []int           // [rows]
	turns   [][]credit.Span // [rows][turns], the sampled tokens
	lengths []int           // [rows]
}

func learnedFrom(rows []TrajectoryRow) learned {
	var l learned
	for _, r := range rows {
		var rewards []float64
		var turns []credit.Span
		at := 0
		for k := range r.PromptLengths {
			rewards = append(rewards, r.Rewards[k]+r.Penalties[k])
			from := at + int(r.PromptLengths[k])
			at = from + int(r.SampledLengths[k])
			turns = append(turns, credit.Span{From: from, To: at})
		}
		l.returns = append(l.returns, r.Return())
		l.rewards = append(l.rewards, rewards)
		l.keys = append(l.keys, r.StateKeys[:r.Turns()])
		l.groups = append(l.groups, int(r.Group))
		l.turns = append(l.turns, turns)
		l.lengths = append(l.lengths, len(r.IDs))
	}
	return l
}

// advantages are those of the sampled tokens, in order: [rows][sampled tokens].
// The weights of the selection are in them.
func advantages(c spec.Credit, rows []TrajectoryRow) ([][]float64, error) {
	l := learnedFrom(rows)
	tokens, err := l.credit(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", c.Algorithm, err, store.ErrInvalid)
	}
	out := make([][]float64, len(rows))
	for i, r := range rows {
		for _, span := range l.turns[i] {
			for t := span.From; t < span.To; t++ {
				out[i] = append(out[i], tokens[i][t]*r.Weight)
			}
		}
	}
	return out, nil
}

// credit applies an algorithm: [rows][tokens].
func (l learned) credit(c spec.Credit) ([][]float64, error) {
	mask, err := credit.Mask(l.turns, l.lengths)
	if err != nil {
		return nil, err
	}
	var rows []float64
	switch c.Algorithm {
	case spec.CreditGRPO:
		rows, err = credit.GRPO(l.returns, l.groups, credit.GRPOOptions{NormalizeByStd: c.NormalizeByStd, Epsilon: c.Epsilon, Floor: c.Floor})
	case spec.CreditDrGRPO:
		rows, err = credit.DrGRPO(l.returns, l.groups)
	case spec.CreditLeaveOneOut:
		rows, err = credit.LeaveOneOut(l.returns, l.groups)
	case spec.CreditReinforcePPBaseline:
		return credit.ReinforcePlusPlusBaseline(l.returns, l.groups, mask)
	case spec.CreditReinforcePP:
		rewards, err := credit.TokenRewards(l.rewards, l.turns, l.lengths, credit.AtTurns)
		if err != nil {
			return nil, err
		}
		return credit.ReinforcePlusPlus(rewards, mask, c.Gamma)
	case spec.CreditGiGPO:
		turns, err := credit.GiGPO(l.rewards, l.groups, l.keys, credit.GiGPOOptions{
			Gamma: c.Gamma, StepWeight: c.StepWeight, NormalizeByStd: c.NormalizeByStd, Epsilon: c.Epsilon, Floor: c.Floor,
		})
		if err != nil {
			return nil, err
		}
		return credit.OverTurns(turns, l.turns, l.lengths)
	default:
		return nil, fmt.Errorf("algorithm %q", c.Algorithm)
	}
	if err != nil {
		return nil, err
	}
	return credit.OverRows(rows, mask)
}
