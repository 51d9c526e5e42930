package device

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// A snapshot in pieces is the one that a single activity stores. Its first piece stores
// nothing; a worker that lost the state continues with the first missing file.
func TestSnapshotInPieces(t *testing.T) {
	t.Parallel()
	const deeper = "policy.starter.layers=4" // its state has more than a MiB
	whole := fresh(t, `credit.algorithm="gae"`, deeper)
	want, err := whole.Device.Snapshot(t.Context(), activities.SnapshotInput{Policy: whole.version()})
	require.NoError(t, err)
	require.Nil(t, want.Begun)

	r := fresh(t, `credit.algorithm="gae"`, "limits.snapshot_mib=1", deeper)
	before := r.objects(t)
	in := activities.SnapshotInput{Policy: r.version()}
	in.Policy.State = whole.state
	first, err := r.Device.Snapshot(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, &activities.BegunSnapshot{Snapshot: want.Snapshot}, first.Begun)
	require.Empty(t, first.Snapshot)
	require.Equal(t, before, r.objects(t), "nothing is sent")
	r.forget(t)
	r.restore(t, activities.RestoreInput{})
	last := first
	for last.Begun != nil {
		in.Begun = last.Begun
		last, err = r.Device.Snapshot(t.Context(), in)
		require.NoError(t, err)
		require.True(t, last.Begun == nil || last.Begun.Sent > in.Begun.Sent)
	}
	require.Positive(t, in.Begun.Sent, "more than a MiB is sent in several pieces")
	require.Equal(t, want.Snapshot, last.Snapshot)
	have := r.objects(t)
	for name, ref := range want.Snapshot.Files {
		require.Equal(t, ref.Digest, have[ref.Key], name)
	}
}

// noted is a store that notes what is put into it.
type noted struct {
	*store.Memory
	put []string
}

func (n *noted) PutFrom(ctx context.Context, key string, r io.Reader, size int64, o store.PutOptions) error {
	n.put = append(n.put, key)
	return n.Memory.PutFrom(ctx, key, r, size, o)
}

// A snapshot of many files is stored file by file: a worker that lost the state begins at the
// first file that the store lacks, and the state is loaded from them as it was.
func TestSnapshotOfManyFiles(t *testing.T) {
	r := fresh(t, `credit.algorithm="gae"`, "limits.snapshot_mib=1")
	r.Device.fileBytes = 100 << 10
	s := &noted{Memory: r.store}
	r.Device.Store = s
	in := activities.SnapshotInput{Policy: r.version()}
	got, err := r.Device.Snapshot(t.Context(), in)
	require.NoError(t, err)
	require.Empty(t, s.put)
	var names []string
	for in.Begun = got.Begun; in.Begun != nil; in.Begun = got.Begun {
		names = slices.Sorted(maps.Keys(in.Begun.Snapshot.Files))
		r.forget(t)
		r.restore(t, activities.RestoreInput{})
		s.put = nil
		next := in.Begun.Snapshot.Files[names[in.Begun.Sent]]
		again, err := r.Device.Snapshot(t.Context(), in) // of which the answer is lost
		require.NoError(t, err)
		require.Equal(t, next.Key, s.put[0])
		s.put = nil
		got, err = r.Device.Snapshot(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, again.Begun, got.Begun)
		require.Empty(t, s.put, "nothing is sent twice")
	}
	for _, stem := range []string{"model", "optimizer", "critic", "critic_optimizer"} {
		require.Contains(t, names, stem+".safetensors.index.json")
		require.NotContains(t, names, stem+".safetensors")
		require.True(t, slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, stem+"-00002-of-") }), names)
	}

	r.forget(t)
	w, done, err := r.Device.begin(t.Context(), r.Run)
	require.NoError(t, err)
	defer done(&err)
	require.NoError(t, w.load(t.Context(), r.store, r.Run, &got.Snapshot))
	require.Equal(t, r.state, r.Device.Engine.fingerprint)
}

// A piece sends files until it is full, and at least one; it refuses files that are not
// those that were hashed.
func TestSendsInPieces(t *testing.T) {
	body := func(name, text string) store.FolderFile { return store.FolderFile{Name: name, Body: []byte(text)} }
	files := store.InOrder([]store.FolderFile{body("c", "333"), body("a", "1"), body("d", "4"), body("b", "22")})
	s := store.NewMemory()
	folder, err := store.HashFolder(t.Context(), "snapshots/", files)
	require.NoError(t, err)
	begun := activities.BegunSnapshot{Snapshot: store.SnapshotRef{Dir: folder.Dir, Files: folder.Files}}
	for _, test := range []struct {
		piece int64
		sent  []int // after each piece
	}{{1, []int{1, 2, 3, 4}}, {3, []int{2, 3, 4}}, {4, []int{2, 4}}, {6, []int{3, 4}}, {7, []int{4}}, {0, []int{4}}} {
		begun.Sent = 0
		for _, want := range test.sent {
			begun.Sent, err = send(t.Context(), s, begun, files, test.piece)
			require.NoError(t, err)
			require.Equal(t, want, begun.Sent, "pieces of %d bytes", test.piece)
		}
	}
	put, err := store.PutFolder(t.Context(), s, "snapshots/", files)
	require.NoError(t, err)
	require.Equal(t, folder, put)

	begun.Sent = 0
	_, err = send(t.Context(), s, begun, files[:3], 0)
	require.ErrorIs(t, err, store.ErrInvalid)
	other := slices.Clone(files)
	other[1].Name = "e"
	_, err = send(t.Context(), s, begun, other, 0)
	require.ErrorIs(t, err, store.ErrInvalid)
	empty := store.NewMemory()
	other[1] = body("b", "23")
	_, err = send(t.Context(), empty, begun, other, 0)
	require.ErrorContains(t, err, "changed while they were stored")
	stored := map[string]bool{}
	for o, err := range empty.List(t.Context(), "") {
		require.NoError(t, err)
		stored[o.Key] = true
	}
	require.Equal(t, map[string]bool{folder.Dir + "/a": true}, stored)
	require.Len(t, slices.Collect(maps.Keys(folder.Files)), 4)
}
