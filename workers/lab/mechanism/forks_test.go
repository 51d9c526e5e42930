package mechanism

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A branch has its parent's turns up to where it begins, and its own draws from there.
func TestBranchesContinueTheirParents(t *testing.T) {
	lakes, err := newLakes()
	require.NoError(t, err)
	deep := new(failures)
	copied, differ := 0, 0
	for batch := range 4 {
		trees, err := PlayTrees(lakes, batch)
		require.NoError(t, err)
		require.Len(t, trees.Returns, GroupsABatch*Members)
		forked, err := deep.Play(lakes, batch)
		require.NoError(t, err)
		for _, b := range []Batch{trees, forked} {
			parent := 0
			for row, branch := range b.Branches {
				if !branch {
					parent = row
					require.Zero(t, b.Copied[row])
					continue
				}
				k := b.Copied[row]
				require.Equal(t, b.Decisions[parent][:k], b.Decisions[row][:k])
				require.Equal(t, b.Rewards[parent][:k], b.Rewards[row][:k])
				require.Less(t, k, len(b.Decisions[row]), "a branch has a turn of its own")
				if k > 0 {
					copied++
					// The state after the copied turns is the parent's too.
					require.Equal(t, b.Decisions[parent][k].Cell, b.Decisions[row][k].Cell)
					if b.Decisions[parent][k].Action != b.Decisions[row][k].Action {
						differ++
					}
				}
			}
		}
	}
	require.Greater(t, copied, 200)
	require.Greater(t, differ, copied/4)
	require.NotEmpty(t, deep.saved)
}

// What the table of searches must show.
func TestGainsOfSearches(t *testing.T) {
	all, err := measured()
	require.NoError(t, err)
	gains := all.gains
	of := func(name, setting string) Gain {
		for _, g := range gains {
			if g.Search.Name == name && g.Search.Setting == setting {
				return g
			}
		}
		require.Fail(t, "no such search", "%s, %s", name, setting)
		return Gain{}
	}
	plain := of("plain rollout", "")
	const chance = 4 * 0.5 // four deviations of a return, over the root of the rows
	within := chance / math.Sqrt(searchesALake*float64(len(layouts)))
	require.InDelta(t, plain.Plain, plain.Return, within)
	require.InDelta(t, 0, plain.Luck(), within, "nothing is chosen")
	require.InDelta(t, 4, of("best of n", "n 4").Tokens, 0.1)
	for _, g := range gains[1:] {
		require.Greater(t, g.Answers, within, g.Search.Name)
		require.Greater(t, g.Luck(), within, "%s: what was executed is kept with its luck", g.Search.Name)
	}
	require.Greater(t, of("lookahead", "M 4, D 2").Return, of("greedy: TSR's code", "M 4").Return+0.2)
}

// Whatever a search looks at, it kept what was played there: a search of one candidate is a plain
// rollout, draw for draw.
func TestOneCandidateIsAPlainRollout(t *testing.T) {
	lakes, err := newLakes()
	require.NoError(t, err)
	rows := make([][]episode, 3)
	for i, keep := range []func(*grown) ([]episode, error){beam(1, 2), ahead(1, 1), ahead(1, 2)} {
		tree := &grown{lake: lakes[1], nodes: map[string]*node{}, address: rowAddress(0, 1, 2)}
		tree.root.of, tree.root.at = 1, lakes[1].start
		rows[i], err = keep(tree)
		require.NoError(t, err)
		require.Len(t, rows[i], 1)
		sampled := 0
		for _, span := range rows[i][0].spans {
			sampled += span.To - span.From
		}
		require.Equal(t, sampled, tree.tokens, "nothing else was sampled")
		require.Equal(t, rows[0], rows[i])
	}
}
