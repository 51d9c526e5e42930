package search

import (
	"slices"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/option"
)

// Method is a value of rollout.search: either it keeps the best of several continuations (Breadth), or it
// grows trees, of which it keeps all leaves (Trees).
type Method struct {
	// Name is the value of rollout.search.
	Name string
	// Source and Doc are what the spec's page says of it, in the text of all searches.
	Source, Doc string
	// Is says how it plays, in a text of its own, and File has it, below model/methods: docs/methods.md shows both.
	Is, File string
	// Options are the fields of a spec that it reads beside those that every spec has.
	Options []option.Option
	// Rules are those between its options and other fields.
	Rules []Rule

	// Breadth is how it chooses; nil if it grows trees. Choose says which rows of a turn are kept, and
	// which rows continue them.
	Breadth func(option.Values) Breadth
	Choose  func(s Breadth, slots int, turns []episode.Turn, last bool) (rows []episode.ChoiceRow, over bool, err error)

	// Trees is how the trajectories of a group branch; nil if it chooses. Fork says where the branches
	// of a wave begin.
	Trees func(v option.Values, groupSize int) Trees
	Fork  func(Forking) ([]episode.ForkRow, error)
	// Free says that no tree owns the branches: a group may have any number.
	Free bool
	// Credit is the algorithm that a spec with it needs; "" if others do as well.
	Credit string
	// Roots says that branches repair trajectories from the root: groups are selected and measured by
	// those, and branches that none of them needed are not played.
	Roots bool
	// Weight is the weight of the mean loss over the tokens of branches, beside that over the other
	// trajectories', from the options of the section update; nil if all tokens are alike.
	Weight func(option.Values) float64
	// Memory is the name of the table of what branches achieved, which Fork reads; "" if there is none.
	// Remember is that table after a rollout, whose rows are whole groups, with the metrics of the
	// rollout's own.
	Memory   string
	Remember func(t Trees, before []Branched, rows []episode.TrajectoryRow, branches []episode.BranchRow) ([]Branched, map[string]float64)
}

// Branched is a place from which branches were sampled.
type Branched struct {
	// Position is where it was in its trajectory, from 0 to 1: the end.
	Position float64 `parquet:"position"`
	// Saved says that one of its branches succeeded where the trajectory failed.
	Saved bool `parquet:"saved"`
}

// Forking is what Fork reads.
type Forking struct {
	Trees Trees
	// Options are those of the section rollout.
	Options option.Values
	// Wave is the number of the wave that begins, from 1.
	Wave int
	// Vocabulary is how many ids there are.
	Vocabulary int
	// Turns are those of the waves before.
	Turns []episode.Turn
	// Before is Memory's table.
	Before []Branched
	// Address is where a group draws; a row draws by its member.
	Address func(group int) draw.Address
}

// Rule is a rule between fields.
type Rule struct {
	// Paths are the fields in it, and Doc states it.
	Paths []string
	Doc   string
	// Broken reports whether a spec breaks it, what it has, and what it may have.
	Broken func(Setting) (broken bool, found, allowed string)
}

// Setting is what rules read of a spec.
type Setting struct {
	Search            string
	GroupSize, Turns  int
	Rollout, Update   option.Values
	Aggregation       string
	Minibatch, Replay int
}

// Has reports whether a search reads an option.
func (m Method) Has(o option.Option) bool {
	return slices.ContainsFunc(m.Options, func(own option.Option) bool { return own.Path() == o.Path() })
}
