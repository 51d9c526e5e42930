package device

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/model/search"
)

// A rollout that searches gives the trajectories that it chose. With one candidate they are the plain
// rollout's, byte for byte. A search that is done twice stores the same objects, and each turn that trajectories
// share is in the loss once.
func TestSearch(t *testing.T) {
	t.Parallel()
	edits := func(more ...string) []string {
		return append([]string{
			`environment.name="` + walkName + `"`, "rollout.turns=3", "rollout.group_size=4", "rollout.pass_rows=8", "evaluation.every=0", `credit.algorithm="grpo"`,
		}, more...)
	}
	runs := func(more ...string) *testRun {
		r := begun(t, "search", tinySpec(t, edits(more...)...))
		r.iterate(t)
		return r
	}
	plain, one := runs(), runs(`rollout.search="beam"`, "rollout.candidates=1")
	require.Equal(t, plain.commits[0].Trajectories.Digest, one.commits[0].Trajectories.Digest)
	require.Equal(t, plain.commits[0].StateAfter, one.commits[0].StateAfter)
	for _, search := range [][]string{
		{`rollout.search="beam"`, "rollout.candidates=3"}, {`rollout.search="greedy"`, "rollout.candidates=2"}, {`rollout.search="best_of_n"`},
		{`rollout.search="lookahead"`, "rollout.candidates=2"},
	} {
		t.Run(search[0], func(t *testing.T) {
			r := runs(search...)
			if len(search) > 1 {
				again := runs(search...)
				require.Equal(t, r.head, again.head)
				require.Equal(t, r.objects(t), again.objects(t))
			}
			last := r.commits[0]
			require.NotNil(t, last.Tables.Ref(activities.BranchesTable))
			require.NotNil(t, last.Turns[len(last.Turns)-1].Choices)
			require.Positive(t, last.Metrics["rollout/searched_tokens"])
			rows, err := tables.Get[episode.TrajectoryRow](t.Context(), r.store, last.Trajectories)
			require.NoError(t, err)
			require.Len(t, rows, 2*4)
			branches, err := tables.Get[episode.BranchRow](t.Context(), r.store, *last.Tables.Ref(activities.BranchesTable))
			require.NoError(t, err)
			distinct, learned := map[[2]int32]int{}, 0
			for _, b := range branches {
				distinct[[2]int32{b.Turn, b.Slot}] = int(turnOf(rows, b))
			}
			batch, err := r.context(t).ReadBatch(t.Context(), r.store, *last.Batch)
			require.NoError(t, err)
			for _, row := range batch {
				for _, in := range row.Mask {
					if in {
						learned++
					}
				}
			}
			want := 0
			for _, tokens := range distinct {
				want += tokens
			}
			require.Equal(t, want, learned, "each sampled token is learned from once")
		})
	}
}

// The chains of trees are a plain rollout's trajectories. A branch has its parent's turns and samples the
// rest, from where its parent was, and every sampled token is learned from once. A rollout that is done twice
// stores the same objects.
func TestTrees(t *testing.T) {
	t.Parallel()
	methodstest.Needs(t, "tree")
	plugintest.Needs(t)
	edits := func(more ...string) []string {
		return append([]string{"rollout.turns=3", "rollout.pass_rows=4", "evaluation.every=0", "selection.method=\"all\""}, more...)
	}
	runs := func(more ...string) *testRun {
		r := begun(t, "trees", tinySpec(t, edits(more...)...))
		r.iterate(t)
		return r
	}
	trajectories := func(r *testRun) []episode.TrajectoryRow {
		rows, err := tables.Get[episode.TrajectoryRow](t.Context(), r.store, r.commits[0].Trajectories)
		require.NoError(t, err)
		return rows
	}
	slippery := []string{`environment.name="frozenlake"`, `environment.options={"size": 2, "slippery": true, "max_actions_per_turn": 1}`}
	walks := []string{`environment.name="` + walkName + `"`}
	for _, c := range []struct {
		name           string
		task           []string
		tree           []string
		chains, leaves int
	}{
		{"walk", walks, []string{"rollout.group_size=6", `credit.algorithm="tree_grpo"`}, 2, 6},
		{"uncertain", walks, []string{"rollout.group_size=6", `credit.algorithm="grpo"`, `rollout.search="entropy"`, "rollout.trees=2"}, 2, 6},
		{"fresh outcomes", slippery, []string{"rollout.group_size=5", "rollout.trees=1", "rollout.expansions=2", `credit.algorithm="tree_grpo"`, "credit.trees_alone=true"}, 1, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := append(append([]string{`rollout.search="tree"`}, c.task...), c.tree...)
			r := runs(tree...)
			if c.chains == 2 {
				again := runs(tree...)
				require.Equal(t, r.head, again.head)
				require.Equal(t, r.objects(t), again.objects(t))
			}
			plain, rows := trajectories(runs(append(c.task, c.tree[0], `credit.algorithm="grpo"`)...)), trajectories(r)
			require.Len(t, rows, 2*c.leaves)
			require.NotEqual(t, plain, rows)
			for i, want := range plain {
				if i%c.leaves < c.chains {
					require.Equal(t, want, rows[i])
				}
			}
			last := r.commits[0]
			turns, err := recorded.Turns(t.Context(), r.store, last.Turns)
			require.NoError(t, err)
			branches, err := tables.Get[episode.BranchRow](t.Context(), r.store, *last.Tables.Ref(activities.BranchesTable))
			require.NoError(t, err)
			inherited, sampled := 0, 0
			for _, b := range branches {
				if b.Inherited {
					inherited++
					continue
				}
				require.Equal(t, b.Row, b.Slot)
				sampled += int(turnOf(rows, b))
			}
			require.Positive(t, inherited)
			require.EqualValues(t, inherited, last.Metrics["rollout/inherited_turns"])
			for row := range rows {
				for n := 1; n < len(turns) && turns[n].Generate[row].Alive; n++ {
					require.Equal(t, turns[n-1].Step[row].StateKey, turns[n].Step[row].StateBefore, "row %d goes on in turn %d from where it was", row, n+1)
				}
			}
			batch, err := r.context(t).ReadBatch(t.Context(), r.store, *last.Batch)
			require.NoError(t, err)
			learned := 0
			for _, row := range batch {
				for _, in := range row.Mask {
					if in {
						learned++
					}
				}
			}
			require.Equal(t, sampled, learned, "each sampled token is learned from once")
		})
	}
}

