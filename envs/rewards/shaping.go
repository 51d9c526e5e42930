package rewards

import (
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/reward"
)

// length compares the lengths of a group's rows; the last turn gets the reward.
func length(o *envs.Options) Module {
	var of string
	o.Choice("of", &of, "reply", []string{"reply", "thought"}, "which sampled tokens count: of whole replies, or of thoughts alone")
	return Module{Stage: OfGroup, thinks: of == "thought", score: func(group []Episode, _ Past) [][]float64 {
		tokens, correct := make([]int, len(group)), make([]bool, len(group))
		for i, e := range group {
			correct[i] = e.Success
			for _, t := range e.Turns {
				if of == "thought" {
					tokens[i] += t.Thought
				} else {
					tokens[i] += t.Tokens
				}
			}
		}
		rewards, err := reward.Length(tokens, correct)
		if err != nil {
			panic(fmt.Sprintf("rewards: %v", err)) // both are of the group
		}
		out := make([][]float64, len(group))
		for i, e := range group {
			out[i] = atEnd(e, rewards[i])
		}
		return out
	}}
}

// The forms of progress.
const (
	potential = "potential"
	gains     = "gains"
)

// progress pays the cells by which a turn came nearer.
func progress(o *envs.Options) Module {
	var form string
	var gamma float64
	o.Choice("form", &form, potential, []string{potential, gains},
		"potential: a loss costs what the gain has paid, so that best play stays the same; gains: a loss costs nothing, and stepping back and forth pays")
	o.Number("gamma", &gamma, 1, 0, 1, "discount of the potential after the turn")
	return Module{Stage: OfTurn, grids: true, score: byTurn(func(e Episode, _ Past) float64 {
		t, l := e.Turns[len(e.Turns)-1], layouts[e.Environment]
		return reward.Progress(-distance(l, t.Before.Grid), -distance(l, t.After.Grid), gamma, form == gains)
	})}
}
