package envs

import (
	"math"

	"github.com/reprise-rl/reprise/model/draw"
)

// RandomPlay marks the streams of a random player's choices; it is combined with
// the purpose of the episode's chance. It is part of the bits of every evaluation:
// never change it.
const RandomPlay draw.Purpose = "random-play"

// Reference is what a policy's success and reward are compared with: means over
// instances, for a player that knows nothing and a player that knows everything.
type Reference struct {
	// RandomSuccess and RandomReward are the share of episodes that a random player
	// solves and its mean sum of raw rewards.
	RandomSuccess, RandomReward float64
	// BestSuccess is the mean of the highest probabilities of success. BestReward is the
	// mean of the highest expected sums of raw rewards. They may be two players, because
	// the play that pays most need not be the play that succeeds most.
	BestSuccess, BestReward float64
	// HasBest and HasBestReward say that they are known, of every instance;
	// otherwise they are 0.
	HasBest, HasBestReward bool
}

// Refer computes the reference of an environment over instances, in their order.
//
// The random player takes one of Choices, each as likely, until the episode ends
// or the actions are used up: the environment's MaxActions, or turns times
// MaxActionsPerTurn if that is less. It plays samples episodes of each instance; chance
// gives their addresses, both counted from 0, of which only the purpose is another for
// its choices (RandomPlay). In a FreeForm environment it chooses among the examples. Best
// play has as many actions; instances of the same state are looked at once. Without
// instances or samples the means are 0.
func Refer(env Environment, instances []draw.Address, chance func(instance, sample int) draw.Address, samples, turns int) Reference {
	actions := min(env.MaxActions(), turns*env.MaxActionsPerTurn())
	var r Reference
	r.RandomSuccess, r.RandomReward = randomPlay(env, instances, chance, samples, actions)
	r.BestSuccess, r.HasBest = meanBest(env, instances, chance, func(e Episode) (float64, bool) {
		advised, ok := e.(Advised)
		if !ok {
			return 0, false
		}
		return known(advised.BestSuccess(actions))
	})
	r.BestReward, r.HasBestReward = meanBest(env, instances, chance, func(e Episode) (float64, bool) {
		valued, ok := e.(Valued)
		if !ok {
			return 0, false
		}
		return known(valued.BestReward(actions))
	})
	return r
}

func known(value float64) (float64, bool) { return value, !math.IsNaN(value) }

func randomPlay(env Environment, instances []draw.Address, chance func(instance, sample int) draw.Address, samples,
	actions int) (success, reward float64) {
	episodes := len(instances) * samples
	if episodes <= 0 {
		return 0, 0
	}
	solved := 0
	for i, instance := range instances {
		for sample := range samples {
			luck := chance(i, sample)
			episode := env.Reset(instance, luck)
			luck.Purpose = RandomPlay.With(luck.Purpose)
			r := luck.Rand()
			for left := actions; left > 0 && !episode.Done(); left-- {
				choices := episode.Choices()
				reward += episode.Step(choices[r.IntN(len(choices))]).Reward
			}
			if episode.Success() {
				solved++
			}
		}
	}
	return float64(solved) / float64(episodes), reward / float64(episodes)
}

// meanBest is the mean of best over the instances' beginnings. It is not known if best is
// not known for one of them, or if there are none.
func meanBest(env Environment, instances []draw.Address, chance func(instance, sample int) draw.Address,
	best func(Episode) (float64, bool)) (mean float64, ok bool) {
	if len(instances) == 0 {
		return 0, false
	}
	met := map[string]float64{}
	for i, instance := range instances {
		episode := env.Reset(instance, chance(i, 0))
		key := episode.StateKey()
		value, again := met[key]
		if !again {
			var ok bool
			if value, ok = best(episode); !ok {
				return 0, false
			}
			met[key] = value
		}
		mean += value
	}
	return mean / float64(len(instances)), true
}
