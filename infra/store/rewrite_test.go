package store_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// mangled is a store whose reads of a key are altered so many times, though its objects are sound, and which counts deletions.
type mangled struct {
	store.Store
	key              string
	reads, deletions int
}

func (m *mangled) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	r, o, err := m.Store.Open(ctx, key, offset)
	if err != nil || key != m.key || m.reads == 0 {
		return r, o, err
	}
	m.reads--
	return io.NopCloser(bytes.NewReader(bytes.Repeat([]byte{byte(m.reads)}, int(o.Size)))), o, nil
}

func (m *mangled) Delete(ctx context.Context, key string) error {
	m.deletions++
	return m.Store.Delete(ctx, key)
}

// What is damaged and named by no manifest is deleted and written again, with a notice. What one names stays, whichever branch's
// it is; so does what is not of a run's branch, or of a run whose manifests cannot all be read.
func TestDamagedArtifactIsWrittenAgain(t *testing.T) {
	ctx := t.Context()
	body, other := []byte("the right bytes"), []byte("the wrong bytes")
	m := &mangled{Store: store.NewMemory()}
	var told []store.Ref
	s := store.NewCache(m, 1<<20)
	s.Rewritten = func(ref store.Ref, damage error) {
		require.ErrorIs(t, damage, store.ErrAltered)
		told = append(told, ref)
	}
	main := makeRun(t, s, "run/1", 4)
	side := fork(t, s, main[:2], 3)
	stream := func(prefix string) (store.Ref, error) {
		folder, err := store.PutFolder(ctx, s, prefix, []store.FolderFile{{Name: "x.bin", Open: func() io.Reader { return bytes.NewReader(body) }, Size: int64(len(body))}})
		return folder.Files["x.bin"], err
	}
	damaged := func(ref store.Ref) store.Ref {
		require.NoError(t, m.Store.Put(ctx, ref.Key, other[:min(len(other), int(ref.Size))], store.PutOptions{}))
		require.ErrorIs(t, store.VerifyArtifact(ctx, s, ref), store.ErrAltered)
		return ref
	}

	for name, put := range map[string]func() (store.Ref, error){
		"uncommitted": func() (store.Ref, error) {
			return store.PutArtifact(ctx, s, store.IterationDir("run/1", 1, 9), "turn-1.generate", "parquet", body)
		},
		"first iteration": func() (store.Ref, error) {
			return store.PutArtifact(ctx, s, store.IterationDir("new", 0, 0), "turn-1.generate", "parquet", body)
		},
		"snapshot": func() (store.Ref, error) { return stream(store.SnapshotPrefix("run/1", 0, 9)) },
	} {
		ref, err := put()
		require.NoError(t, err)
		damaged(ref)
		told, m.deletions = nil, 0
		again, err := put()
		require.NoError(t, err, name)
		require.Equal(t, ref, again, name)
		require.NoError(t, store.VerifyArtifact(ctx, s, ref), name)
		require.Equal(t, []store.Ref{ref}, told, name)
		require.Equal(t, 1, m.deletions, name)
	}

	told, m.deletions = nil, 0
	for _, link := range []store.Link{main[1], main[3], side[4]} {
		ref := link.Manifest.Turns[0].Generate
		whole, err := store.GetArtifact(ctx, m, ref)
		require.NoError(t, err)
		damaged(ref)
		_, err = store.PutArtifact(ctx, s, store.IterationDir("run/1", link.Manifest.Branch, link.Manifest.Iteration), "turn-1.generate", "parquet", whole)
		require.ErrorIs(t, err, store.ErrAltered)
		require.ErrorContains(t, err, "compare with what is stored")
		report, err := store.Verify(ctx, m, "run/1", nil)
		require.NoError(t, err)
		require.Len(t, report.Problems, 1)
		require.Equal(t, ref.Key, report.Problems[0].Key)
		require.NoError(t, m.Store.Put(ctx, ref.Key, whole, store.PutOptions{}))
	}
	model, err := stream(store.ModelPrefix)
	require.NoError(t, err)
	damaged(model)
	_, err = stream(store.ModelPrefix)
	require.ErrorIs(t, err, store.ErrAltered, "any run may name it")

	// One bad read is no damage.
	ref, err := store.PutArtifact(ctx, s, store.IterationDir("run/1", 0, 9), "n", "bin", body)
	require.NoError(t, err)
	m.key, m.reads = ref.Key, 1
	_, err = store.PutArtifact(ctx, s, store.IterationDir("run/1", 0, 9), "n", "bin", body)
	require.NoError(t, err)
	m.reads = 2 // two that do not agree
	_, err = store.PutArtifact(ctx, s, store.IterationDir("run/1", 0, 9), "n", "bin", body)
	require.ErrorIs(t, err, store.ErrAltered)
	m.key = ""

	damaged(ref)
	require.NoError(t, m.Store.Put(ctx, main[2].Ref.Key, []byte("{"), store.PutOptions{}))
	_, err = store.PutArtifact(ctx, s, store.IterationDir("run/1", 0, 9), "n", "bin", body)
	require.ErrorIs(t, err, store.ErrAltered, "what the damaged manifest names is not known")
	require.Empty(t, told)
	require.Zero(t, m.deletions)
}

// A bit that flipped on the way once is no damage; bytes that are wrong twice are.
func TestBadReadIsMadeAgain(t *testing.T) {
	ctx := t.Context()
	m := &mangled{Store: store.NewMemory()}
	ref, err := store.PutArtifact(ctx, m, "d", "n", "bin", []byte("body"))
	require.NoError(t, err)
	m.key, m.reads = ref.Key, 1
	got, err := store.GetArtifact(ctx, m, ref)
	require.NoError(t, err)
	require.Equal(t, []byte("body"), got)
	m.reads = 2
	_, err = store.GetArtifact(ctx, m, ref)
	require.ErrorIs(t, err, store.ErrAltered)
}
