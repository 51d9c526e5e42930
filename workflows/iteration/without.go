package iteration

import (
	"fmt"
	"slices"
)

// used are the parts of the iterations that [New] makes: all, but in a test.
var used = order

// Parts are the names of an iteration's parts, in their order, without those that only a
// selection by exact entropies has, and without the judge and the next rollout with its parts, which few runs have.
func Parts() []string {
	var names []string
	for _, p := range order {
		if p != gathered && p != allScores && p != judging && p != nextRollout && p != published && p != beside {
			names = append(names, p.name)
		}
	}
	return names
}

// Without leaves a part out of every iteration that [New] makes until restore is called.
// It is for tests alone: a driver that does each step because the order has it cannot
// complete an iteration whose order lacks one. No other test may run meanwhile.
func Without(name string) (restore func()) {
	i := slices.IndexFunc(order, func(p *part) bool { return p.name == name })
	if i < 0 {
		panic(fmt.Sprintf("iteration: there is no part %q", name))
	}
	used = slices.Delete(slices.Clone(order), i, i+1)
	return func() { used = order }
}
