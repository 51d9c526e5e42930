package frozenlake

import "github.com/reprise-rl/reprise/envs"

const (
	// settled is the change of the values at which iteration without a limit of
	// actions ends.
	settled = 1e-12
	// maxSweeps ends it if slips make the values settle slowly.
	maxSweeps = 100_000
)

// Values gives the highest expected sum of rewards, here the probability of
// reaching a goal, from each state with the given number of actions, or with any
// number of them for 0: value iteration without discount. values: [states].
//
// Products are rounded before they are added, so that the bits are the same on
// machines that fuse them.
func Values(table envs.Table, actions int) (values []float64) {
	values = make([]float64, len(table))
	for sweep := 0; ; sweep++ {
		if actions > 0 && sweep == actions || sweep == maxSweeps {
			return values
		}
		next := make([]float64, len(table))
		change := 0.0
		for state := range table {
			_, next[state] = best(table[state], values)
			change = max(change, next[state]-values[state], values[state]-next[state])
		}
		values = next
		if actions == 0 && change < settled {
			return values
		}
	}
}

// best is the first action of the highest value, and that value.
func best(actions [][]envs.Transition, values []float64) (action int, value float64) {
	for a, outcomes := range actions {
		sum := 0.0
		for _, t := range outcomes {
			worth := t.Reward
			if !t.Done {
				worth += values[t.Next]
			}
			sum += float64(t.Probability * worth)
		}
		if a == 0 || sum > value {
			action, value = a, sum
		}
	}
	return action, value
}
