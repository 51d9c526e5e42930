package rewards

import (
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/reward"
)

// firstAttempt repeats the reward of the first turn.
func firstAttempt(*envs.Options) Module {
	return Module{Stage: OfTurn, score: byEpisode(func(e Episode, _ Past) []float64 {
		out := make([]float64, len(e.Turns))
		if len(out) > 0 {
			out[0] = e.Turns[0].Reward
		}
		return out
	})}
}

// improvement is SCoRe's bonus for α = 1, r₂ − r₁; an episode of one turn has none.
func improvement(*envs.Options) Module {
	return Module{Stage: OfTurn, Figures: attemptFigures, score: byEpisode(func(e Episode, _ Past) []float64 {
		out := make([]float64, len(e.Turns))
		if len(out) > 1 {
			_, _, bonus, err := attempts([]Episode{e}).Stage2(reward.AttemptOptions{Alpha: 1})
			if err != nil {
				panic(fmt.Sprintf("rewards: %v", err)) // all are of the episode
			}
			out[1] = bonus[0]
		}
		return out
	})}
}

// attempts are the rewards of the first two turns. The first stands for a second that was not
// played; without any turn both are 0.
func attempts(episodes []Episode) reward.Attempts {
	n := len(episodes)
	a := reward.Attempts{Reward1: make([]float64, n), Reward2: make([]float64, n), KL1: make([]float64, n), KL2: make([]float64, n)}
	for i, e := range episodes {
		if len(e.Turns) > 0 {
			a.Reward1[i] = e.Turns[0].Reward
			a.Reward2[i] = a.Reward1[i]
		}
		if len(e.Turns) > 1 {
			a.Reward2[i] = e.Turns[1].Reward
		}
	}
	return a
}

// attemptFigures are the shares that SCoRe reports.
func attemptFigures(episodes []Episode) map[string]float64 {
	f, err := attempts(episodes).Figures()
	if err != nil {
		panic(fmt.Sprintf("rewards: %v", err)) // all are of the episodes
	}
	return map[string]float64{
		"attempts/first": f.Accuracy1, "attempts/second": f.Accuracy2, "attempts/gain": f.Delta(),
		"attempts/corrected": f.IncorrectToCorrect, "attempts/spoiled": f.CorrectToIncorrect,
	}
}
