// Package methods is the table of methods: each is a folder below this one and a line here. The spec,
// the steps, the benches, the tests and the docs range over the table.
//
// It is pure: workflows link it.
package methods

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/methods/agentprm"
	"github.com/reprise-rl/reprise/model/methods/blockwise"
	"github.com/reprise-rl/reprise/model/methods/checklist"
	"github.com/reprise-rl/reprise/model/methods/distill"
	"github.com/reprise-rl/reprise/model/methods/drmas"
	"github.com/reprise-rl/reprise/model/methods/empg"
	"github.com/reprise-rl/reprise/model/methods/entropy"
	"github.com/reprise-rl/reprise/model/methods/gae"
	"github.com/reprise-rl/reprise/model/methods/gdpo"
	"github.com/reprise-rl/reprise/model/methods/gigpo"
	"github.com/reprise-rl/reprise/model/methods/grpo"
	"github.com/reprise-rl/reprise/model/methods/hiper"
	"github.com/reprise-rl/reprise/model/methods/istar"
	"github.com/reprise-rl/reprise/model/methods/maxrl"
	"github.com/reprise-rl/reprise/model/methods/opo"
	"github.com/reprise-rl/reprise/model/methods/otb"
	"github.com/reprise-rl/reprise/model/methods/pivots"
	"github.com/reprise-rl/reprise/model/methods/rae"
	"github.com/reprise-rl/reprise/model/methods/reinforce"
	"github.com/reprise-rl/reprise/model/methods/sdar"
	"github.com/reprise-rl/reprise/model/methods/seeupo"
	"github.com/reprise-rl/reprise/model/methods/statebaseline"
	"github.com/reprise-rl/reprise/model/methods/trees"
	"github.com/reprise-rl/reprise/model/methods/tsr"
	"github.com/reprise-rl/reprise/model/search"
)

// Algorithms are all ways to give credit, in the order in which the spec and the docs list them.
var Algorithms = []credit.Algorithm{
	grpo.Entry,
	grpo.EntryDr,
	grpo.EntryLeaveOneOut,
	reinforce.Entry,
	reinforce.EntryBaseline,
	reinforce.EntryVerl,
	gigpo.Entry,
	drmas.Entry,
	gae.Entry,
	gae.EntryTurns,
	statebaseline.Entry,
	gdpo.Entry,
	empg.Entry,
	blockwise.Entry,
	gae.EntryTurnReturns,
	trees.Entry,
	pivots.Entry,
	seeupo.Entry,
	istar.Entry,
	agentprm.Entry,
	hiper.Entry,
	checklist.Entry,
	opo.Entry,
	maxrl.Entry,
	rae.Entry,
	distill.Entry,
	sdar.Entry,
	otb.Entry,
}

// Searches are all ways in which a rollout searches, in the order in which the spec lists them.
var Searches = []search.Method{
	tsr.Beam,
	tsr.Greedy,
	tsr.Lookahead,
	tsr.BestOfN,
	trees.Search,
	pivots.Search,
	entropy.Search,
}

// Search is the search of a name; empty if there is none.
func Search(name string) search.Method {
	s, _ := find(Searches, func(s search.Method) bool { return s.Name == name })
	return s
}

// Orders are all ways to make an update in several passes.
var Orders = []credit.Passes{
	seeupo.TurnsReversed,
}

// Order is the one of a name; empty if there is none.
func Order(name string) credit.Passes {
	o, _ := find(Orders, func(o credit.Passes) bool { return o.Name == name })
	return o
}

// Find returns the algorithm of a name; false if there is none.
func Find(name string) (credit.Algorithm, bool) {
	return find(Algorithms, func(a credit.Algorithm) bool { return a.Name == name })
}

func find[T any](table []T, is func(T) bool) (entry T, found bool) {
	if at := slices.IndexFunc(table, is); at >= 0 {
		return table[at], true
	}
	return entry, false
}

// Compute applies the algorithm that the options name. An unknown name is an error of
// kind credit.ErrInput.
func Compute(in credit.Input, o credit.Options) (advantages, returns [][]float64, err error) {
	a, ok := Find(o.Algorithm)
	if !ok {
		return nil, nil, fmt.Errorf("%w: algorithm %q", credit.ErrInput, o.Algorithm)
	}
	return a.Compute(in, o)
}
