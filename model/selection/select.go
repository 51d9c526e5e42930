package selection

import (
	"fmt"
	"slices"
)

// Options are the knobs of Select.
type Options struct {
	// Method is the name of one of Methods.
	Method string
	// Metric is the name of one of Metrics, by which groups are ranked; empty means
	// reward_std.
	Metric string
	// Order is the end of the ranking that is kept; empty means Largest.
	Order Order
	// Value is the method's parameter: a fraction in (0, 1] (StarPO-S: 0.25), a count of
	// at least 1, or a share in [0, 1] (RAGEN-2: 0.9).
	Value float64
	// Slack is the slack of TopP, at least 0, in units of the score (RAGEN-2: 0.01).
	Slack float64
	// DropFlat removes, before the method, the groups whose rewards have a standard
	// deviation of at most Floor, for every metric (RAGEN v2's include_zero off). A
	// fraction is still a fraction of all groups.
	DropFlat bool
	// DropBroken removes, before the method, the groups with a broken member (Whole). A
	// fraction is still a fraction of all groups.
	DropBroken bool
	// Floor is the standard deviation above which rewards count as varying, at least 0,
	// in units of the reward. It is read if DropFlat is set.
	Floor float64
}

// Result is the result of Select.
type Result struct {
	// Kept are the indexes of the kept groups, ascending. If it is empty, the update is
	// skipped.
	Kept []int
	// Scores, [groups], are the scores of all groups, and Spreads, [groups], the standard
	// deviations of their rewards.
	Scores, Spreads []float64
}

// Select chooses the groups on which an update trains. Errors are of kind ErrRewards or
// ErrInput.
func Select(g Groups, o Options) (Result, error) {
	if o.Metric == "" {
		o.Metric = rewardStd.Name
	}
	if o.Order == "" {
		o.Order = Largest
	}
	if err := o.check(); err != nil {
		return Result{}, err
	}
	spreads, err := RewardStd(g.Rewards)
	if err != nil {
		return Result{}, err
	}
	scores, err := Score(g, o.Metric)
	if err != nil {
		return Result{}, err
	}
	candidates := All(len(scores))
	if o.DropFlat {
		candidates = Varied(spreads, o.Floor)
	}
	if o.DropBroken {
		if len(g.Broken) != len(g.Rewards) {
			return Result{}, fmt.Errorf("%w: what is broken of %d groups, rewards of %d", ErrInput, len(g.Broken), len(g.Rewards))
		}
		whole := Whole(g.Broken)
		candidates = slices.DeleteFunc(candidates, func(c int) bool { return !slices.Contains(whole, c) })
	}
	ranking := make([]float64, len(candidates))
	for i, c := range candidates {
		ranking[i] = scores[c]
	}
	kept := o.choose(ranking, len(scores))
	for i, c := range kept {
		kept[i] = candidates[c]
	}
	return Result{Kept: kept, Scores: scores, Spreads: spreads}, nil
}

// choose applies the method to the candidates' scores. groups is the number of all groups,
// including those that DropFlat removed.
func (o Options) choose(scores []float64, groups int) []int {
	m, _ := Find(o.Method) // check has found it
	return m.Choose(scores, o, groups)
}

func (o Options) check() error {
	if o.Order != Largest && o.Order != Smallest {
		return fmt.Errorf("%w: order %q", ErrInput, o.Order)
	}
	m, ok := Find(o.Method)
	if !ok {
		return fmt.Errorf("%w: method %q", ErrInput, o.Method)
	}
	if m.Fits != nil && !m.Fits(o.Value, o.Order) {
		return fmt.Errorf("%w: method %q with value %v, order %q", ErrInput, o.Method, o.Value, o.Order)
	}
	if !(o.Slack >= 0) || !finite(o.Slack) {
		return fmt.Errorf("%w: Slack is %v, must be at least 0", ErrInput, o.Slack)
	}
	if !(o.Floor >= 0) || !finite(o.Floor) {
		return fmt.Errorf("%w: Floor is %v, must be at least 0", ErrInput, o.Floor)
	}
	return nil
}
