package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

// method is how a rollout searches; empty if it does not.
func (r Rollout) method() search.Method { return methods.Search(r.Search) }

// SearchOf is how many continuations a rollout tries. Without a search each prefix has the one
// candidate that continues it.
func (r Rollout) SearchOf() search.Breadth {
	if m := r.method(); m.Breadth != nil {
		return m.Breadth(r.Own)
	}
	return search.Breadth{Width: 1, Candidates: 1}
}

// TreesOf is how the trajectories of a rollout branch.
func (r Rollout) TreesOf() search.Trees {
	if m := r.method(); m.Trees != nil {
		return m.Trees(r.Own, r.GroupSize)
	}
	return search.Trees{Trees: r.GroupSlots()}
}

// ChoosesLast reports whether a search chooses among whole trajectories alone.
func ChoosesLast(search string) bool { return Rollout{Search: search}.SearchOf().Whole }

// GroupSlots are the rows that a group generates in a turn: its members' candidates.
func (r Rollout) GroupSlots() int {
	s := r.SearchOf()
	return r.GroupSize * (s.Slots() / s.Width)
}

// Slots are the rows that a rollout generates in a turn. Every row that can exist has its number
// before the rollout begins.
func (r Rollout) Slots() int { return r.Groups * r.GroupSlots() }

// branches reports whether a rollout's trajectories begin as branches of others.
func (r Rollout) branches() bool { return r.method().Trees != nil }

// waves is how often a rollout passes over its turns.
func (r Rollout) waves() int { return 1 + r.TreesOf().Expansions }

// searches are the names of the searches that fit, in the table's order.
func searches(fits func(search.Method) bool) []string {
	return namesOf(methods.Searches, func(m search.Method) (string, bool) { return m.Name, fits(m) })
}

func anySearch(search.Method) bool { return true }

// sourcesOfSearches and waysOfSearches are what the searches say of themselves.
func sourcesOfSearches() string {
	return strings.Join(namesOf(methods.Searches, func(m search.Method) (string, bool) { return m.Source, m.Source != "" }), "; ")
}

func waysOfSearches() string {
	return strings.Join(namesOf(methods.Searches, func(m search.Method) (string, bool) { return m.Doc, true }), " ")
}

// expands reports whether trees grow more than once.
func expands(m search.Method) bool { return m.Has(search.ExpansionsOption) }

// demands says which searches and algorithms belong together.
func demands() string {
	var out []string
	for _, a := range methods.Algorithms {
		switch m := methods.Search(a.Search); {
		case a.Search == "":
		case m.Credit == a.Name:
			out = append(out, fmt.Sprintf("%s if and only if %s is %s", m.Name, subject(out), a.Name))
		default:
			out = append(out, fmt.Sprintf("%s if %s is %s", m.Name, subject(out), a.Name))
		}
	}
	return strings.Join(out, ", and ")
}

// subject is credit.algorithm, and "it" where a sentence has named it.
func subject(said []string) string {
	if len(said) > 0 {
		return "it"
	}
	return "credit.algorithm"
}

// ruled are the rules that the searches declare which fit.
func ruled(fits func(search.Method) bool) []relation {
	var out []relation
	for _, m := range methods.Searches {
		if !fits(m) {
			continue
		}
		for _, r := range m.Rules {
			out = append(out, relation{paths: r.Paths, doc: r.Doc, broken: func(t Train) (bool, string, string) {
				return r.Broken(search.Setting{
					Search: t.Rollout.Search, GroupSize: t.Rollout.GroupSize, Turns: t.Rollout.Turns, Rollout: t.Rollout.Own, Update: t.Update.Own,
					Aggregation: t.Update.Aggregation, Minibatch: t.Update.Minibatch, Replay: t.Freshness.ReplayIterations,
				})
			}})
		}
	}
	return out
}

// searchRelations are the rules between rollout.search, its options and other fields.
func searchRelations() []relation {
	return slices.Concat(
		slotRelations, ruled(func(m search.Method) bool { return m.Trees == nil }),
		leafRelations(), ruled(func(m search.Method) bool { return m.Trees != nil && m.Credit == "" }),
		treeRelations(), ruled(func(m search.Method) bool { return m.Trees != nil && m.Credit != "" }),
		excludingRelations,
	)
}

// slotRelations bound the rows of a rollout.
var slotRelations = []relation{
	{
		paths: []string{"rollout.search", "rollout.groups", "rollout.group_size", "rollout.candidates"},
		doc:   fmt.Sprintf("rollout.groups × rollout.group_size × rollout.candidates is at most %d if rollout.search is given; with lookahead × rollout.candidates for each turn of rollout.depth.", maxTrajectories),
		broken: func(t Train) (bool, string, string) {
			r := t.Rollout
			return r.Search != "" && r.Slots() > maxTrajectories && r.Trajectories() <= maxTrajectories,
				fmt.Sprintf("%d × %d × %d = %d rows", r.Groups, r.GroupSize, r.GroupSlots()/r.GroupSize, r.Slots()),
				fmt.Sprintf("at most %d an iteration: fewer candidates, smaller groups, or turns to look ahead", maxTrajectories)
		},
	},
}

