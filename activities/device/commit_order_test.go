package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// ledger is a store that notes writes of manifests and deletions, and refuses what it
// is asked to.
type ledger struct {
	store.Store
	writes             []string // "commit KEY" and "delete KEY", in order
	putFails, delFails error
}

func (l *ledger) Put(ctx context.Context, key string, body []byte, o store.PutOptions) error {
	if strings.HasSuffix(key, "/manifest.json") {
		if l.putFails != nil {
			return l.putFails
		}
		l.writes = append(l.writes, "commit "+key)
	}
	return l.Store.Put(ctx, key, body, o)
}

func (l *ledger) Delete(ctx context.Context, key string) error {
	if l.delFails != nil {
		return l.delFails
	}
	l.writes = append(l.writes, "delete "+key)
	return l.Store.Delete(ctx, key)
}

// committed is a run without a device that keeps one snapshot, and two iterations of
// it with a snapshot each: the first is committed, the second is not.
func committed(t *testing.T) (l *ledger, h *host.Host, first, second activities.CommitInput) {
	t.Helper()
	ctx := t.Context()
	r := resolved(t, "ordered", tinySpec(t, "snapshot.every=1", "snapshot.retain=1", "evaluation.every=0"))
	l = &ledger{Store: r.store}
	h = &host.Host{Store: l}
	iteration := func(n int, parent *store.Ref) activities.CommitInput {
		state := fmt.Sprintf("state-%d", n+1)
		folder, err := store.PutFolder(ctx, l, store.SnapshotPrefix(r.Run.ID, 0, n+1), []store.FolderFile{
			{Name: "model.safetensors", Body: []byte("weights of " + state)}, {Name: "optimizer.safetensors", Body: []byte("moments of " + state)},
		})
		require.NoError(t, err)
		table, err := tables.Put(ctx, l, store.IterationDir(r.Run.ID, 0, n), "trajectories", []episode.TrajectoryRow{{Row: int32(n)}})
		require.NoError(t, err)
		return activities.CommitInput{
			Run: r.Run, Iteration: n, Parent: parent, Settings: r.Plan.Settings, Fingerprint: "f00d", Device: json.RawMessage(`{}`),
			StateBefore: fmt.Sprintf("state-%d", n), StateAfter: state, Trajectories: table, Metrics: activities.Metrics{"reward/mean": 1},
			Update: store.UpdateCounts{Steps: 1}, Snapshot: &store.SnapshotRef{Version: n + 1, Dir: folder.Dir, Files: folder.Files, State: state},
		}
	}
	first = iteration(0, nil)
	got, err := h.Commit(ctx, first)
	require.NoError(t, err)
	second = iteration(1, &got.Manifest)
	l.writes = nil
	return l, h, first, second
}

// there returns which files of a snapshot the store has.
func there(t *testing.T, s store.Store, ref *store.SnapshotRef) (out []string) {
	t.Helper()
	for _, name := range run.SortedKeys(ref.Files) {
		_, err := s.Stat(t.Context(), ref.Files[name].Key)
		if err == nil {
			out = append(out, name)
		} else {
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	}
	return out
}

// A snapshot is gone only after the manifest that says so is committed: whatever ends
// a commit before, nothing is removed, and afterwards the same commit succeeds.
func TestRetentionDeletesAfterTheCommit(t *testing.T) {
	t.Parallel()
	both := []string{"model.safetensors", "optimizer.safetensors"}
	key := store.ManifestKey("ordered", 0, 1)
	for name, c := range map[string]struct {
		err  error
		kind error
	}{
		"the PUT is refused":      {errors.New("access denied"), nil},
		"the store is away":       {fmt.Errorf("connection refused: %w", store.ErrUnavailable), store.ErrUnavailable},
		"the PUT always collides": {fmt.Errorf("conflict: %w", store.ErrConflict), store.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			l, h, first, second := committed(t)
			l.putFails = c.err
			_, err := h.Commit(t.Context(), second)
			require.Error(t, err)
			if c.kind != nil {
				require.ErrorIs(t, err, c.kind)
			}
			require.Empty(t, l.writes, "nothing is committed and nothing deleted")
			require.Equal(t, both, there(t, l, first.Snapshot))
			l.putFails = nil
			_, err = h.Commit(t.Context(), second)
			require.NoError(t, err)
			require.Empty(t, there(t, l, first.Snapshot))
			require.Equal(t, both, there(t, l, second.Snapshot))
		})
	}
	t.Run("a divergence", func(t *testing.T) {
		l, h, first, second := committed(t)
		other := second
		other.Metrics = activities.Metrics{"reward/mean": 2}
		m, err := h.Manifest(t.Context(), other)
		require.NoError(t, err)
		require.Len(t, m.Tombstones, 2)
		_, err = store.CommitManifest(t.Context(), l.Store, m)
		require.NoError(t, err)
		_, err = h.Commit(t.Context(), second)
		require.ErrorIs(t, err, store.ErrDivergence)
		require.NotContains(t, strings.Join(l.writes, "\n"), "delete", "a commit that does not count deletes nothing")
		require.Equal(t, both, there(t, l, first.Snapshot))
		require.Equal(t, both, there(t, l, second.Snapshot))
	})
	t.Run("a commit that succeeds", func(t *testing.T) {
		l, h, first, second := committed(t)
		_, err := h.Commit(t.Context(), second)
		require.NoError(t, err)
		files := first.Snapshot.Files
		want := []string{"commit " + key, "delete " + files["model.safetensors"].Key, "delete " + files["optimizer.safetensors"].Key}
		require.Equal(t, want, l.writes)
		require.Empty(t, there(t, l, first.Snapshot))
		require.Equal(t, both, there(t, l, second.Snapshot))
	})
	t.Run("a deletion that fails", func(t *testing.T) {
		l, h, first, second := committed(t)
		l.delFails = fmt.Errorf("connection lost: %w", store.ErrUnavailable)
		_, err := h.Commit(t.Context(), second)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.Equal(t, []string{"commit " + key}, l.writes)
		l.delFails = nil
		_, err = h.Commit(t.Context(), second)
		require.NoError(t, err)
		require.Empty(t, there(t, l, first.Snapshot), "the retried commit deletes what was left")
	})
}
