package trees

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

// treesAlone normalises the group's z again in the tree and uses that alone, as the authors' code does.
// Without it the z of the tree and of the group are added, as in the paper.
var treesAlone = option.Option{
	Section: option.Credit, Name: "trees_alone", Switch: true, Source: "Tree-GRPO (arXiv 2509.21240); its code: true",
	Doc: "Compares the leaves of a tree with each other alone (%s): the group's z is normalised again in the tree, and how good a tree is " +
		"beside others is lost.",
}

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "tree_grpo", By: "the leaves of the tree and those of the group (Tree-GRPO)",
	Formula: "A = z(R in its tree) + z(R in G), z = (R − mean) / (std + ε); trees_alone: z(z(R in G) in its tree)", Paper: "Tree-GRPO, arXiv 2509.21240", File: "trees/tree_grpo.go",
	Compares: true, Search: "tree", Reads: []string{"normalize_by_std", "epsilon", "floor"}, Own: []option.Option{treesAlone},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		if treesAlone.On(o.Own) {
			return in.ByRow(TreeGRPOCode(in.Returns, in.Groups, in.Trees, o))
		}
		return in.ByRow(TreeGRPO(in.Returns, in.Groups, in.Trees, o))
	},
}

// TreeGRPO compares the leaves of trees: with the leaves of their own tree, which share a
// prefix, and with all leaves of the group (Tree-GRPO, arXiv 2509.21240):
//
//	A_i = z(R_i among its tree) + z(R_i among its group),  z = (R − mean) / (max(std, floor) + ε)
//
// rewards, groups and the result are as in GRPO. trees: [rows], the tree of each leaf, which
// are told apart within a group only. Leaves with equal rewards, and a leaf alone in
// its tree, have 0 among their tree.
//
// Without NormalizeByStd both parts are differences from a mean. Errors are of kind ErrRewards or
// ErrInput.
func TreeGRPO(rewards []float64, groups, trees []int, o credit.Options) ([]float64, error) {
	advantages, err := credit.GRPO(rewards, groups, o)
	if err != nil {
		return nil, err
	}
	within, err := withinTrees(rewards, groups, trees, o)
	if err != nil {
		return nil, err
	}
	for i, a := range within {
		advantages[i] += a
	}
	return advantages, nil
}

// TreeGRPOCode is the advantage of the authors' code (AMAP-ML/Tree-GRPO, core_algos.py), which is
// not the paper's: the group's z is normalised again among the tree and used alone. How good
// a tree is compared with the others is lost then. Arguments, result and errors are TreeGRPO's.
func TreeGRPOCode(rewards []float64, groups, trees []int, o credit.Options) ([]float64, error) {
	group, err := credit.GRPO(rewards, groups, o)
	if err != nil {
		return nil, err
	}
	return withinTrees(group, groups, trees, o)
}

// withinTrees scales numbers among the leaves of each tree.
func withinTrees(values []float64, groups, trees []int, o credit.Options) ([]float64, error) {
	if len(trees) != len(values) {
		return nil, fmt.Errorf("%w: trees of %d rows, %d rewards", credit.ErrInput, len(trees), len(values))
	}
	type tree struct{ group, tree int }
	keys := make([]tree, len(trees))
	for i := range trees {
		keys[i] = tree{groups[i], trees[i]}
	}
	out := append([]float64(nil), values...)
	for _, leaves := range credit.RowsOf(keys) {
		o.ScaleAt(out, leaves)
	}
	return out, nil
}