// Trajectories that fail are sampled again from a pivot, and those that succeed are not. The next
// iteration fits what the pivots have achieved. A run that is done twice stores the same objects.
func TestPivots(t *testing.T) {
	t.Parallel()
	document := tinySpec(t, `environment.name="`+walkName+`"`, "rollout.turns=3", "rollout.pass_rows=4", "evaluation.every=0", "selection.method=\"all\"",
		`rollout.search="pivots"`, "rollout.trees=2", "rollout.branches=2", "rollout.group_size=6", `credit.algorithm="deep_grpo"`, "update.branch_weight=0.5")
	runs := func() *testRun {
		r := begun(t, "pivots", document)
		r.iterate(t)
		r.iterate(t)
		return r
	}
	r := runs()
	again := runs()
	require.Equal(t, r.head, again.head)
	require.Equal(t, r.objects(t), again.objects(t))
	labels := 0
	for _, commit := range r.commits {
		rows, err := tables.Get[episode.TrajectoryRow](t.Context(), r.store, commit.Trajectories)
		require.NoError(t, err)
		failed := 0
		for i, row := range rows {
			if i%6 >= 2 {
				continue
			}
			branched := row.Reward() <= 0 && row.Turns() > 1
			if branched {
				failed++
			}
			for _, branch := range rows[i-i%6+2+2*(i%6):][:2] {
				require.Equal(t, branched, branch.Turns() > 0)
				require.Equal(t, branched, branch.Selected)
				if branched {
					require.Equal(t, row.StateKeys[:2], branch.StateKeys[:2], "the pivot is after the first turn, or later")
				}
			}
		}
		pivots, err := tables.Get[search.Branched](t.Context(), r.store, *commit.Tables.Ref(activities.MemoryTable(methods.Search("pivots"))))
		require.NoError(t, err)
		labels += failed
		require.Len(t, pivots, labels)
		require.EqualValues(t, failed, commit.Metrics["pivots/number"])
		require.EqualValues(t, 4, commit.Metrics["rollout/trajectories"], "figures are of trajectories from the root")
	}
	require.Positive(t, labels)
}

// turnOf is how many tokens were sampled in a turn.
func turnOf(rows []episode.TrajectoryRow, b episode.BranchRow) int32 {
	return rows[b.Row].SampledLengths[b.Turn]
}

// context is the run's.
func (r *testRun) context(t *testing.T) *run.Context {
	t.Helper()
	rc, err := r.Host.Contexts.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	return rc
}

// A run that ends after so many tokens counts what was sampled: dropped by a search, or inherited by a
// branch, once.
func TestSampledTokens(t *testing.T) {
	t.Parallel()
	for _, search := range [][]string{
		nil, {`rollout.search="beam"`, "rollout.candidates=2"}, {`rollout.search="tree"`, "rollout.group_size=6"}, {`selection.resample=2`},
	} {
		t.Run(fmt.Sprint(search), func(t *testing.T) {
			t.Parallel()
			r := begun(t, "tokens", tinySpec(t, append([]string{
				`environment.name="` + walkName + `"`, "rollout.turns=3", "rollout.group_size=4", "evaluation.every=0", `credit.algorithm="grpo"`, "stop.sampled_tokens=100000",
			}, search...)...))
			total := 0
			for range 2 {
				r.iterate(t)
				last := r.commits[len(r.commits)-1]
				sampled := 0
				for _, turn := range last.Turns {
					rows, err := tables.Get[episode.GenerateRow](t.Context(), r.store, turn.Generate)
					require.NoError(t, err)
					for _, row := range rows {
						if row.Alive {
							sampled += len(row.SampledIDs)
						}
					}
				}
				total += sampled
				require.Positive(t, sampled)
				require.EqualValues(t, sampled, last.Metrics[activities.SampledTokens])
				require.EqualValues(t, total, last.Metrics[activities.TotalSampledTokens])
				require.False(t, r.Plan.Reached(last.Metrics))
			}
		})
	}
}
