package mechanism

import (
	"slices"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/search"
)

const (
	// treesAGroup chains begin a group of trees, and each gets nodesATree branches:
	// 4·(1 + 3) = Members rows.
	treesAGroup, nodesATree = 4, 3
	// mains trajectories begin a group, and each that fails gets branchesAFailure (the
	// numbers of arXiv 2602.14169).
	mains, branchesAFailure = 8, 8
	// lateness prefers late places (the authors' scripts).
	lateness = 2
	// window is how many places a fit looks back on.
	window = 10_000
)

// way rolls a batch out.
type way func(lakes []*Lake, batch int) (Batch, error)

// ways are the ways to roll out, by name. Each call gives one that has seen no batch yet.
var ways = map[string]func() way{
	"":      func() way { return Play },
	"trees": func() way { return PlayTrees },
	"trees, of which every leaf is learned from the root":  func() way { return everyLeaf },
	"branches from a place of each failure":                func() way { return new(failures).Play },
	"branches from a place of each failure, learned alone": func() way { return new(failures).branches },
}

// PlayTrees rolls out groups of trees: chains, and branches from the states that each chain has
// passed through. A chain of one turn has none, and its branches begin anew.
func PlayTrees(lakes []*Lake, batch int) (Batch, error) {
	var b Batch
	for group := range GroupsABatch {
		of := lakeOf(lakes, batch, group)
		for tree := range treesAGroup {
			member := tree * (1 + nodesATree)
			chain := episode{of: of, at: lakes[of].start}
			chain.finish(lakes[of], rowAddress(batch, group, member).Rand())
			b.fork(chain, group, tree, 0, false)
			for node := range nodesATree {
				r := rowAddress(batch, group, member+1+node).Rand()
				from := 0
				if passed := len(chain.rewards) - 1; passed > 0 {
					from = 1 + r.IntN(passed)
				}
				e := chain.first(from)
				e.finish(lakes[of], r)
				b.fork(e, group, tree, from, true)
			}
		}
	}
	return b, b.complete(lakes)
}

// fork adds an episode that has its first turns from another row and learns from the others.
func (b *Batch) fork(e episode, group, tree, from int, branch bool) {
	b.add(e, group)
	b.Trees, b.TrainFrom = append(b.Trees, tree), append(b.TrainFrom, from)
	b.Copied, b.Branches = append(b.Copied, from), append(b.Branches, branch)
}

// failures is what the branches of the batches before have achieved where trajectories had failed.
type failures struct {
	positions []float64
	saved     []bool
}

// Play rolls out trajectories, and for each that fails some branches from one of its turns. The fit
// is made once a batch, of what was seen before it.
func (f *failures) Play(lakes []*Lake, batch int) (Batch, error) {
	var b Batch
	model, err := search.FitRecovery(f.positions, f.saved)
	if err != nil {
		return b, err
	}
	trees := 0
	for group := range GroupsABatch {
		of := lakeOf(lakes, batch, group)
		for member := range mains {
			e := episode{of: of, at: lakes[of].start}
			e.finish(lakes[of], rowAddress(batch, group, member).Rand())
			b.fork(e, group, trees, 0, false)
			trees++
			if search.Saved([]float64{credit.Returns([][]float64{e.rewards})[0]}, 0) {
				continue
			}
			// The segments are the beginning and the turns; after the last there is nothing to branch.
			segments := 1 + len(e.rewards)
			q, err := model.Pivots(segments, segments-1, lateness)
			if err != nil {
				return b, err
			}
			r := forkAddress(batch, group, member, "pivot").Rand()
			place, err := search.Pick(q, r.Float64())
			if err != nil {
				return b, err
			}
			var returns []float64
			for range branchesAFailure {
				branch := e.first(place)
				branch.finish(lakes[of], r)
				b.fork(branch, group, trees, place, true)
				returns = append(returns, credit.Returns([][]float64{branch.rewards})[0])
			}
			trees++
			f.positions = append(f.positions, float64(place+1)/float64(segments))
			f.saved = append(f.saved, search.Saved(returns, 0))
		}
	}
	over := max(len(f.saved)-window, 0)
	f.positions, f.saved = slices.Clone(f.positions[over:]), slices.Clone(f.saved[over:])
	return b, b.complete(lakes)
}

// branches is Play where only branches are learned from.
func (f *failures) branches(lakes []*Lake, batch int) (Batch, error) {
	b, err := f.Play(lakes, batch)
	for row, branch := range b.Branches {
		if !branch {
			b.TrainFrom[row] = len(b.Turns[row])
		}
	}
	return b, err
}

// forkAddress is where the draws of a branch come from.
func forkAddress(batch, group, member int, path string) draw.Address {
	a := rowAddress(batch, group, member)
	a.Purpose = draw.Purpose("sample/fork/" + path)
	return a
}

// everyLeaf learns from shared turns once for each leaf, as the code of arXiv 2509.21240 does.
func everyLeaf(lakes []*Lake, batch int) (Batch, error) {
	b, err := PlayTrees(lakes, batch)
	b.TrainFrom = nil
	return b, err
}
