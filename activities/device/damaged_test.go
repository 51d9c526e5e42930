package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
)

// A damaged snapshot counts as a removed one: the policy is rebuilt from the one before, or from version 0, and is the same.
// One that was read badly once is read again.
func TestDamagedSnapshot(t *testing.T) {
	r := begun(t, "damaged", tinySpec(t, "iterations=5", "snapshot.every=2", "evaluation.every=0"))
	for range 4 {
		r.iterate(t)
	}
	restored := func() activities.RestoreResult {
		r.forget(t)
		return r.restore(t, activities.RestoreInput{})
	}
	whole := restored()
	require.Equal(t, 4, whole.From)
	require.Empty(t, whole.Damaged)
	newest, before := r.commits[3].Snapshot, r.commits[1].Snapshot
	require.NotNil(t, newest)
	for _, name := range []string{"model.safetensors", "optimizer.safetensors"} {
		alter(t, r.store, newest.Files[name].Key)
		got := restored()
		require.Equal(t, []int{4}, got.Damaged, name)
		require.Equal(t, 2, got.From, name)
		require.Equal(t, whole.State, got.State, name)
		require.Empty(t, restored().Damaged, "it is remembered")
		alter(t, r.store, newest.Files[name].Key)
		r.Device.Engine.damaged = nil // as a new worker
		require.Equal(t, 4, restored().From, "undamaged again")
	}
	r.Device.Engine.damaged = map[string]int{folderOf(newest): 1}
	require.Equal(t, 4, restored().From, "one bad read is none")

	alter(t, r.store, newest.Files["model.safetensors"].Key)
	alter(t, r.store, before.Files["model.safetensors"].Key)
	got := restored()
	require.Equal(t, []int{4, 2}, got.Damaged)
	require.Zero(t, got.From)
	require.Equal(t, whole.State, got.State)
}
