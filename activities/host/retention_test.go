package host

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The newest snapshot at or before the version at which a branch began is never removed: after a rollback, and under other
// programs, without which what follows could not be rebuilt.
func TestRetentionKeepsForkPoint(t *testing.T) {
	s := store.NewMemory()
	put := func(kind string, n int) store.Ref {
		ref, err := store.PutArtifact(t.Context(), s, "runs/r", kind, "bin", fmt.Appendf(nil, "%s %d", kind, n))
		require.NoError(t, err)
		return ref
	}
	spare := put("trajectories", 0)
	settings, digest, err := store.NewSettings(struct{}{})
	require.NoError(t, err)
	snapshot := func(version int) *store.SnapshotRef {
		return &store.SnapshotRef{Version: version, Dir: "runs/r", State: fmt.Sprint("s", version), Files: map[string]store.Ref{"model": put("model", version)}}
	}
	var head *store.Ref
	next := 0
	commit := func(branch, iteration int, opened *activities.Opened) {
		m := &store.Manifest{
			Run: "r", Branch: branch, Iteration: iteration, Parent: head, Spec: spare, Base: store.ModelRef{Name: "starter", Dir: "models/a", Digest: spare.Digest, Files: map[string]store.Ref{"model": spare}},
			Settings: settings, SettingsDigest: digest, Fingerprint: "f00d", StateBefore: fmt.Sprint("s", iteration), StateAfter: fmt.Sprint("s", iteration+1),
			Trajectories: &spare, Snapshot: snapshot(iteration + 1),
		}
		if opened != nil {
			b, err := json.Marshal(opened)
			require.NoError(t, err)
			m.Opened, err = canon.Format(b)
			require.NoError(t, err)
		}
		ref, err := store.CommitManifest(t.Context(), s, m)
		require.NoError(t, err)
		head, next = &ref, iteration+1
	}
	commit(0, 0, nil)
	commit(0, 1, nil)
	commit(1, 2, &activities.Opened{Adopted: &activities.Adopted{Fingerprint: "f00d", Programs: map[string]string{"a": "1"}}})
	commit(1, 3, nil)
	h := &Host{Store: s}
	train := spec.Train{Collapse: collapse.Defaults(), Snapshot: spec.Snapshot{Every: 1, Retain: 1}}
	removed := func(opened *activities.Opened) (out []string) {
		gone, err := h.tombstones(t.Context(), train, activities.CommitInput{Parent: head, Iteration: next, Snapshot: snapshot(next + 1), Opened: opened})
		require.NoError(t, err)
		for _, g := range gone {
			out = append(out, g.Key)
		}
		return out
	}
	keys := func(versions ...int) (out []string) {
		for _, v := range versions {
			out = append(out, snapshot(v).Files["model"].Key)
		}
		return out
	}
	require.Equal(t, keys(4, 3, 1), removed(nil), "version 2 is a fork point")
	require.Equal(t, keys(3, 1), removed(&activities.Opened{Adopted: &activities.Adopted{}}), "and so is 4, where this one opens a branch")
	require.Equal(t, keys(3, 1), removed(&activities.Opened{Iteration: 3}), "a rollback's too")
	commit(2, 4, &activities.Opened{Iteration: 3})
	require.Equal(t, keys(5, 3, 1), removed(nil), "of both branches")
}

// A branch may begin between two snapshots: then it is rebuilt from the one before.
func TestBegins(t *testing.T) {
	all := []*store.SnapshotRef{{Version: 16}, {Version: 12}, {Version: 8}, {Version: 4}}
	kept := func(forks ...int) (out []int) {
		for _, s := range all {
			if begins(s, all, forks) {
				out = append(out, s.Version)
			}
		}
		return out
	}
	require.Empty(t, kept())
	require.Equal(t, []int{12}, kept(12))
	require.Equal(t, []int{8}, kept(11))
	require.Equal(t, []int{16, 8}, kept(11, 8, 10, 99))
	require.Empty(t, kept(3), "it began before all of them")
}
