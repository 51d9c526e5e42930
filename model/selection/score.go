package selection

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model/credit"
)

// Metrics are all numbers by which groups can be ranked, in the order in which the spec and
// the docs list them.
var Metrics = []Metric{
	rewardStd,
	{
		Name: "reward", Is: "the members' mean return", values: rewardsOf,
		Source: "RAGEN v2: reward; reward_sum gives the same ranking if all groups have the same size",
	},
	{Name: "entropy", Is: "the mean of the members' entropies", Source: "RAGEN v2: entropy", values: entropiesOf},
	{Name: "entropy_std", Is: "the sample standard deviation of the members' entropies", Source: "RAGEN v2: entropy_variance", Deviation: true, values: entropiesOf},
	{
		Name: "exact_entropy", Is: "the mean of the members' entropies, by a pass of the policy over all rows before the selection", Source: "RAGEN-2, arXiv 2604.06268",
		Exact: true, values: exactOf,
	},
	{Name: "length", Is: "the mean number of the members' sampled tokens", Source: "RAGEN v2: length", values: lengthsOf},
}

var rewardStd = Metric{
	Name: "reward_std", Is: "the sample standard deviation of the members' returns", Source: "StarPO-S, arXiv 2504.20073; RAGEN v2 calls it reward_variance",
	Deviation: true, values: rewardsOf,
}

// Metric is a number by which groups can be ranked.
type Metric struct {
	// Name is the value of selection.metric in a spec.
	Name string
	// Is and Source describe it in docs/methods.md.
	Is, Source string
	// Deviation says that it is the members' sample standard deviation and not their
	// mean: a group of one has none.
	Deviation bool
	// Exact says that it reads Groups.Exact: every row is scored before the selection.
	Exact bool
	// values gives the members' numbers, and their name in errors.
	values func(Groups) (values [][]float64, of string)
}

func rewardsOf(g Groups) ([][]float64, string)   { return g.Rewards, "" }
func entropiesOf(g Groups) ([][]float64, string) { return g.Entropies, "entropy " }
func exactOf(g Groups) ([][]float64, string)     { return g.Exact, "exact entropy " }
func lengthsOf(g Groups) ([][]float64, string)   { return g.Lengths, "length " }

// FindMetric returns the metric of a name; false if there is none.
func FindMetric(name string) (Metric, bool) {
	at := slices.IndexFunc(Metrics, func(m Metric) bool { return m.Name == name })
	if at < 0 {
		return Metric{}, false
	}
	return Metrics[at], true
}

// Groups are the numbers of a rollout by which groups can be ranked, [groups][members].
// Groups may differ in size.
type Groups struct {
	// Rewards are the raw returns plus penalties, never normalised.
	Rewards [][]float64
	// Entropies are each trajectory's mean entropy over its sampled tokens, in nats.
	// Only the entropy metrics read them. They are estimates, by the sampled tokens' log-probs.
	Entropies [][]float64
	// Exact are the same, by the whole distribution of each token. Only the exact metric reads them.
	Exact [][]float64
	// Lengths are each trajectory's numbers of sampled tokens. Only the metric length and
	// Members read them.
	Lengths [][]float64
	// Broken is true for members whose interaction failed. Only DropBroken reads it.
	Broken [][]bool
}

// RewardStd computes the sample standard deviation (n−1) of each group's rewards:
// [groups]. The rewards, [groups][members], are the raw returns plus penalties, before any
// normalisation (StarPO-S, arXiv 2504.20073). RAGEN's code uses rewards that are already
// normalised if the algorithm is GRPO, and calls the standard deviation a variance.
// Errors are of kind ErrRewards.
func RewardStd(rewards [][]float64) ([]float64, error) {
	_, std, err := stats("", rewards)
	return std, err
}

// Score computes each group's score by the metric of a name: [groups]. Errors are of kind
// ErrRewards, or ErrInput if the metric is unknown or its numbers are missing.
func Score(g Groups, metric string) ([]float64, error) {
	m, ok := FindMetric(metric)
	if !ok {
		return nil, fmt.Errorf("%w: metric %q", ErrInput, metric)
	}
	values, of := m.values(g)
	if len(values) != len(g.Rewards) {
		return nil, fmt.Errorf("%w: metric %q of %d groups, rewards of %d", ErrInput, metric, len(values), len(g.Rewards))
	}
	mean, std, err := stats(of, values)
	if m.Deviation {
		return std, err
	}
	return mean, err
}

// stats computes each group's mean and sample standard deviation.
func stats(of string, values [][]float64) (mean, std []float64, err error) {
	mean, std = make([]float64, len(values)), make([]float64, len(values))
	for g, group := range values {
		for m, v := range group {
			if !finite(v) {
				return nil, nil, fmt.Errorf("%w: group %d, member %d has %s%v", ErrRewards, g, m, of, v)
			}
		}
		mean[g], std[g] = credit.MeanStd(group)
	}
	return mean, std, nil
}
