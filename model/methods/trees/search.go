package trees

import (
	"cmp"
	"fmt"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

// The defaults of trees: the authors' script.
const (
	defaultTrees      = 2
	defaultBranches   = 2
	defaultExpansions = 1
)

// Search grows trees: trajectories that begin as branches of others (Tree-GRPO, arXiv 2509.21240).
var Search = search.Method{
	Name: "tree", Source: "tree: Tree-GRPO (arXiv 2509.21240)",
	Is:   "plays `rollout.trees` trajectories of a group, then `rollout.expansions` times `rollout.branches` more from each tree, from turns that are drawn",
	File: "trees/search.go",
	Doc: "`tree` keeps all: it plays `rollout.trees` trajectories of a group to their end, and then, `rollout.expansions` times, " +
		"`rollout.branches` more from each of their trees, which begin after turns that are drawn among those that another one follows, and " +
		"the beginning.",
	Options: []option.Option{search.TreesOption, search.BranchesOption, search.ExpansionsOption, search.OutcomesOption},
	Trees: func(v option.Values, _ int) search.Trees {
		return search.Trees{
			Trees: cmp.Or(search.TreesOption.Int(v), defaultTrees), Branches: cmp.Or(search.BranchesOption.Int(v), defaultBranches),
			Expansions: cmp.Or(search.ExpansionsOption.Int(v), defaultExpansions), Shared: search.OutcomesOption.Choice(v) == search.SharedOutcomes,
		}
	},
	Fork: fork,
}

// fork draws where the rows of a wave begin, from 1: each at a place of its own tree, as far as
// it has grown in turns. A place is the tree's beginning or behind a turn that another one follows, each as likely, as
// in the authors' code; the paper names nodes that are no leaves. A turn that leaves share is learned from once, with
// the advantage of the row that sampled it; in the authors' code once a leaf.
func fork(f search.Forking) ([]episode.ForkRow, error) {
	t, wave, turns := f.Trees, f.Wave, f.Turns
	rows, size := len(turns[0].Generate), t.Leaves()
	if wave < 1 || wave > t.Expansions || rows%size != 0 {
		return nil, fmt.Errorf("wave %d of %d for %d rows in groups of %d: %w", wave, t.Expansions, rows, size, store.ErrInvalid)
	}
	var out []episode.ForkRow
	for group := range rows / size {
		for member := range size {
			if t.Wave(member) != wave {
				continue
			}
			var leaves []search.Leaf
			var of []int32
			for other := range member {
				if t.Tree(other) == t.Tree(member) && t.Wave(other) < wave {
					row := group*size + other
					leaves, of = append(leaves, search.LeafOf(turns, row)), append(of, int32(row))
				}
			}
			places, err := search.Places(leaves)
			if err != nil {
				return nil, fmt.Errorf("tree %d of group %d: %w: %w", t.Tree(member), group, err, store.ErrInvalid)
			}
			a := f.Address(group)
			a.Member, a.Turn = int64(member), int64(wave)
			u := a.Rand().Float64()
			place, err := search.Among(places, u)
			if err != nil {
				return nil, err
			}
			out = append(out, episode.ForkRow{
				Row: int32(group*size + member), Group: int32(group), Member: int32(member),
				Parent: of[place.Leaf], Turn: int32(place.Turns), Places: int32(len(places)), Draw: u,
			})
		}
	}
	return out, nil
}
