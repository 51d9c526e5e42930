package mechanism

import (
	"fmt"
	"math"
	"slices"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/frozenlake"
)

const (
	// Turns is the largest number of turns of an episode.
	Turns = 2
	// Actions is the number of answers: the lake's four moves, and Mumble.
	Actions = 5
	// Mumble is an answer that cannot be read: nothing moves, and it costs Penalty.
	Mumble = 4
	// Penalty is the reward of Mumble (the default of rollout.format_penalty).
	Penalty = -0.1
	// successRate is how often a move goes where it was meant to.
	successRate = 0.8
	// cells is the number of a lake's cells.
	cells = 4
)

// layouts are lakes of different difficulty: with the goal next to the start, with two ways,
// with one, and with one past a hole on either side.
var layouts = []string{"SG\nFF", "SF\nFG", "SF\nHG", "SH\nFG"}

// Lake is a lake, the policy on it, and what enumeration says about both.
type Lake struct {
	table envs.Table
	start int
	// policy is the probability of each answer, [cells][Actions].
	policy [cells][Actions]float64
	// values are the expected returns before a turn, [turns+1][cells]; those after the last
	// turn are 0.
	values [Turns + 1][cells]float64
	// answered are the expected returns after an answer, [turns][cells][Actions].
	answered [Turns][cells][Actions]float64
	// reached is how probable it is that a turn begins in a cell, [turns][cells].
	reached [Turns][cells]float64
	// outcomes are what a cell says about an episode's success so far: minus the
	// steps that are left to the goal, [cells].
	outcomes [cells]int
}

// NewLake enumerates a lake under the policy of the study: softmax of three times what a move
// is worth to the best player, with a tenth of mumbling. It is better than chance, and far
// from certain.
func NewLake(layout string) (*Lake, error) {
	parsed, err := frozenlake.Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("lake %q: %w", layout, err)
	}
	slip := frozenlake.Slip{Slippery: true, SuccessRate: successRate}
	table := parsed.Transitions(slip)
	if len(table) != cells {
		return nil, fmt.Errorf("lake %q has %d cells, not %d", layout, len(table), cells)
	}
	l := &Lake{table: table}
	for at, glyph := range []byte(layout[:2] + layout[3:]) {
		if glyph == 'S' {
			l.start = at
		}
	}
	l.choose(frozenlake.Values(table, Turns))
	l.enumerate()
	l.measure(slices.Index([]byte(layout[:2]+layout[3:]), 'G'))
	return l, nil
}

// choose sets the policy by what cells are worth to the best player.
func (l *Lake) choose(best []float64) {
	const mumbling, sharpness = 0.1, 3
	for at := range l.policy {
		var sum float64
		for move, outcomes := range l.table[at] {
			worth := 0.0
			for _, o := range outcomes {
				worth += float64(o.Probability * (o.Reward + best[o.Next]))
			}
			l.policy[at][move] = math.Exp(sharpness * worth)
			sum += l.policy[at][move]
		}
		for move := range l.table[at] {
			l.policy[at][move] *= (1 - mumbling) / sum
		}
		l.policy[at][Mumble] = mumbling
	}
}

// enumerate computes values backwards and the cells that turns begin in forwards.
func (l *Lake) enumerate() {
	for k := Turns - 1; k >= 0; k-- {
		for at := range cells {
			for action, p := range l.policy[at] {
				q := 0.0
				for _, o := range l.answer(at, action) {
					worth := o.Reward
					if !o.Done {
						worth += l.values[k+1][o.Next]
					}
					q += float64(o.Probability * worth)
				}
				l.answered[k][at][action] = q
				l.values[k][at] += float64(p * q)
			}
		}
	}
	l.reached[0][l.start] = 1
	for k := range Turns - 1 {
		for at, reached := range l.reached[k] {
			for action, p := range l.policy[at] {
				for _, o := range l.answer(at, action) {
					if !o.Done {
						l.reached[k+1][o.Next] += float64(reached * p * o.Probability)
					}
				}
			}
		}
	}
}

// answer is what an answer may lead to.
func (l *Lake) answer(at, action int) []envs.Transition {
	if action == Mumble {
		return []envs.Transition{{Probability: 1, Next: at, Reward: Penalty}}
	}
	return l.table[at][action]
}

func (l *Lake) measure(goal int) {
	for at := range l.outcomes {
		rows, columns := at/2-goal/2, at%2-goal%2
		l.outcomes[at] = -(rows*rows + columns*columns) // 0, 1 or 2: the steps, in a lake of 2 × 2
	}
}

// Advantage is the true advantage of an answer at a turn, counted from 0, in a cell.
func (l *Lake) Advantage(turn, at, action int) float64 {
	return l.answered[turn][at][action] - l.values[turn][at]
}

// Success is the probability of reaching the goal.
func (l *Lake) Success() float64 {
	sum := 0.0
	for _, reached := range l.reached {
		for at, p := range reached {
			for action, chosen := range l.policy[at] {
				for _, o := range l.answer(at, action) {
					if o.Done && o.Reward > 0 {
						sum += float64(p * chosen * o.Probability)
					}
				}
			}
		}
	}
	return sum
}

// squares is the sum of the policy's squared probabilities in a cell.
func (l *Lake) squares(at int) float64 {
	sum := 0.0
	for _, p := range l.policy[at] {
		sum += float64(p * p)
	}
	return sum
}

// entropy is the policy's in a cell, in nats.
func (l *Lake) entropy(at int) float64 {
	sum := 0.0
	for _, p := range l.policy[at] {
		sum -= float64(p * math.Log(p))
	}
	return sum
}
