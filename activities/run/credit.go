package run

import (
	"errors"
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/search"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// CreditInput is trajectories as the credit algorithms take them. A token's place is
// its index in the trajectory's ids.
type CreditInput struct {
	credit.Input
	// The reference's log-probs of the sampled tokens, [rows][tokens]; nil without them.
	reference [][]float64
}

// NewCreditInput lays trajectories out by rows, turns and tokens.
func NewCreditInput(rows []episode.TrajectoryRow) CreditInput {
	var l CreditInput
	for _, r := range rows {
		var rewards []float64
		var turns []credit.Span
		at := 0
		for k := range r.PromptLengths {
			rewards = append(rewards, r.TurnReward(k))
			from := at + int(r.PromptLengths[k])
			at = from + int(r.SampledLengths[k])
			turns = append(turns, credit.Span{From: from, To: at})
		}
		l.Returns = append(l.Returns, r.Return())
		l.Rewards = append(l.Rewards, rewards)
		l.Keys = append(l.Keys, r.StateKeys[:r.Turns()])
		l.Actions = append(l.Actions, r.Actions)
		l.Successes = append(l.Successes, r.Success)
		l.Groups = append(l.Groups, int(r.Group))
		l.Turns = append(l.Turns, turns)
		l.Lengths = append(l.Lengths, len(r.IDs))
		l.Starts = append(l.Starts, r.StateKeys[0])
		// The environment's reward and the penalty for the format are parts as the modules' are.
		parts, weights := []float64{r.Reward(), r.Penalised() - r.Reward()}, []float64{1, 1}
		for _, p := range r.Parts {
			parts, weights = append(parts, p.Sum), append(weights, p.Weight)
		}
		l.Parts, l.PartWeights = append(l.Parts, parts), weights
	}
	return l
}

// BySubgoals adds what the turns say of their subgoals, by their sampled ids, and which turns executed no
// action or lack a switch or a subgoal.
func (l *CreditInput) BySubgoals(rows []episode.TrajectoryRow, tok envs.Tokenizer) {
	for i, r := range rows {
		var goals []credit.Subgoal
		var invalid []bool
		for k, turn := range l.Turns[i] {
			g := envs.ReadSubgoal(tok, r.IDs[turn.From:turn.To])
			invalid = append(invalid, r.Executed[k] == 0 || !g.Formed)
			in := func(s envs.Span) credit.Span { return credit.Span{From: turn.From + s.From, To: turn.From + s.To} }
			goals = append(goals, credit.Subgoal{Choice: in(g.Switch), Goal: in(g.Goal), Action: in(g.Action), Switches: g.Switches, Text: g.Text})
		}
		l.Subgoals, l.Invalid = append(l.Subgoals, goals), append(l.Invalid, invalid)
	}
}

// ByCriteria adds the criteria that the rewards judge at each turn. The weight of one is the module's own, times that of
// the module in the spec's rewards. The error is of kind ErrInvalid.
func (l *CreditInput) ByCriteria(rc *Context, settings spec.Settings, rows []episode.TrajectoryRow) error {
	for m, module := range rc.Modules {
		if module.Criteria == nil {
			continue
		}
		first, weight := len(l.CriteriaWeights), settings.Weight(rc.Train.Rewards[m])
		for c, own := range module.Criteria.Weights {
			l.CriteriaWeights = append(l.CriteriaWeights, weight*own)
			after := module.Criteria.After[c]
			if after >= 0 {
				after += first
			}
			l.CriteriaAfter = append(l.CriteriaAfter, after)
		}
	}
	for _, r := range rows {
		if len(r.Criteria) != r.Turns() {
			return fmt.Errorf("row %d has criteria of %d turns, and %d turns: %w", r.Row, len(r.Criteria), r.Turns(), store.ErrInvalid)
		}
		held := make([][]bool, r.Turns())
		for k, values := range r.Criteria {
			for _, v := range values {
				held[k] = append(held[k], v == 1)
			}
		}
		l.Criteria = append(l.Criteria, held)
	}
	return nil
}

// ByTrees adds the trees of the rows, and which rows are branches.
func (l *CreditInput) ByTrees(rows []episode.TrajectoryRow, t search.Trees) {
	for _, r := range rows {
		l.Trees, l.Branches = append(l.Trees, t.Tree(int(r.Member))), append(l.Branches, t.Wave(int(r.Member)) > 0)
	}
}

// Scored adds what the scores say of a run that may have a reference, and trains what credit needs.
func (l *CreditInput) Scored(rows []episode.TrajectoryRow, scores []episode.ScoreRow, reference bool, c spec.Credit) error {
	var err error
	if l.Mask, err = credit.Mask(l.Turns, l.Lengths); err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	if len(scores) != len(rows) {
		return fmt.Errorf("%d scores for %d selected rows: %w", len(scores), len(rows), store.ErrInvalid)
	}
	for i, s := range scores {
		n := rows[i].Sampled()
		if s.Row != rows[i].Row || len(s.LogProbs) != n || len(s.Entropies) != n || reference && len(s.RefLogProbs) != n ||
			c.Second() && len(s.Values) != n*c.Values() || c.ReadsSumSquares() && len(s.SumSquares) != n {
			return fmt.Errorf("scores of row %d do not fit its trajectory: %w", rows[i].Row, store.ErrInvalid)
		}
		l.Old = append(l.Old, l.spread(i, s.LogProbs))
		l.Entropies = append(l.Entropies, turnMeans(s.Entropies, l.Turns[i]))
		if c.ReadsSumSquares() {
			l.SumSquares = append(l.SumSquares, l.spread(i, s.SumSquares))
		}
		if reference {
			l.reference = append(l.reference, l.spread(i, s.RefLogProbs))
		}
		switch {
		case c.Critic():
			l.Values = append(l.Values, l.spreadOf(i, s.Values, c.Values()))
		case c.PRM():
			l.PRM = append(l.PRM, l.spread(i, s.Values))
		}
		if c.ReadsTeacher() {
			if len(s.TeacherLogProbs) != n {
				return fmt.Errorf("row %d has %d log-probs of the teacher and %d sampled tokens: %w", rows[i].Row, len(s.TeacherLogProbs), n, store.ErrInvalid)
			}
			l.Teacher, l.Informed = append(l.Teacher, l.spread(i, s.TeacherLogProbs)), append(l.Informed, s.Shown != NothingShown)
		}
	}
	return nil
}

// turnMeans are the means over each turn's tokens of what a row's sampled tokens have, in order.
func turnMeans(sampled []float32, turns []credit.Span) []float64 {
	out := make([]float64, len(turns))
	for k, s := range turns {
		n := s.To - s.From
		for _, v := range sampled[:n] {
			out[k] += float64(v)
		}
		out[k] /= float64(max(n, 1))
		sampled = sampled[n:]
	}
	return out
}

// spread puts what a row's sampled tokens have, in order, at their places among all
// its tokens.
func (l *CreditInput) spread(row int, sampled []float32) []float64 {
	return l.spreadOf(row, sampled, 1)
}

// spreadOf is spread of so many numbers for each token.
func (l *CreditInput) spreadOf(row int, sampled []float32, each int) []float64 {
	out := make([]float64, each*l.Lengths[row])
	for _, s := range l.Turns[row] {
		for t := each * s.From; t < each*s.To; t++ {
			out[t], sampled = float64(sampled[0]), sampled[1:]
		}
	}
	return out
}

// gather is the inverse of spread: the values of the sampled tokens.
func gather[T any](turns []credit.Span, tokens []T) []T { return gatherOf(turns, tokens, 1) }

// gatherOf is gather of so many numbers for each token.
func gatherOf[T any](turns []credit.Span, tokens []T, each int) []T {
	var out []T
	for _, s := range turns {
		out = append(out, tokens[each*s.From:each*s.To]...)
	}
	return out
}

// TrainingSignal is what an update learns from the sampled tokens, in order:
// [rows][sampled tokens].
type TrainingSignal struct {
	// Advantages have the weights of the selection in them. Returns are what the second network learns
	// (credit.Algorithm.Compute), nil without one. Returns and Learns have spec.Credit.Values numbers for
	// each sampled token.
	Advantages, Returns [][]float64
	// Learns is true at the tokens whose returns the critic learns; nil if it learns those of
	// all.
	Learns [][]bool
	// Worth marks the rows that are worth a step, [rows]; nil unless the selection asks for it.
	Worth   []bool
	Metrics activities.Metrics
}

// Keep leaves out the rows that are not marked, [rows].
func (s *TrainingSignal) Keep(marked []bool) {
	s.Advantages, s.Returns = Kept(s.Advantages, marked), Kept(s.Returns, marked)
	s.Learns, s.Worth = Kept(s.Learns, marked), Kept(s.Worth, marked)
}

// Kept are the rows that are marked; nil for nil.
func Kept[T any](rows []T, marked []bool) []T {
	if rows == nil {
		return nil
	}
	out := []T{}
	for i, r := range rows {
		if marked[i] {
			out = append(out, r)
		}
	}
	return out
}

// TrainingSignal computes advantages with the effective settings. past are the values of
// initial states before the iteration.
//
// A value or a log-prob that is not finite makes every advantage NaN: the update
// then skips its step, and counts it.
func (l *CreditInput) TrainingSignal(settings spec.Settings, rows []episode.TrajectoryRow,
	past []credit.StateValue) (TrainingSignal, error) {
	c, u := settings.Credit, settings.Update
	out := TrainingSignal{Metrics: activities.Metrics{}}
	advantages, returns, err := l.credit(c, u, past, out.Metrics)
	if errors.Is(err, credit.ErrNotFinite) {
		advantages = filled(l.Lengths, math.NaN())
		if c.Second() {
			returns = filled(lengthsOf(l.Lengths, c.Values()), math.NaN())
		}
	} else if err != nil {
		return out, fmt.Errorf("%s: %w: %w", c.Algorithm, err, store.ErrInvalid)
	}
	algorithm, _ := methods.Find(c.Algorithm)
	learns := l.Mask
	if algorithm.Learns != nil {
		learns = algorithm.Learns(l.Input, credit.Options(c))
	}
	if algorithm.Alone != nil {
		out.Metrics["critic/advantages/alone"] = canon.Float(algorithm.Alone(l.Input))
	}
	if algorithm.ReadsTeacher {
		out.Metrics["actor/teacher_kl"] = canon.Float(credit.Divergence(l.Old, l.Teacher, l.Mask))
	}
	if err := l.agentMetrics(advantages, out.Metrics); err != nil {
		return out, fmt.Errorf("%s: %w: %w", c.Algorithm, err, store.ErrInvalid)
	}
	sampled := make([][]float64, len(rows))
	for i := range rows {
		sampled[i] = gather(l.Turns[i], advantages[i])
	}
	if least := settings.Selection.LeastAdvantage; least > 0 {
		if out.Worth, err = credit.WorthAStep(sampled, least); err != nil {
			return out, fmt.Errorf("%w: %w", err, store.ErrInvalid)
		}
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, r := range rows {
		row := sampled[i]
		for t := range row {
			row[t] *= r.Weight
			lo, hi = min(lo, row[t]), max(hi, row[t])
		}
		out.Advantages = append(out.Advantages, row)
		if returns != nil {
			out.Returns = append(out.Returns, gatherOf(l.Turns[i], returns[i], c.Values()))
			if algorithm.Learns != nil {
				out.Learns = append(out.Learns, gatherOf(l.Turns[i], learns[i], c.Values()))
			}
		}
	}
	out.Metrics["critic/advantages/max"], out.Metrics["critic/advantages/min"] = canon.Float(hi), canon.Float(lo)
	if c.PRM() {
		return out, l.preferenceMetrics(algorithm, credit.Options(c), out.Metrics)
	}
	if c.Critic() {
		values := l.Values
		if c.Promises() {
			values = chances(values)
		}
		explained, err := loss.ExplainedVariance(values, returns, learns)
		if err != nil {
			return out, err
		}
		out.Metrics["critic/vf_explained_var"] = canon.Float(explained)
	}
	return out, nil
}

// chances are what logits stand for.
func chances(logits [][]float64) [][]float64 {
	out := make([][]float64, len(logits))
	for i, row := range logits {
		out[i] = make([]float64, len(row))
		for t, f := range row {
			out[i][t] = credit.Chance(f)
		}
	}
	return out
}

// preferenceMetrics are the figures of a process reward model.
func (l *CreditInput) preferenceMetrics(a credit.Algorithm, o credit.Options, metrics activities.Metrics) error {
	p, err := a.Preferences(l.Input, o)
	if errors.Is(err, credit.ErrNotFinite) {
		return nil // and the step is skipped
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %w", a.Name, err, store.ErrInvalid)
	}
	metrics["prm/loss"], metrics["prm/pairs"], metrics["prm/right"] = canon.Float(p.Loss), canon.Float(len(p.Pairs)), canon.Float(p.Right)
	mean, n := 0.0, 0
	for _, turns := range p.Rewards {
		for _, r := range turns {
			mean, n = mean+math.Abs(r), n+1
		}
	}
	metrics["prm/reward_size"] = canon.Float(mean / float64(max(n, 1)))
	return nil
}

// lengthsOf are lengths times so many.
func lengthsOf(lengths []int, each int) []int {
	out := make([]int, len(lengths))
	for i, n := range lengths {
		out[i] = each * n
	}
	return out
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
func (l *CreditInput) credit(c spec.Credit, u spec.Update, past []credit.StateValue,
	metrics activities.Metrics) (advantages, returns [][]float64, err error) {
	if l.Tokens, err = l.rewarded(c, u, metrics); err != nil {
		return nil, nil, err
	}
	l.Past = past
	return methods.Compute(l.Input, credit.Options(c))
}

// rewarded puts the rewards at their tokens, [rows][tokens]. With a penalty for the
// distance from the reference in them, the turns' rewards and the returns have it
// too.
func (l *CreditInput) rewarded(c spec.Credit, u spec.Update, metrics activities.Metrics) ([][]float64, error) {
	place := c.RewardAt
	if place == "" {
		place = credit.AtTurns
	}
	tokens, err := credit.TokenRewards(l.Rewards, l.Turns, l.Lengths, place)
	if err != nil || u.KLIn != spec.KLReward {
		return tokens, err
	}
	penalised := func(at [][]float64) ([][]float64, float64, error) {
		return credit.KLInReward(at, l.Old, l.reference, l.Mask, u.KLCoefficient, loss.KLEstimator(u.KLEstimator))
	}
	tokens, mean, err := penalised(tokens)
	if err != nil {
		return nil, err
	}
	metrics["actor/reward_kl_penalty"] = canon.Float(mean)
	metrics["actor/reward_kl_penalty_coeff"] = canon.Float(u.KLCoefficient)
	// Algorithms that see turns get each turn's own, wherever the tokens' rewards are.
	own, err := credit.TokenRewards(l.Rewards, l.Turns, l.Lengths, credit.AtTurns)
	if err != nil {
		return nil, err
	}
	if own, _, err = penalised(own); err != nil {
		return nil, err
	}
	if l.Rewards, err = credit.TurnSums(own, l.Turns); err != nil {
		return nil, err
	}
	l.Returns = credit.Returns(tokens)
	return tokens, nil
}
