package selection

import (
	"fmt"
	"math"
	"slices"

	"github.com/reprise-rl/reprise/model/credit"
)

// MemberMetrics are all numbers by which the members of a group can be ranked, in the order in
// which the spec and the docs list them. The highest are kept.
var MemberMetrics = []MemberMetric{
	{
		Name: "shortest", Is: "minus the member's sampled tokens", Source: "GFPO, arXiv 2508.09726",
		score: func(_, length, _ float64) float64 { return -length },
	},
	{
		Name: "reward_per_token", Is: "the member's return over its sampled tokens", Source: "GFPO, arXiv 2508.09726",
		score: func(reward, length, _ float64) float64 { return reward / length },
	},
	{
		Name: "deviation", Is: "the distance of the member's return from the group's mean", Source: "TSR's public code: its lookahead",
		score: func(reward, _, mean float64) float64 { return math.Abs(reward - mean) },
	},
	{
		Name: "return", Is: "the member's return", Source: "best of n: TSR, arXiv 2602.11767",
		score: func(reward, _, _ float64) float64 { return reward },
	},
}

// MemberMetric is a number by which the members of a group can be ranked.
type MemberMetric struct {
	// Name is the value of selection.member_metric in a spec.
	Name string
	// Is and Source describe it in docs/methods.md.
	Is, Source string
	// score is of a member's return, its length in sampled tokens and the group's mean return.
	score func(reward, length, mean float64) float64
}

// FindMemberMetric returns the member metric of a name; false if there is none.
func FindMemberMetric(name string) (MemberMetric, bool) {
	at := slices.IndexFunc(MemberMetrics, func(m MemberMetric) bool { return m.Name == name })
	if at < 0 {
		return MemberMetric{}, false
	}
	return MemberMetrics[at], true
}

// Members keeps the n members of each group with the highest metric, or all if there are at most
// n (group filtered policy optimisation, arXiv 2508.09726, with larger groups than it
// learns from). The result, [groups][kept], are indexes of members, ascending; equal members rank by
// index.
//
// The others are as if they had never been sampled: the algorithm compares the kept members
// among themselves. The paper gives the others an advantage of 0, which is the same but for
// means over all rows of a batch. If the kept members have equal returns, the group teaches
// nothing.
//
// Rewards and Lengths of the groups are read. n is at least 1. Errors are of kind ErrRewards, or
// ErrInput if the metric is unknown or its numbers are missing.
func Members(g Groups, metric string, n int) ([][]int, error) {
	m, ok := FindMemberMetric(metric)
	if !ok {
		return nil, fmt.Errorf("%w: member metric %q", ErrInput, metric)
	}
	if n < 1 {
		return nil, fmt.Errorf("%w: %d members kept, must be at least 1", ErrInput, n)
	}
	if len(g.Lengths) != len(g.Rewards) {
		return nil, fmt.Errorf("%w: lengths of %d groups, rewards of %d", ErrInput, len(g.Lengths), len(g.Rewards))
	}
	kept := make([][]int, len(g.Rewards))
	for group, rewards := range g.Rewards {
		if len(g.Lengths[group]) != len(rewards) {
			return nil, fmt.Errorf("%w: group %d has %d lengths and %d rewards", ErrInput, group, len(g.Lengths[group]), len(rewards))
		}
		mean, _ := credit.MeanStd(rewards)
		scores := make([]float64, len(rewards))
		for i, r := range rewards {
			length := g.Lengths[group][i]
			scores[i] = m.score(r, length, mean)
			if !finite(r) || !(length > 0) || !finite(scores[i]) {
				return nil, fmt.Errorf("%w: group %d, member %d has reward %v and length %v", ErrRewards, group, i, r, length)
			}
		}
		kept[group] = TopCount(scores, n, Largest)
	}
	return kept, nil
}

// Whole keeps the groups without a broken member, in ascending order. broken: [groups][members],
// true where an interaction failed, so that the trajectory says nothing about the policy
// (PyVision-RL, arXiv 2602.20739, which drops such groups before it ranks the others by the
// standard deviation of their rewards). Its published code judges trajectories and not groups:
// a kept group may have holes there, and its mean contains the dropped.
func Whole(broken [][]bool) []int {
	kept := []int{}
	for g, members := range broken {
		if !slices.Contains(members, true) {
			kept = append(kept, g)
		}
	}
	return kept
}