// leafRelations bound the leaves of trees.
func leafRelations() []relation {
	return []relation{
		{
			paths: []string{"rollout.group_size", "rollout.search", "rollout.trees", "rollout.branches", "rollout.expansions"},
			doc:   "rollout.group_size is rollout.trees × (1 + rollout.branches × rollout.expansions) if rollout.search is " + listed(searches(func(m search.Method) bool { return m.Trees != nil && !m.Free }), "or") + ".",
			broken: func(t Train) (bool, string, string) {
				s, m := t.Rollout.TreesOf(), t.Rollout.method()
				return m.Trees != nil && !m.Free && t.Rollout.GroupSize != s.Leaves(), fmt.Sprint(t.Rollout.GroupSize),
					fmt.Sprintf("%d, for %d × (1 + %d × %d) trajectories", s.Leaves(), s.Trees, s.Branches, s.Expansions)
			},
		},
	}
}

// treeRelations are those between trees and the algorithms that compare their leaves.
func treeRelations() []relation {
	return []relation{
		{
			paths: []string{"rollout.trees", "rollout.branches", "rollout.expansions", "rollout.outcomes", "rollout.search"},
			doc: fmt.Sprintf("rollout.trees, rollout.branches, rollout.expansions and rollout.outcomes are given only if rollout.search is %s or, but for rollout.expansions, %s.",
				listed(searches(expands), "or"), listed(searches(func(m search.Method) bool { return m.Trees != nil && !expands(m) }), "or")),
			broken: func(t Train) (bool, string, string) {
				m := t.Rollout.method()
				return slices.ContainsFunc(search.Growing, func(o option.Option) bool { return o.Written(t.Rollout.Own) && !m.Has(o) }),
					"trees that rollout.search does not grow", `nothing, or rollout.search "tree" beside it`
			},
		},
		{
			paths: []string{"credit.algorithm", "rollout.search"},
			doc:   "rollout.search is " + demands() + ": they compare the leaves of such trees.",
			broken: func(t Train) (bool, string, string) {
				m, a := t.Rollout.method(), t.Credit.algorithm()
				found := strict.Quote(t.Credit.Algorithm) + " without rollout.search"
				if m.Name != "" {
					found = strict.Quote(t.Credit.Algorithm) + " with rollout.search " + strict.Quote(m.Name)
				}
				if m.Credit != "" {
					return a.Search != m.Name, found, strict.Quote(m.Credit) + " beside " + m.Name
				}
				return a.Search != "" && a.Search != m.Name, found, "rollout.search " + strict.Quote(a.Search) + " beside it, or an algorithm that needs no trees: " +
					strings.Join(algorithms(func(a credit.Algorithm) bool { return a.Compares && a.Search == "" && !a.ByRole }), ", ")
			},
		},
	}
}

// excludingRelations are what no search knows.
var excludingRelations = []relation{
	{
		paths: []string{"rollout.search", "rollout.keep_values", "rollout.block_rows", "rollout.context_turns", "rollout.turns"},
		doc: "rollout.search excludes rollout.keep_values and rollout.block_rows, because what a slot continues changes from turn to turn, " +
			"and a window of rollout.context_turns that is smaller than rollout.turns, because trajectories of a search share turns.",
		broken: func(t Train) (bool, string, string) {
			r := t.Rollout
			var with string
			switch {
			case r.KeepValues:
				with = "rollout.keep_values"
			case r.BlockRows != 0:
				with = "rollout.block_rows"
			case r.ContextTurns > 0 && r.ContextTurns < r.Turns:
				with = "rollout.context_turns"
			}
			return r.Search != "" && with != "", fmt.Sprintf("%s with %s", strict.Quote(r.Search), with),
				"one of the two: leave rollout.search out, or " + with
		},
	},
	{
		paths: []string{"rollout.search", "freshness.online", "freshness.reuse", "update.supervised"},
		doc:   "rollout.search excludes freshness.online, freshness.reuse and update.supervised, which do not know the turns that several trajectories share.",
		broken: func(t Train) (bool, string, string) {
			var with string
			switch f := t.Freshness; {
			case f.Online > 1:
				with = "freshness.online"
			case f.Reuse > 1:
				with = "freshness.reuse"
			case t.Update.Supervised.On():
				with = "update.supervised"
			}
			return t.Rollout.Search != "" && with != "", fmt.Sprintf("%s with %s", strict.Quote(t.Rollout.Search), with),
				"one of the two: leave rollout.search out, or " + with
		},
	},
	{
		paths: []string{"rollout.search", "rewards"},
		doc:   "rollout.search excludes rewards: a search scores turns by the environment's rewards and the penalties alone.",
		broken: func(t Train) (bool, string, string) {
			return t.Rollout.Search != "" && len(t.Rewards) > 0, strict.Quote(t.Rollout.Search) + " with rewards",
				"one of the two: leave rollout.search out, or rewards"
		},
	},
	{
		paths: []string{"rollout.search", "credit.algorithm"},
		doc: "rollout.search excludes credit.bootstrap: to see which episodes ended, they are played again from their beginnings, " +
			"and a search's have none of their own.",
		broken: func(t Train) (bool, string, string) {
			return t.Rollout.Search != "" && t.Credit.ReadsOpen(), fmt.Sprintf("%s with credit.bootstrap of %s", strict.Quote(t.Rollout.Search), t.Credit.Algorithm),
				"one of the two: leave rollout.search out, or credit.bootstrap"
		},
	},
}
