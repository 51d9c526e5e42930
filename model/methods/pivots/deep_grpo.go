package pivots

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "deep_grpo", By: "the group's trajectories, and the branches of one pivot by each other (DEEP-GRPO)",
	Formula: "A = (R − mean(R in G)) / (std + ε); of a branch A = R − mean(R of its pivot's)", Paper: "DEEP-GRPO, arXiv 2602.14169", File: "pivots/deep_grpo.go",
	Compares: true, Search: "pivots", Reads: []string{"normalize_by_std", "epsilon", "floor"},
	Compute: func(in credit.Input, o credit.Options) ([][]float64, [][]float64, error) {
		return in.ByRow(DeepGRPO(in.Returns, in.Groups, in.Trees, in.Branches, o))
	},
}

// DeepGRPO compares the trajectories of a group, and apart from them the branches that begin at one
// pivot (DEEP-GRPO, arXiv 2602.14169):
//
//	A = (R − mean(R of the group)) / (max(std, floor) + ε), of trajectories from the root
//	A = R − mean(R of its siblings), of branches
//
// rewards, groups and the result are as in GRPO. trees: [rows], told apart within a group only; the
// branches of a tree are siblings. branch: [rows]. A branch is never divided by a deviation, as in the
// authors' code. Their optional whitening of each stream is left out. Their code drops all branches of an
// iteration with fewer than 128, and has a distance for each stream; here it is one mean over all tokens. Errors are of kind ErrRewards or
// ErrInput.
func DeepGRPO(rewards []float64, groups, trees []int, branch []bool, o credit.Options) ([]float64, error) {
	if len(trees) != len(rewards) || len(branch) != len(rewards) {
		return nil, fmt.Errorf("%w: trees of %d rows, %d of which are known as branches or not, %d rewards", credit.ErrInput, len(trees), len(branch), len(rewards))
	}
	if err := credit.Check(rewards, "group indexes", len(groups)); err != nil {
		return nil, err
	}
	type stream struct {
		group, tree int
		branch      bool
	}
	keys := make([]stream, len(rewards))
	for row := range rewards {
		keys[row] = stream{group: groups[row]}
		if branch[row] {
			keys[row] = stream{groups[row], trees[row], true}
		}
	}
	out := append([]float64(nil), rewards...)
	for _, rows := range credit.RowsOf(keys) {
		of := o
		if branch[rows[0]] {
			of.NormalizeByStd = false
		}
		of.ScaleAt(out, rows)
	}
	return out, nil
}
