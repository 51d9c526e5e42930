package run

import (
	"sync"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/draw"
)

// References are the lines to compare suites' figures with, by the suites' digests:
// they depend on the suite alone, and runs share them.
type References struct {
	mu   sync.Mutex
	made recent[ReferenceLines]
}

// maxReferences is how many are remembered: six numbers each.
const maxReferences = 1024

// ReferenceLines are the means over a suite's instances of what a random player and the
// best play reach. The best play's exist only if all environments know it.
type ReferenceLines struct {
	randomSuccess, RandomReward float64
	bestSuccess, bestReward     float64
	hasBest, hasBestReward      bool
}

// RandomSamples are the episodes of the random player on each instance.
const RandomSamples = 16

// Of gives a suite's lines.
func (r *References) Of(rc *Context, s *Task) (ReferenceLines, error) {
	digest, err := DigestOf(s.Suite)
	if err != nil {
		return ReferenceLines{}, err
	}
	r.mu.Lock()
	r.made.most = maxReferences
	out, ok := r.made.get(digest)
	r.mu.Unlock()
	if ok {
		return out, nil
	}
	out = Refer(rc, s) // two at once compute the same
	r.mu.Lock()
	r.made.put(digest, out)
	r.mu.Unlock()
	return out, nil
}

// Refer computes a suite's lines.
func Refer(rc *Context, s *Task) ReferenceLines {
	groups := make([][]int, len(s.Parts)) // by part
	for g, of := range s.order {
		groups[of] = append(groups[of], g)
	}
	out := ReferenceLines{hasBest: true, hasBestReward: true}
	for i, p := range s.Parts {
		if len(groups[i]) == 0 {
			continue
		}
		instances := make([]draw.Address, len(groups[i]))
		for n, g := range groups[i] {
			instances[n] = rc.Address(s, 0, activities.Rollout{}, g, 0).Instance
		}
		chance := func(n, sample int) draw.Address {
			return rc.Address(s, 0, activities.Rollout{}, groups[i][n], sample).Chance
		}
		r := envs.Refer(p.Environment, instances, chance, RandomSamples, s.Turns)
		// Products are converted, so that no processor fuses them with the sums.
		weight := float64(len(groups[i])) / float64(s.Groups)
		out.randomSuccess += float64(weight * r.RandomSuccess)
		out.RandomReward += float64(weight * r.RandomReward)
		out.bestSuccess += float64(weight * r.BestSuccess)
		out.bestReward += float64(weight * r.BestReward)
		out.hasBest = out.hasBest && r.HasBest
		out.hasBestReward = out.hasBestReward && r.HasBestReward
	}
	return out
}

// Add puts the lines beside the figures.
func (r ReferenceLines) Add(m activities.Metrics) {
	m["reference/random_success"] = canon.Float(r.randomSuccess)
	m["reference/random_reward"] = canon.Float(r.RandomReward)
	if r.hasBest {
		m["reference/best_success"] = canon.Float(r.bestSuccess)
	}
	if r.hasBestReward {
		m["reference/best_reward"] = canon.Float(r.bestReward)
	}
}
