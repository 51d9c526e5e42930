package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The chains of a group come first, then the branches of each wave, tree by tree. A rollout without branches
// has a tree for each of its slots.
func TestTreesOfMembers(t *testing.T) {
	methodstest.Needs(t, "greedy", "tree", "pivots", "entropy")
	trees := spec.Rollout{Search: "tree", GroupSize: 10, Own: option.Values{"trees": 2, "branches": 2, "expansions": 2}}.TreesOf()
	require.Equal(t, 10, trees.Leaves())
	var tree, wave []int
	for member := range trees.Leaves() {
		tree, wave = append(tree, trees.Tree(member)), append(wave, trees.Wave(member))
	}
	require.Equal(t, []int{0, 1, 0, 0, 1, 1, 0, 0, 1, 1}, tree)
	require.Equal(t, []int{0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, wave)

	require.Equal(t, search.Trees{Trees: 2, Branches: 2, Expansions: 1}, spec.Rollout{Search: "tree"}.TreesOf())
	require.Equal(t, search.Trees{Trees: 8, Branches: 8, Expansions: 1}, spec.Rollout{Search: "pivots"}.TreesOf())
	uncertain := spec.Rollout{Search: "entropy", GroupSize: 11}.TreesOf()
	require.Equal(t, search.Trees{Trees: 8, Branches: 1, Expansions: 1, Rows: 3}, uncertain)
	require.Equal(t, []int{11, 0, 1, 1}, []int{uncertain.Leaves(), uncertain.Wave(7), uncertain.Wave(8), uncertain.Wave(10)})
	plain := spec.Rollout{GroupSize: 4, Search: "greedy", Own: option.Values{"candidates": 3}}.TreesOf()
	require.Equal(t, search.Trees{Trees: 12}, plain)
	require.Equal(t, 11, plain.Tree(11))
	require.Zero(t, plain.Wave(11))
}
