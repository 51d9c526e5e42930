package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// With a lag, an iteration learns, with weights, from what the version before its own has sampled. Two
// runs end with the same bytes, the state can be rebuilt, and a run that resumes from the store has the
// rollout that was made for it.
func TestLag(t *testing.T) {
	t.Parallel()
	edits := []string{"rollout.lag=1", `update.mismatch={"regime":"decoupled"}`, "update.learning_rate=0.03", "iterations=4"}
	again := fresh(t, edits...)
	for range 4 {
		again.iterate(t)
	}
	r := fresh(t, edits...)
	for n := range 4 {
		in := r.iterate(t)
		require.Equal(t, n < 3, in.NextRollout != nil, "iteration %d", n)
		require.Equal(t, n > 0, in.RolledOutBy != nil, "iteration %d", n)
		require.EqualValues(t, min(n, 1), in.Metrics["training/staleness_max"], "iteration %d", n)
		worst := in.Metrics["rollout_corr/rollout_is_max"]
		if n == 0 {
			require.InDelta(t, 1, float64(worst), 1e-3, "sampled by the version that learns")
		} else {
			require.Greater(t, float64(worst), 1.01, "iteration %d", n)
			require.Equal(t, &store.VersionRef{Version: n - 1, State: r.commits[n-1].StateBefore}, in.RolledOutBy)
			require.Equal(t, r.commits[n-1].NextRollout.Turns, in.Turns)
		}
		found, err := run.FindHead(t.Context(), r.store, r.Run.ID, nil)
		require.NoError(t, err)
		require.Equal(t, in.NextRollout, found.NextRollout, "a run that resumes from the store has the rollout")
	}
	require.Equal(t, again.head, r.head)
	r.rebuilt(t)
	_, err := store.LoadChain(t.Context(), r.store, *r.head)
	require.NoError(t, err)
}
