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

// The snapshot at which a branch began under other programs is never removed: what follows
// could not be rebuilt without it.
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
		head = &ref
	}
	commit(0, 0, nil)
	commit(0, 1, nil)
	commit(1, 2, &activities.Opened{Adopted: &activities.Adopted{Fingerprint: "f00d", Programs: map[string]string{"a": "1"}}})
	commit(1, 3, nil)
	h := &Host{Store: s}
	train := spec.Train{Collapse: collapse.Defaults(), Snapshot: spec.Snapshot{Every: 1, Retain: 1}}
	removed := func(opened *activities.Opened) (out []string) {
		gone, err := h.tombstones(t.Context(), train, activities.CommitInput{Parent: head, Iteration: 4, StateBefore: "s4", Snapshot: snapshot(5), Opened: opened})
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
}
