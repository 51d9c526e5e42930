package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// A rollout that searches gives the trajectories that it chose. With one candidate they are the plain
// rollout's, byte for byte. A search that is done twice stores the same objects, and each turn that trajectories
// share is in the loss once.
func TestSearch(t *testing.T) {
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
	} {
		t.Run(search[0], func(t *testing.T) {
			r := runs(search...)
			if len(search) > 1 {
				again := runs(search...)
				require.Equal(t, r.head, again.head)
				require.Equal(t, r.objects(t), again.objects(t))
			}
			last := r.commits[0]
			require.NotNil(t, last.Branches)
			require.NotNil(t, last.Turns[len(last.Turns)-1].Choices)
			require.Positive(t, last.Metrics["rollout/searched_tokens"])
			rows, err := tables.Get[run.TrajectoryRow](t.Context(), r.store, last.Trajectories)
			require.NoError(t, err)
			require.Len(t, rows, 2*4)
			branches, err := tables.Get[run.BranchRow](t.Context(), r.store, *last.Branches)
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

// turnOf is how many tokens were sampled in a turn.
func turnOf(rows []run.TrajectoryRow, b run.BranchRow) int32 {
	return rows[b.Row].SampledLengths[b.Turn]
}

// context is the run's.
func (r *testRun) context(t *testing.T) *run.Context {
	t.Helper()
	rc, err := r.Host.Contexts.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	return rc
}
