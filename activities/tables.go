package activities

import (
	"sync"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/search"
)

// Tables are side tables by their names, as a manifest has them among its further artifacts: the
// tables that not every run has. A step adds those that it makes, and reads those that it needs.
type Tables map[string]store.Ref

// Table is a side table, declared once in this file.
type Table struct {
	// Name is the key in Tables and in a manifest, and the table's name in the store.
	Name  string
	lasts lasts
}

// lasts says which iterations after the one that made a table have it too.
type lasts int

const (
	// forIteration: none.
	forIteration lasts = iota
	// forRollout: those that learn from the same rollout.
	forRollout
	// untilNext: those that follow on the branch, until one makes it anew.
	untilNext
)

// The side tables.
var (
	// AgentsTable says who acted in each turn, for an algorithm that reads it.
	AgentsTable = Table{"agents", forIteration}
	// BranchesTable has the turns of trajectories that a search made: the update learns from a turn
	// that several of them share once.
	BranchesTable = Table{"branches", forIteration}
	// BrokenTable has the episodes that are left out, because a foreign environment broke.
	BrokenTable = Table{"broken", forIteration}
	// ComponentsTable has the rewards in parts.
	ComponentsTable = Table{"components", forRollout}
	// OpenTable says which episodes a limit ended and the environment did not, for an algorithm that reads it.
	OpenTable = Table{"open", forRollout}
	// ReferenceTable is no table but the manifest whose snapshot the scores are relative to; without
	// it version 0 is the reference. A Head has the one that the next iteration uses (ReferenceAfter).
	ReferenceTable = Table{"reference", untilNext}
	// StatesTable has the values of initial states, if the algorithm keeps them.
	StatesTable = Table{"states", untilNext}
	// TextsTable has the frequent texts of the newest rollout, if a reward reads them.
	TextsTable = Table{"texts", untilNext}
)

// declared are all side tables. They follow from the searches that there are at the first use.
var declared = sync.OnceValue(func() []Table {
	own := []Table{AgentsTable, BranchesTable, BrokenTable, ComponentsTable, OpenTable, ReferenceTable, StatesTable, TextsTable}
	return append(own, memories()...)
})

// MemoryTable has what the branches of a search achieved on the branch so far, if it remembers that.
func MemoryTable(m search.Method) Table { return Table{m.Memory, untilNext} }

// memories are those of all searches.
func memories() []Table {
	var out []Table
	for _, m := range methods.Searches {
		if m.Memory != "" {
			out = append(out, MemoryTable(m))
		}
	}
	return out
}

// Ref is one of the tables, nil without it.
func (t Tables) Ref(of Table) *store.Ref {
	if ref, ok := t[of.Name]; ok {
		return &ref
	}
	return nil
}

// With are the tables and others, which replace those of the same names. It is nil if there is none.
func (t Tables) With(others Tables) Tables {
	if len(t)+len(others) == 0 {
		return nil
	}
	out := Tables{}
	for _, of := range declared() {
		for _, from := range []Tables{t, others} {
			if ref, ok := from[of.Name]; ok {
				out[of.Name] = ref
			}
		}
	}
	return out
}

// OfNext are the tables that the next iteration on the branch begins with.
func (t Tables) OfNext() Tables { return t.lasting(untilNext) }

// OfRollout are the tables that every iteration has that learns from the rollout.
func (t Tables) OfRollout() Tables { return t.lasting(forRollout) }

func (t Tables) lasting(how lasts) Tables {
	out := Tables{}
	for _, of := range declared() {
		if ref, ok := t[of.Name]; ok && of.lasts == how {
			out[of.Name] = ref
		}
	}
	return out.With(nil)
}
