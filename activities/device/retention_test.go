package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// Old snapshots are removed, the manifest says so, and every version can be had.
func TestRetention(t *testing.T) {
	r := begun(t, "kept", tinySpec(t, "iterations=5", "snapshot.every=1", "snapshot.retain=2", "evaluation.every=0"))
	var states []string
	for range 5 {
		r.iterate(t)
		states = append(states, r.state)
	}
	for n, c := range r.commits {
		_, err := r.store.Stat(t.Context(), c.Snapshot.Files["model.safetensors"].Key)
		if n < 3 {
			require.ErrorIs(t, err, store.ErrNotFound, n)
		} else {
			require.NoError(t, err, n)
		}
	}
	m, err := store.ReadManifest(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	require.Len(t, m.Tombstones, len(r.commits[2].Snapshot.Files))
	require.Equal(t, "snapshots: retain 2", m.Tombstones[0].Reason)
	report, err := store.Verify(t.Context(), r.store, r.Run.ID, nil)
	require.NoError(t, err)
	require.True(t, report.OK(), "%v", report.Problems)
	require.Len(t, report.Removed, 3*len(r.commits[2].Snapshot.Files))

	// A commit that is retried says the same.
	again, err := r.Host.Commit(t.Context(), r.commits[4])
	require.NoError(t, err)
	require.Equal(t, *r.head, again.Manifest)
	// A version whose snapshot is gone is rebuilt from the base model.
	r.forget(t)
	third, err := store.ReadManifest(t.Context(), r.store, *r.commits[3].Parent)
	require.NoError(t, err)
	got := r.restore(t, activities.RestoreInput{Version: activities.Version{Run: r.Run, Version: 3, State: third.StateAfter}, Head: r.commits[3].Parent})
	require.Equal(t, states[2], got.State)
	require.Equal(t, 3, got.Telemetry.Recomputed)
}
