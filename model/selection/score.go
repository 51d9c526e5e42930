package selection

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
)

// Metric names what groups are ranked by.
type Metric string

const (
	// MetricRewardStd is the sample deviation of the members' rewards (StarPO-S,
	// arXiv 2504.20073; RAGEN v2 calls it reward_variance).
	MetricRewardStd Metric = "reward_std"
	// MetricReward is the members' mean reward (RAGEN v2: reward; reward_sum ranks
	// alike where groups are of one size).
	MetricReward Metric = "reward"
	// MetricEntropy is the mean of the members' entropies (RAGEN v2: entropy).
	MetricEntropy Metric = "entropy"
	// MetricEntropyStd is the sample deviation of the members' entropies (RAGEN v2:
	// entropy_variance).
	MetricEntropyStd Metric = "entropy_std"
	// MetricLength is the mean of the members' sampled tokens (RAGEN v2: length).
	MetricLength Metric = "length"
)

// Groups are what is known of a rollout, [groups][members]. Groups may differ in
// size.
type Groups struct {
	// Rewards are the raw returns plus penalties, never normalised.
	Rewards [][]float64
	// Entropies are each trajectory's mean over its sampled tokens, in nats; read
	// for the entropy metrics alone.
	Entropies [][]float64
	// Lengths are each trajectory's sampled tokens; read for MetricLength alone.
	Lengths [][]float64
}

// RewardStd scores each group by the sample standard deviation (n−1) of its
// members' rewards: [groups]. The rewards, [groups][members], are the raw returns
// plus penalties, before any normalisation (StarPO-S, arXiv 2504.20073; RAGEN's
// code ranks by rewards it has already normalised where GRPO is used, and calls
// the deviation a variance). Errors are of kind ErrRewards.
func RewardStd(rewards [][]float64) ([]float64, error) {
	_, std, err := stats("", rewards)
	return std, err
}

// Score gives each group's score by a metric: [groups]. Errors are of kind
// ErrRewards, or ErrInput where the metric is unknown or its numbers are not there.
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

// stats gives each group's mean and sample deviation.
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
