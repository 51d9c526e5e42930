package spec

import "cmp"

// TreeSearch grows trees: trajectories that begin as branches of others (Tree-GRPO, arXiv
// 2509.21240).
const TreeSearch = "tree"

// PivotSearch samples failed trajectories again from a pivot (DEEP-GRPO, arXiv 2602.14169).
const PivotSearch = "pivots"

// EntropySearch branches where the policy has become less certain (ARPO, arXiv 2507.19849).
const EntropySearch = "entropy"

// The ways in which a branch meets chance.
const (
	// FreshOutcomes gives a branch luck of its own from its first turn on.
	FreshOutcomes = "fresh"
	// SharedOutcomes gives all leaves of a tree the luck of its first: the k-th action of
	// each meets the same.
	SharedOutcomes = "shared"
)

// The defaults of trees: the authors' script.
const (
	defaultTrees      = 2
	defaultBranches   = 2
	defaultExpansions = 1
)

// The defaults of pivots, and of the weight of their branches: the authors' scripts.
const (
	defaultRoots         = 8
	defaultPivotBranches = 8
	defaultPivotGamma    = 2
	defaultBranchWeight  = 1
)

// The defaults of branches where the policy has become less certain: the authors' script, whose
// beam_size is one more than the branches.
const (
	defaultStarted       = 8
	defaultBeamBranches  = 1
	defaultEntropyWeight = 0.2
	defaultProbability   = 0.5
)

// Trees is how the trajectories of a group branch: Trees chains, and in each of Expansions waves
// Branches more from each tree. Without branches every trajectory is a tree.
type Trees struct {
	Trees, Branches, Expansions int
	// Pivots says that the branches of a tree begin at one place, and only where its chain has failed.
	// Gamma prefers late places.
	Pivots bool
	Gamma  float64
	// Uncertain says that branches begin at turns that are asked Branches times each, and begin with
	// Probability, more or less by EntropyWeight times what the entropy of the turn is above the first's.
	// There are Rows branches in a group, those that begin anew among them.
	Uncertain                  bool
	Rows                       int
	EntropyWeight, Probability float64
	// Shared says that outcomes are SharedOutcomes.
	Shared bool
}

// TreesOf is how the trajectories of a rollout branch.
func (r Rollout) TreesOf() Trees {
	if r.Search == PivotSearch {
		return Trees{
			Trees: cmp.Or(r.Trees, defaultRoots), Branches: cmp.Or(r.Branches, defaultPivotBranches), Expansions: 1,
			Pivots: true, Gamma: cmp.Or(r.PivotGamma, defaultPivotGamma), Shared: r.Outcomes == SharedOutcomes,
		}
	}
	if r.Search == EntropySearch {
		trees := cmp.Or(r.Trees, defaultStarted)
		return Trees{
			Trees: trees, Branches: cmp.Or(r.Branches, defaultBeamBranches), Expansions: 1,
			Uncertain: true, Rows: r.GroupSize - trees,
			EntropyWeight: cmp.Or(r.EntropyWeight, defaultEntropyWeight), Probability: cmp.Or(r.BranchProbability, defaultProbability),
		}
	}
	if r.Search != TreeSearch {
		return Trees{Trees: r.GroupSlots()}
	}
	return Trees{
		Trees: cmp.Or(r.Trees, defaultTrees), Branches: cmp.Or(r.Branches, defaultBranches), Expansions: cmp.Or(r.Expansions, defaultExpansions),
		Shared: r.Outcomes == SharedOutcomes,
	}
}

// Leaves are the trajectories of a group.
func (t Trees) Leaves() int {
	if t.Uncertain {
		return t.Trees + t.Rows
	}
	return t.Trees * (1 + t.Branches*t.Expansions)
}

// Tree is the tree of a member: the chains come first, then the branches of each wave, tree by tree. It is
// not known of the branches of an uncertain policy, which no tree owns.
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
	if t.Uncertain {
		return 1
	}
	return 1 + (member-t.Trees)/(t.Trees*t.Branches)
}

// branches reports whether a rollout's trajectories begin as branches of others.
func (r Rollout) branches() bool {
	return r.Search == TreeSearch || r.Search == PivotSearch || r.Search == EntropySearch
}

// WeightOfBranches is the weight of the mean loss over the tokens of branches, beside that over the
// other trajectories' with rollout.search pivots.
func (u Update) WeightOfBranches() float64 { return cmp.Or(u.BranchWeight, defaultBranchWeight) }

// waves is how often a rollout passes over its turns.
func (r Rollout) waves() int { return 1 + r.TreesOf().Expansions }
