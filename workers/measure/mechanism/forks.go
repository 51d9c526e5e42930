package mechanism

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/search"
)

const (
	// treesAGroup chains begin a group of Tree-GRPO, and each gets nodesATree branches:
	// 4·(1 + 3) = Members rows.
	treesAGroup, nodesATree = 4, 3
	// mains trajectories begin a group of DEEP-GRPO, and each that fails gets branches
	// (the authors' numbers).
	mains, branchesAPivot = 8, 8
	// pivotGamma prefers late pivots (the authors' scripts).
	pivotGamma = 2
	// window is how many pivots a fit looks back on.
	window = 10_000
)

// PlayTrees rolls out the groups of Tree-GRPO: chains, and branches from the states that each
// chain has passed through. A chain of one turn has none, and its branches begin anew.
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
	b.Trees, b.TrainFrom, b.Copied, b.Branches = append(b.Trees, tree), append(b.TrainFrom, from), append(b.Copied, from), append(b.Branches, branch)
}

// pivots is what DEEP-GRPO has learnt from the pivots of the batches before.
type pivots struct {
	positions []float64
	saved     []bool
}

// Play rolls out the groups of DEEP-GRPO: trajectories, and for each that fails some branches from
// one of its turns. The fit is made once a batch, of what was seen before it.
func (p *pivots) Play(lakes []*Lake, batch int) (Batch, error) {
	var b Batch
	fit, err := search.FitRecovery(p.positions, p.saved)
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
			q, err := fit.Pivots(segments, segments-1, pivotGamma)
			if err != nil {
				return b, err
			}
			r := forkAddress(batch, group, member, "pivot").Rand()
			pivot, err := search.Pick(q, r.Float64())
			if err != nil {
				return b, err
			}
			var returns []float64
			for range branchesAPivot {
				branch := e.first(pivot)
				branch.finish(lakes[of], r)
				b.fork(branch, group, trees, pivot, true)
				returns = append(returns, credit.Returns([][]float64{branch.rewards})[0])
			}
			trees++
			p.positions = append(p.positions, float64(pivot+1)/float64(segments))
			p.saved = append(p.saved, search.Saved(returns, 0))
		}
	}
	over := max(len(p.saved)-window, 0)
	p.positions, p.saved = slices.Clone(p.positions[over:]), slices.Clone(p.saved[over:])
	return b, b.complete(lakes)
}

// branches is Play where only branches are learned from.
func (p *pivots) branches(lakes []*Lake, batch int) (Batch, error) {
	b, err := p.Play(lakes, batch)
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

// deepGRPO gives main trajectories GRPO's advantages, and branches the difference from their
// siblings' mean. Each token's is multiplied by its weight in the loss, so that a main token's is 1.
func deepGRPO(o credit.Options, lambda float64) func(Batch) ([][]float64, error) {
	return func(b Batch) ([][]float64, error) {
		mask := make([][]bool, len(b.Mask))
		var returns []float64 // of the main rows
		var groups []int
		for row, sampled := range b.Mask {
			mask[row] = slices.Clone(sampled)
			if from := b.Copied[row]; from > 0 {
				clear(mask[row][:b.Turns[row][from-1].To])
			}
			if !b.Branches[row] {
				returns, groups = append(returns, b.Returns[row]), append(groups, b.Groups[row])
			}
		}
		main, err := credit.GRPO(returns, groups, o)
		if err != nil {
			return nil, err
		}
		siblings, err := credit.DrGRPO(b.Returns, b.Trees)
		if err != nil {
			return nil, err
		}
		weights, err := loss.BranchWeights(mask, b.Branches, lambda)
		if err != nil {
			return nil, err
		}
		unit := weights[0][slices.Index(mask[0], true)] // row 0 is a main one
		out := b.zeros()
		for row := range out {
			a := siblings[row]
			if !b.Branches[row] {
				a, main = main[0], main[1:]
			}
			for t := range out[row] {
				out[row][t] = float64(a * weights[row][t] / unit)
			}
		}
		return out, nil
	}
}

// treeGRPO is an advantage of leaves.
func treeGRPO(compute func([]float64, []int, []int, credit.Options) ([]float64, error), o credit.Options) func(Batch) ([][]float64, error) {
	return func(b Batch) ([][]float64, error) {
		leaves, err := compute(b.Returns, b.Groups, b.Trees, o)
		if err != nil {
			return nil, err
		}
		return credit.OverRows(leaves, b.Mask)
	}
}

// everyLeaf learns from shared turns once for each leaf, as the code of Tree-GRPO does.
func everyLeaf(lakes []*Lake, batch int) (Batch, error) {
	b, err := PlayTrees(lakes, batch)
	b.TrainFrom = nil
	return b, err
}

// promises gives a turn what the batch says about its answer, minus the mean of what it says
// about the answers that were given in the same state.
func promises(compute func([][]string, []float64, float64) ([]credit.Promise, error), gamma float64) func(Batch) ([][]float64, error) {
	return func(b Batch) ([][]float64, error) {
		keys, outcomes := make([][]string, len(b.Decisions)), make([]float64, len(b.Decisions))
		for row, turns := range b.Decisions {
			for k, d := range turns {
				keys[row] = append(keys[row], fmt.Sprint(d))
				if b.Rewards[row][k] > 0 {
					outcomes[row] = 1
				}
			}
		}
		found, err := compute(keys, outcomes, gamma)
		if err != nil {
			return nil, err
		}
		q := map[string]float64{}
		for _, p := range found {
			q[p.Key] = p.Value
		}
		sum, visits := map[Decision]float64{}, map[Decision]float64{}
		state := func(d Decision) Decision { d.Action = 0; return d }
		for row, turns := range b.Decisions {
			for k, d := range turns {
				sum[state(d)] += q[keys[row][k]]
				visits[state(d)]++
			}
		}
		advantages := make([][]float64, len(b.Decisions))
		for row, turns := range b.Decisions {
			for k, d := range turns {
				advantages[row] = append(advantages[row], q[keys[row][k]]-sum[state(d)]/visits[state(d)])
			}
		}
		return b.byTurn(advantages, nil)
	}
}

// hiper gives the answers HiPER's advantages of actions, with a critic that is right. The policy
// sets itself a subgoal every turn, or only at the first.
func hiper(everyTurn bool) func(Batch) ([][]float64, error) {
	return func(b Batch) ([][]float64, error) {
		advantages := make([][]float64, len(b.Rewards))
		for row, rewards := range b.Rewards {
			var values []float64
			for _, span := range b.Turns[row] {
				values = append(values, b.Values[row][span.From])
			}
			got, err := credit.HiPER(credit.HiPERTurns{
				Rewards: rewards, Switch: slices.Repeat([]bool{everyTurn}, len(rewards)), Low: values, High: values, Choice: values, Ended: true,
			}, credit.HiPEROptions{Gamma: 1, TurnLambda: 1, SegmentLambda: 0.95})
			if err != nil {
				return nil, err
			}
			advantages[row] = got.Low
		}
		return b.byTurn(advantages, nil)
	}
}
