package run

import (
	"errors"
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// creditInput is trajectories as the credit algorithms take them. A token's place is
// its index in the trajectory's ids.
type creditInput struct {
	Returns []float64       // [rows], penalties included
	Rewards [][]float64     // [rows][turns], the same, turn by turn
	keys    [][]string      // [rows][turns], the state at each turn's beginning
	groups  []int           // [rows]
	turns   [][]credit.Span // [rows][turns], the sampled tokens
	lengths []int           // [rows]
	starts  []string        // [rows], the initial state
	mask    [][]bool        // [rows][tokens], the sampled ones

	// What the device said of the sampled tokens, [rows][tokens]; nil without.
	logProbs, reference, values [][]float64
}

func NewCreditInput(rows []TrajectoryRow) creditInput {
	var l creditInput
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
		l.Returns = append(l.Returns, r.Return())
		l.Rewards = append(l.Rewards, rewards)
		l.keys = append(l.keys, r.StateKeys[:r.Turns()])
		l.groups = append(l.groups, int(r.Group))
		l.turns = append(l.turns, turns)
		l.lengths = append(l.lengths, len(r.IDs))
		l.starts = append(l.starts, r.StateKeys[0])
	}
	return l
}

// Scored adds what the scores say.
func (l *creditInput) Scored(rows []TrajectoryRow, scores []ScoreRow, reference, critic bool) error {
	var err error
	if l.mask, err = credit.Mask(l.turns, l.lengths); err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	if len(scores) != len(rows) {
		return fmt.Errorf("%d scores for %d selected rows: %w", len(scores), len(rows), store.ErrInvalid)
	}
	for i, s := range scores {
		n := Total(rows[i].SampledLengths)
		if s.Row != rows[i].Row || len(s.LogProbs) != n || reference && len(s.RefLogProbs) != n || critic && len(s.Values) != n {
			return fmt.Errorf("scores of row %d do not fit its trajectory: %w", rows[i].Row, store.ErrInvalid)
		}
		l.logProbs = append(l.logProbs, l.spread(i, s.LogProbs))
		if reference {
			l.reference = append(l.reference, l.spread(i, s.RefLogProbs))
		}
		if critic {
			l.values = append(l.values, l.spread(i, s.Values))
		}
	}
	return nil
}

// spread puts what a row's sampled tokens have, in order, at their places among all
// its tokens.
func (l *creditInput) spread(row int, sampled []float32) []float64 {
	out := make([]float64, l.lengths[row])
	for _, s := range l.turns[row] {
		for t := s.From; t < s.To; t++ {
			out[t], sampled = float64(sampled[0]), sampled[1:]
		}
	}
	return out
}

// gather is spread the other way round.
func (l *creditInput) gather(row int, tokens []float64) []float64 {
	var out []float64
	for _, s := range l.turns[row] {
		out = append(out, tokens[s.From:s.To]...)
	}
	return out
}

// TrainingSignal is what an update learns from the sampled tokens, in order:
// [rows][sampled tokens].
type TrainingSignal struct {
	// Advantages have the weights of the selection in them; returns are what the
	// critic learns, nil without one.
	Advantages, Returns [][]float64
	Metrics             activities.Metrics
}

