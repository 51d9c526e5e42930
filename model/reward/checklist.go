package reward

import "fmt"

// CM2's checklists (arXiv 2602.12268). A turn of the user has items with weights that add
// up to 1; at each of its steps every item holds or does not. An item that once held counts
// as held for the turn.

// Dependent are the verdicts that count, [steps][items]: an item that depends on another holds only
// at a step at which the other holds too, or at a later one. after[i] is the item that item i depends
// on, which stands before it, or −1. So with a chain of items each needs all before it. The authors'
// step level pays an item "with its dependences met". The error is of kind ErrShape.
func Dependent(after []int, steps [][]bool) ([][]bool, error) {
	out := make([][]bool, len(steps))
	held := make([]bool, len(after))
	for at, step := range steps {
		if len(step) != len(after) {
			return nil, fmt.Errorf("%w: step %d has %d items, the checklist %d", ErrShape, at+1, len(step), len(after))
		}
		out[at] = make([]bool, len(step))
		for item, holds := range step {
			if after[item] >= item {
				return nil, fmt.Errorf("%w: item %d depends on item %d, which does not stand before it", ErrShape, item+1, after[item]+1)
			}
			out[at][item] = holds && (after[item] < 0 || held[after[item]])
			held[item] = held[item] || out[at][item]
		}
	}
	return out, nil
}

// Checklist is the score of a turn: Σ of the weights of the items that held at one step at
// least. steps are [steps][items]. The error is of kind ErrShape.
func Checklist(weights []float64, steps [][]bool) (float64, error) {
	held := make([]bool, len(weights))
	for at, step := range steps {
		if len(step) != len(weights) {
			return 0, fmt.Errorf("%w: step %d has %d items, the checklist %d", ErrShape, at+1, len(step), len(weights))
		}
		for item, holds := range step {
			held[item] = held[item] || holds
		}
	}
	sum := 0.0
	for item, weight := range weights {
		if held[item] {
			sum += weight
		}
	}
	return sum, nil
}

// ChecklistSteps pays each item at the first step at which it holds: [steps]. The error is
// of kind ErrShape.
func ChecklistSteps(weights []float64, steps [][]bool) ([]float64, error) {
	out := make([]float64, len(steps))
	paid := make([]bool, len(weights))
	for at, step := range steps {
		if len(step) != len(weights) {
			return nil, fmt.Errorf("%w: step %d has %d items, the checklist %d", ErrShape, at+1, len(step), len(weights))
		}
		for item, holds := range step {
			if holds && !paid[item] {
				paid[item] = true
				out[at] += weights[item]
			}
		}
	}
	return out, nil
}
