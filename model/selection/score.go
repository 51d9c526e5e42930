package selection

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
)

// Metric names the number by which groups are ranked.
type Metric string

const (
	// MetricRewardStd is the sample deviation of the members' rewards (StarPO-S,
	// arXiv 2504.20073; RAGEN v2 calls it reward_variance).
	MetricRewardStd Metric = "reward_std"
	// MetricReward is the members' mean reward (RAGEN v2: reward; reward_sum gives the
	// same ranking if all groups have the same size).
	MetricReward Metric = "reward"
	// MetricEntropy is the mean of the members' entropies (RAGEN v2: entropy).
	MetricEntropy Metric = "entropy"
	// MetricEntropyStd is the sample deviation of the members' entropies (RAGEN v2:
	// entropy_variance).
	MetricEntropyStd Metric = "entropy_std"
	// MetricLength is the mean number of sampled tokens of the members (RAGEN v2: length).
	MetricLength Metric = "length"
)

// Groups are the numbers of a rollout by which groups can be ranked, [groups][members].
// Groups may differ in size.
type Groups struct {
	// Rewards are the raw returns plus penalties, never normalised.
	Rewards [][]float64
	// Entropies are each trajectory's mean entropy over its sampled tokens, in nats.
	// Only the entropy metrics read them.
	Entropies [][]float64
	// Lengths are each trajectory's numbers of sampled tokens. Only MetricLength reads
	// them.
	Lengths [][]float64
}

// RewardStd computes the sample standard deviation (n−1) of each group's rewards:
// [groups]. The rewards, [groups][members], are the raw returns plus penalties, before any
// normalisation (StarPO-S, arXiv 2504.20073). RAGEN's code uses rewards that are already
// normalised if the algorithm is GRPO, and calls the deviation a variance. Errors are of
// kind ErrRewards.
func RewardStd(rewards [][]float64) ([]float64, error) {
	_, std, err := stats("", rewards)
	return std, err
}

// Score computes each group's score by a metric: [groups]. Errors are of kind ErrRewards,
// or ErrInput if the metric is unknown or its numbers are missing.
func Score(g Groups, m Metric) ([]float64, error) {
	values, of := g.Rewards, ""
	switch m {
	case MetricRewardStd, MetricReward:
	case MetricEntropy, MetricEntropyStd:
		values, of = g.Entropies, "entropy "
	case MetricLength:
		values, of = g.Lengths, "length "
	default:
		return nil, fmt.Errorf("%w: metric %q", ErrInput, m)
	}
	if len(values) != len(g.Rewards) {
		return nil, fmt.Errorf("%w: metric %q of %d groups, rewards of %d", ErrInput, m, len(values), len(g.Rewards))
	}
	mean, std, err := stats(of, values)
	if err != nil {
		return nil, err
	}
	if m == MetricRewardStd || m == MetricEntropyStd {
		return std, nil
	}
	return mean, nil
}

// stats computes each group's mean and sample deviation.
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