// TrainingSignal computes advantages with the effective settings. past are the values of
// initial states before the iteration.
//
// A value or a log-prob that is not finite makes every advantage NaN: the update
// then skips its step, and counts it.
func (l *creditInput) TrainingSignal(settings spec.Settings, rows []TrajectoryRow, past []credit.StateValue) (TrainingSignal, error) {
	c, u := settings.Credit, settings.Update
	out := TrainingSignal{Metrics: activities.Metrics{}}
	advantages, returns, err := l.credit(c, u, past, out.Metrics)
	if errors.Is(err, credit.ErrNotFinite) {
		advantages = filled(l.lengths, math.NaN())
		if c.Critic() {
			returns = advantages
		}
	} else if err != nil {
		return out, fmt.Errorf("%s: %w: %w", c.Algorithm, err, store.ErrInvalid)
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, r := range rows {
		row := l.gather(i, advantages[i])
		for t := range row {
			row[t] *= r.Weight
			lo, hi = min(lo, row[t]), max(hi, row[t])
		}
		out.Advantages = append(out.Advantages, row)
		if returns != nil {
			out.Returns = append(out.Returns, l.gather(i, returns[i]))
		}
	}
	out.Metrics["critic/advantages/max"], out.Metrics["critic/advantages/min"] = canon.Float(hi), canon.Float(lo)
	if returns != nil {
		explained, err := loss.ExplainedVariance(l.values, returns, l.mask)
		if err != nil {
			return out, err
		}
		out.Metrics["critic/vf_explained_var"] = canon.Float(explained)
	}
	return out, nil
}

// filled are numbers of the given lengths, all the same.
func filled(lengths []int, v float64) [][]float64 {
	out := make([][]float64, len(lengths))
	for i, n := range lengths {
		out[i] = make([]float64, n)
		for t := range out[i] {
			out[i][t] = v
		}
	}
	return out
}

// credit applies an algorithm: advantages and, with a critic, returns,
// [rows][tokens].
func (l *creditInput) credit(c spec.Credit, u spec.Update, past []credit.StateValue, metrics activities.Metrics) (advantages, returns [][]float64, err error) {
	tokens, err := l.rewarded(c, u, metrics)
	if err != nil {
		return nil, nil, err
	}
	var rows []float64
	switch c.Algorithm {
	case spec.CreditGRPO:
		rows, err = credit.GRPO(l.Returns, l.groups, credit.GRPOOptions{NormalizeByStd: c.NormalizeByStd, Epsilon: c.Epsilon, Floor: c.Floor})
	case spec.CreditDrGRPO:
		rows, err = credit.DrGRPO(l.Returns, l.groups)
	case spec.CreditLeaveOneOut:
		rows, err = credit.LeaveOneOut(l.Returns, l.groups)
	case spec.CreditStateBaseline:
		rows, err = credit.StateBaseline(past, l.Returns, l.starts)
	case spec.CreditReinforcePPBaseline:
		advantages, err = credit.ReinforcePlusPlusBaseline(l.Returns, l.groups, l.mask)
		return advantages, nil, err
	case spec.CreditReinforcePP:
		advantages, err = credit.ReinforcePlusPlus(tokens, l.mask, c.Gamma)
		return advantages, nil, err
	case spec.CreditGAE:
		return credit.GAE(tokens, l.values, l.mask, credit.GAEOptions{Gamma: c.Gamma, Lambda: c.Lambda, Whiten: c.Whiten})
	case spec.CreditTurnGAE:
		return credit.TurnGAE(l.Rewards, l.values, l.turns, credit.TurnGAEOptions{
			Gamma: c.Gamma, Lambda: c.Lambda, TurnGamma: c.TurnGamma, TurnLambda: c.TurnLambda,
			ValueAt: credit.ValuePlace(c.ValueAt), Whiten: c.Whiten,
		})
	case spec.CreditGiGPO:
		turns, err := credit.GiGPO(l.Rewards, l.groups, l.keys, credit.GiGPOOptions{
			Gamma: c.Gamma, StepWeight: c.StepWeight, NormalizeByStd: c.NormalizeByStd, Epsilon: c.Epsilon, Floor: c.Floor,
		})
		if err != nil {
			return nil, nil, err
		}
		advantages, err = credit.OverTurns(turns, l.turns, l.lengths)
		return advantages, nil, err
	default:
		return nil, nil, fmt.Errorf("algorithm %q", c.Algorithm)
	}
	if err != nil {
		return nil, nil, err
	}
	advantages, err = credit.OverRows(rows, l.mask)
	return advantages, nil, err
}

// rewarded puts the rewards at their tokens, [rows][tokens]. With a penalty for the
// distance from the reference in them, the turns' rewards and the returns have it
// too.
func (l *creditInput) rewarded(c spec.Credit, u spec.Update, metrics activities.Metrics) ([][]float64, error) {
	place := credit.RewardPlace(c.RewardAt)
	if place == "" {
		place = credit.AtTurns
	}
	tokens, err := credit.TokenRewards(l.Rewards, l.turns, l.lengths, place)
	if err != nil || u.KLIn != spec.KLReward {
		return tokens, err
	}
	penalised := func(at [][]float64) ([][]float64, float64, error) {
		return credit.KLInReward(at, l.logProbs, l.reference, l.mask, u.KLCoefficient, loss.KLEstimator(u.KLEstimator))
	}
	tokens, mean, err := penalised(tokens)
	if err != nil {
		return nil, err
	}
	metrics["actor/reward_kl_penalty"] = canon.Float(mean)
	metrics["actor/reward_kl_penalty_coeff"] = canon.Float(u.KLCoefficient)
	// Algorithms that see turns get each turn's own, wherever the tokens' rewards are.
	own, err := credit.TokenRewards(l.Rewards, l.turns, l.lengths, credit.AtTurns)
	if err != nil {
		return nil, err
	}
	if own, _, err = penalised(own); err != nil {
		return nil, err
	}
	if l.Rewards, err = credit.TurnSums(own, l.turns); err != nil {
		return nil, err
	}
	l.Returns = credit.Returns(tokens)
	return tokens, nil
}
