package store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// noise are n bytes that differ by seed.
func noise(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func TestFSReadsAFolder(t *testing.T) {
	ctx := context.Background()
	s := &countedStore{Store: store.NewMemory()}
	large := noise(1, 9<<20)
	folder, err := store.PutFolder(ctx, s, "models/", []store.FolderFile{{Name: "config.json", Body: []byte("{}")}, {Name: "model.safetensors", Body: large}})
	require.NoError(t, err)
	fsys := store.FS(ctx, s, folder.Files, nil)
	s.opened = 0
	info, err := fs.Stat(fsys, "model.safetensors")
	require.NoError(t, err)
	require.Equal(t, int64(len(large)), info.Size())
	require.True(t, info.Mode().IsRegular())
	require.Zero(t, s.opened, "a ref says what it is")
	for name, want := range map[string][]byte{"config.json": []byte("{}"), "model.safetensors": large} {
		got, err := fs.ReadFile(fsys, name)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
	}
	_, err = fsys.Open("tokenizer.json")
	require.ErrorIs(t, err, fs.ErrNotExist)

	damaged := bytes.Clone(large)
	damaged[8<<20]++
	require.NoError(t, s.Put(ctx, folder.Files["model.safetensors"].Key, damaged, store.PutOptions{}))
	_, err = fs.ReadFile(fsys, "model.safetensors")
	require.ErrorIs(t, err, store.ErrAltered)
	require.NoError(t, s.Delete(ctx, folder.Files["config.json"].Key))
	_, err = fs.ReadFile(fsys, "config.json")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NotErrorIs(t, err, fs.ErrNotExist, "a loss is not a file that the folder does not have")
}

func TestLocalFilesKeepCopies(t *testing.T) {
	ctx := context.Background()
	s := &countedStore{Store: store.NewMemory()}
	put := func(seed byte, n int) store.Ref {
		ref, err := store.PutArtifact(ctx, s, "models/m", "model", "safetensors", noise(seed, n))
		require.NoError(t, err)
		return ref
	}
	dir := filepath.Join(t.TempDir(), "models")
	local := store.NewLocalFiles(dir, 2500)
	read := func(ref store.Ref) (opened int) {
		before := s.opened
		r, err := local.Open(ctx, s, ref)
		require.NoError(t, err)
		defer r.Close()
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Len(t, b, int(ref.Size))
		return s.opened - before
	}
	a, b, c, huge := put(1, 1000), put(2, 1000), put(3, 1000), put(4, 3000)
	names := func() []string {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		var out []string
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	require.Equal(t, 1, read(a))
	require.Equal(t, 0, read(a))
	require.Equal(t, 1, read(b))
	old := time.Now().Add(-time.Minute)
	require.NoError(t, os.Chtimes(filepath.Join(dir, b.Digest), old, old))
	require.Equal(t, 0, read(a))
	require.Equal(t, 1, read(c))
	require.ElementsMatch(t, []string{a.Digest, c.Digest}, names(), "the one read least recently made room")
	require.Equal(t, 1, read(huge))
	require.Equal(t, 1, read(huge), "too large to be kept")

	// What is read in part is not kept, nor what the store has altered.
	require.NoError(t, os.Remove(filepath.Join(dir, a.Digest)))
	r, err := local.Open(ctx, s, a)
	require.NoError(t, err)
	_, err = io.ReadFull(r, make([]byte, 10))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, s.Put(ctx, a.Key, noise(9, 1000), store.PutOptions{}))
	r, err = local.Open(ctx, s, a)
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.ErrorIs(t, err, store.ErrAltered)
	require.NoError(t, r.Close())
	require.Equal(t, []string{c.Digest}, names())

	// A damaged copy is removed; the next read fetches the artifact.
	require.NoError(t, os.WriteFile(filepath.Join(dir, c.Digest), noise(5, 1000), 0o600))
	r, err = local.Open(ctx, s, c)
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.True(t, store.Retryable(err), "%v", err)
	require.NoError(t, r.Close())
	require.Equal(t, 1, read(c))

	// A part of a process that is gone makes room too; one that may be written stays.
	part := filepath.Join(dir, b.Digest+".part-ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	fresh := filepath.Join(dir, a.Digest+".part-ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	for _, p := range []string{part, fresh} {
		require.NoError(t, os.WriteFile(p, []byte("x"), 0o600))
	}
	old = time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(part, old, old))
	require.Equal(t, 1, read(b))
	require.NoFileExists(t, part)
	require.FileExists(t, fresh)

	// A folder that cannot be made costs nothing.
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	local = store.NewLocalFiles(filepath.Join(blocked, "models"), 2500)
	require.Equal(t, 1, read(b))
	require.Equal(t, 1, read(b))
}

// What changes between its two readings is not stored.
func TestPutFolderSeesChanges(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		bodies := []string{"first", "other"}
		_, err := store.PutFolder(ctx, s, "models/", []store.FolderFile{{Name: "w", Size: 5, Open: func() io.Reader {
			body := bodies[0]
			bodies = bodies[1:]
			return bytes.NewReader([]byte(body))
		}}})
		require.ErrorContains(t, err, "changed while they were stored")
		for o, err := range s.List(ctx, "models/") {
			require.NoError(t, err)
			require.Failf(t, "stored", "%s", o.Key)
		}
		for _, size := range []int64{4, 6} {
			_, err = store.PutFolder(ctx, s, "models/", []store.FolderFile{{Name: "w", Size: size, Open: func() io.Reader { return bytes.NewReader([]byte("first")) }}})
			require.ErrorContains(t, err, "have 5 bytes")
		}
		stopped, stop := context.WithCancel(ctx)
		_, err = store.PutFolder(stopped, s, "models/", []store.FolderFile{{Name: "w", Size: 5, Open: func() io.Reader { stop(); return bytes.NewReader([]byte("first")) }}})
		require.True(t, errors.Is(err, context.Canceled), "%v", err)
	})
}
