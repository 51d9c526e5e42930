package search

import "github.com/reprise-rl/reprise/model/option"

// The ways in which a branch meets chance.
const (
	// FreshOutcomes gives a branch luck of its own from its first turn on.
	FreshOutcomes = "fresh"
	// SharedOutcomes gives all leaves of a tree the luck of its first: the k-th action of
	// each meets the same.
	SharedOutcomes = "shared"
)

// The options that several searches have which grow trees. Their defaults are those of each search.
var (
	TreesOption = option.Option{
		Section: option.Rollout, Name: "trees", Whole: true, Low: 1, High: 1024, Source: "Tree-GRPO: M",
		Doc: "How many trees a group has with `rollout.search` tree, pivots or entropy, each with one trajectory from its root. Left out: 2; " +
			"8 with pivots and entropy.",
	}
	BranchesOption = option.Option{
		Section: option.Rollout, Name: "branches", Whole: true, Low: 1, High: 1024, Source: "Tree-GRPO: N",
		Doc: "How many branches grow from each tree in an expansion, or from a pivot; with entropy, how many can begin after one turn of a " +
			"trajectory. Left out: 2; 8 with pivots, 1 with entropy.",
	}
	ExpansionsOption = option.Option{
		Section: option.Rollout, Name: "expansions", Whole: true, Low: 1, High: 16, Source: "Tree-GRPO: L",
		Doc: "How often trees are expanded. A group is rollout.trees × (1 + rollout.branches × rollout.expansions) trajectories, but with " +
			"entropy, and a rollout takes so many more passes over its turns. Left out: 1.",
	}
	OutcomesOption = option.Option{
		Section: option.Rollout, Name: "outcomes", Choices: []string{FreshOutcomes, SharedOutcomes}, Source: option.Ours,
		Doc: "What branches meet where chance decides: fresh is luck of their own from their first turn on, shared is the luck of the tree's " +
			"first trajectory, so that the k-th action of each meets the same. Left out: fresh.",
	}
)

// Growing are the options of trees.
var Growing = []option.Option{TreesOption, BranchesOption, ExpansionsOption, OutcomesOption}

// Trees is how the trajectories of a group branch: Trees chains, and in each of Expansions waves
// Branches more from each tree. Without branches every trajectory is a tree.
type Trees struct {
	Trees, Branches, Expansions int
	// Rows is how many branches a group has where no tree owns them, those that begin anew among them; 0
	// where each tree has its own.
	Rows int
	// Shared says that outcomes are SharedOutcomes.
	Shared bool
}

// Leaves are the trajectories of a group.
func (t Trees) Leaves() int {
	if t.Rows != 0 {
		return t.Trees + t.Rows
	}
	return t.Trees * (1 + t.Branches*t.Expansions)
}

// Tree is the tree of a member: the chains come first, then the branches of each wave, tree by tree. It is
// not known of branches that no tree owns.
func (t Trees) Tree(member int) int {
	if member < t.Trees {
		return member
	}
	return (member - t.Trees) / t.Branches % t.Trees
}

// Wave is the wave in which a member is sampled: 0 for a chain.
func (t Trees) Wave(member int) int {
	if member < t.Trees {
		return 0
	}
	if t.Rows != 0 {
		return 1
	}
	return 1 + (member-t.Trees)/(t.Trees*t.Branches)
}
