package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/storetest"
)

// each runs a test against every implementation: what holds of one must hold of all.
func each(t *testing.T, f func(t *testing.T, s store.Store)) {
	t.Run("memory", func(t *testing.T) { f(t, store.NewMemory()) })
	t.Run("overlay", func(t *testing.T) { f(t, store.NewOverlay(store.NewMemory())) })
	t.Run("s3", func(t *testing.T) { f(t, storetest.StartS3(t).Store("team/a b")) })
}

func keys(t *testing.T, s store.Store, prefix string) (out []string) {
	t.Helper()
	for o, err := range s.List(context.Background(), prefix) {
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), o.Modified, time.Hour)
		out = append(out, o.Key)
	}
	return out
}

func TestStore(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		_, err := s.Stat(ctx, "runs/r/none")
		require.ErrorIs(t, err, store.ErrNotFound)
		_, _, err = s.Open(ctx, "runs/r/none", 0)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.ErrorContains(t, err, "runs/r/none")

		require.NoError(t, s.Put(ctx, "runs/r/a%2Fb~.json", []byte(`{"a":1}`), store.PutOptions{IfAbsent: true}))
		err = s.Put(ctx, "runs/r/a%2Fb~.json", []byte(`{"a":2}`), store.PutOptions{IfAbsent: true})
		require.ErrorIs(t, err, store.ErrExists)
		require.False(t, store.Retryable(err))
		body, ref, err := store.ReadFixed(ctx, s, "runs/r/a%2Fb~.json", 100)
		require.NoError(t, err)
		require.Equal(t, `{"a":1}`, string(body))
		require.Equal(t, store.Ref{Key: "runs/r/a%2Fb~.json", Digest: canon.Digest(body), Size: 7}, ref)
		_, _, err = store.ReadFixed(ctx, s, "runs/r/a%2Fb~.json", 6)
		require.ErrorIs(t, err, store.ErrTooLarge)

		require.NoError(t, s.Put(ctx, "runs/r/plain", []byte("one"), store.PutOptions{}))
		require.NoError(t, s.Put(ctx, "runs/r/plain", []byte("second"), store.PutOptions{}))
		r, o, err := s.Open(ctx, "runs/r/plain", 3)
		require.NoError(t, err)
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Equal(t, "ond", string(rest))
		require.EqualValues(t, 6, o.Size)

		require.NoError(t, s.Put(ctx, "runs/r/b0/iterations/000001/x", nil, store.PutOptions{}))
		require.NoError(t, s.Put(ctx, "runs/r/b0/iterations/000000/x", []byte("x"), store.PutOptions{}))
		require.NoError(t, s.Put(ctx, "runs/r/b0/iterations/000000/y", []byte("y"), store.PutOptions{}))
		require.NoError(t, s.Put(ctx, "runs/rr/spec.json", []byte("x"), store.PutOptions{}))
		require.Equal(t, []string{"runs/r/a%2Fb~.json", "runs/r/b0/iterations/000000/x", "runs/r/b0/iterations/000000/y", "runs/r/b0/iterations/000001/x", "runs/r/plain"}, keys(t, s, "runs/r/"))
		var folders []string
		for name, err := range s.Folders(ctx, "runs/r/b0/iterations/") {
			require.NoError(t, err)
			folders = append(folders, name)
		}
		require.Equal(t, []string{"000000", "000001"}, folders)
		require.Empty(t, keys(t, s, "runs/none/"))

		require.NoError(t, s.Delete(ctx, "runs/r/plain"))
		require.NoError(t, s.Delete(ctx, "runs/r/plain"))
		_, err = s.Stat(ctx, "runs/r/plain")
		require.ErrorIs(t, err, store.ErrNotFound)

		for _, bad := range []string{"", "a//b", "../a", "a/./b", "/a", "a/", "a\x00b", "a\\b", strings.Repeat("x", 1025)} {
			require.Error(t, s.Put(ctx, bad, nil, store.PutOptions{}), "%q", bad)
		}

		gone, cancel := context.WithCancel(ctx)
		cancel()
		err = s.Put(gone, "k", []byte("x"), store.PutOptions{})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, store.ErrUnavailable)
	})
}

func TestArtifacts(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		body := bytes.Repeat([]byte("artifact "), 10_000)
		ref, err := store.PutArtifact(ctx, s, "runs/r/b0/iterations/000000", "turn-1.generate", "parquet", body)
		require.NoError(t, err)
		require.Equal(t, "runs/r/b0/iterations/000000/turn-1.generate."+canon.Digest(body)[:12]+".parquet", ref.Key)
		again, err := store.PutArtifact(ctx, s, "runs/r/b0/iterations/000000", "turn-1.generate", "parquet", body)
		require.NoError(t, err)
		require.Equal(t, ref, again)
		got, err := store.GetArtifact(ctx, s, ref)
		require.NoError(t, err)
		require.Equal(t, body, got)

		empty, err := store.PutArtifact(ctx, s, "d", "empty", "bin", nil)
		require.NoError(t, err)
		got, err = store.GetArtifact(ctx, s, empty)
		require.NoError(t, err)
		require.Empty(t, got)

		wrong := ref
		wrong.Digest = strings.Repeat("0", 64)
		_, err = store.GetArtifact(ctx, s, wrong)
		require.ErrorIs(t, err, store.ErrAltered)
		require.ErrorContains(t, err, wrong.Digest)
		require.ErrorContains(t, err, ref.Digest)
		require.ErrorContains(t, err, ref.Key)
		for _, size := range []int64{ref.Size - 1, ref.Size + 1} {
			wrong = ref
			wrong.Size = size
			require.ErrorIs(t, store.VerifyArtifact(ctx, s, wrong), store.ErrAltered)
		}
		_, err = store.GetArtifact(ctx, s, store.Ref{Key: "d/none", Digest: ref.Digest, Size: 3})
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = store.GetArtifact(ctx, s, store.Ref{Key: "../x", Digest: ref.Digest})
		require.Error(t, err)
		_, err = store.GetArtifact(ctx, s, store.Ref{Key: "x", Digest: "abc"})
		require.Error(t, err)
		_, err = store.GetArtifact(ctx, s, store.Ref{Key: "x", Digest: ref.Digest, Size: 1 << 40})
		require.ErrorIs(t, err, store.ErrTooLarge)

		// An artifact that was damaged is noticed by whoever writes it again, and written again where no manifest names it.
		require.NoError(t, s.Put(ctx, ref.Key, append([]byte("X"), body[1:]...), store.PutOptions{}))
		again, err = store.PutArtifact(ctx, s, "runs/r/b0/iterations/000000", "turn-1.generate", "parquet", body)
		require.NoError(t, err)
		require.Equal(t, ref, again)
		require.NoError(t, store.VerifyArtifact(ctx, s, ref))
		apart, err := store.PutArtifact(ctx, s, "d", "n", "bin", body)
		require.NoError(t, err)
		require.NoError(t, s.Put(ctx, apart.Key, append([]byte("X"), body[1:]...), store.PutOptions{}))
		_, err = store.PutArtifact(ctx, s, "d", "n", "bin", body)
		require.ErrorIs(t, err, store.ErrAltered)

		// Files.
		dir := t.TempDir()
		path := filepath.Join(dir, "model.safetensors")
		require.NoError(t, os.WriteFile(path, body, 0o644))
		fileRef, err := putFile(ctx, s, path)
		require.NoError(t, err)
		_, err = putFile(ctx, s, path)
		require.NoError(t, err)
		back := filepath.Join(dir, "back")
		require.NoError(t, store.GetFile(ctx, s, fileRef, back))
		got, err = os.ReadFile(back)
		require.NoError(t, err)
		require.Equal(t, body, got)
		fileRef.Digest = strings.Repeat("1", 64)
		require.ErrorIs(t, store.GetFile(ctx, s, fileRef, filepath.Join(dir, "never")), store.ErrAltered)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, 2, "no half file stays")
	})
}

func TestFolder(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		dir := t.TempDir()
		files := []store.FolderFile{
			{Name: "model.safetensors", Open: func() io.Reader { return strings.NewReader("weights") }, Size: 7},
			{Name: "config.json", Body: []byte("{}")},
			{Name: "sub/notes.txt", Body: []byte("notes")},
		}
		folder, err := store.PutFolder(ctx, s, store.SnapshotPrefix("run", 0, 10), files)
		require.NoError(t, err)
		require.Equal(t, store.SnapshotDir("run", 0, 10, folder.Digest), folder.Dir)
		require.Equal(t, folder.Dir+"/config.json", folder.Files["config.json"].Key)
		require.Equal(t, folder.Digest, store.FolderDigest(folder.Files))
		again, err := store.PutFolder(ctx, s, store.SnapshotPrefix("run", 0, 10), files)
		require.NoError(t, err)
		require.Equal(t, folder, again)

		out := filepath.Join(dir, "out")
		require.NoError(t, store.GetFolder(ctx, s, folder.Files, out))
		require.NoError(t, os.WriteFile(filepath.Join(out, "config.json"), []byte("xx"), 0o644))
		require.NoError(t, store.GetFolder(ctx, s, folder.Files, out))
		got, err := os.ReadFile(filepath.Join(out, "config.json"))
		require.NoError(t, err)
		require.Equal(t, "{}", string(got))
		got, err = os.ReadFile(filepath.Join(out, "sub", "notes.txt"))
		require.NoError(t, err)
		require.Equal(t, "notes", string(got))
		got, err = os.ReadFile(filepath.Join(out, "model.safetensors"))
		require.NoError(t, err)
		require.Equal(t, "weights", string(got))

		// As other programs write files: for all to read, as far as the umask goes.
		plain := filepath.Join(dir, "plain")
		require.NoError(t, os.WriteFile(plain, nil, 0o644))
		want, err := os.Stat(plain)
		require.NoError(t, err)
		have, err := os.Stat(filepath.Join(out, "model.safetensors"))
		require.NoError(t, err)
		require.Equal(t, want.Mode(), have.Mode())

		err = store.GetFolder(ctx, s, map[string]store.Ref{"../evil": folder.Files["config.json"]}, out)
		require.ErrorIs(t, err, store.ErrInvalid)
		_, err = store.PutFolder(ctx, s, "models/", append(files, files[0]))
		require.ErrorContains(t, err, "twice")
	})
}

func TestCommit(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		key := store.ManifestKey("run", 0, 0)
		body := []byte(`{"iteration":0,"metrics":{"reward":0.5},"state":"a"}`)
		ref, err := store.Commit(ctx, s, key, body)
		require.NoError(t, err)
		again, err := store.Commit(ctx, s, key, body)
		require.NoError(t, err)
		require.Equal(t, ref, again)

		_, err = store.Commit(ctx, s, key, []byte(`{"iteration":0,"metrics":{"reward":0.25},"state":"b"}`))
		require.ErrorIs(t, err, store.ErrDivergence)
		require.False(t, store.Retryable(err))
		var d *store.Divergence
		require.ErrorAs(t, err, &d)
		require.Equal(t, key, d.Key)
		require.Equal(t, ref.Digest, d.HaveDigest)
		require.Equal(t, []string{"$.metrics.reward: have 0.5, want 0.25", `$.state: have "a", want "b"`}, d.Differences)
		require.ErrorContains(t, err, d.WantDigest)
		stored, err := store.GetArtifact(ctx, s, ref)
		require.NoError(t, err)
		require.Equal(t, body, stored)
	})
}

func TestCommitRace(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		for round := range 5 {
			key := store.ManifestKey("race", 0, round)
			refs, errs := make([]store.Ref, 16), make([]error, 16)
			var wg sync.WaitGroup
			for i := range refs {
				wg.Go(func() {
					// Eight writers of one body, eight of others.
					refs[i], errs[i] = store.Commit(context.Background(), s, key, fmt.Appendf(nil, `{"writer":%d}`, max(0, i-7)))
				})
			}
			wg.Wait()
			body, have, err := store.ReadFixed(context.Background(), s, key, 100)
			require.NoError(t, err)
			won := 0
			for i := range refs {
				if errs[i] == nil {
					won++
					require.Equal(t, have, refs[i])
					require.JSONEq(t, fmt.Sprintf(`{"writer":%d}`, max(0, i-7)), string(body))
					continue
				}
				var d *store.Divergence
				require.ErrorAs(t, errs[i], &d)
				require.Equal(t, have.Digest, d.HaveDigest)
			}
			require.Contains(t, []int{1, 8}, won, "one body wins")
		}
	})
}

// faulty fails writes in the ways networks and servers do.
type faulty struct {
	store.Store
	faults []func(put func() error) error
}

func (f *faulty) Put(ctx context.Context, key string, body []byte, opts store.PutOptions) error {
	put := func() error { return f.Store.Put(ctx, key, body, opts) }
	if len(f.faults) == 0 {
		return put()
	}
	fault := f.faults[0]
	f.faults = f.faults[1:]
	return fault(put)
}

func TestCommitAfterUnclearOutcomes(t *testing.T) {
	lost := func(put func() error) error { _ = put(); return &store.Error{Op: "put", Kind: store.ErrUnavailable} }
	down := func(func() error) error { return &store.Error{Op: "put", Kind: store.ErrUnavailable} }
	conflict := func(func() error) error { return &store.Error{Op: "put", Kind: store.ErrConflict} }
	denied := func(func() error) error { return &store.Error{Op: "put", Kind: store.ErrDenied} }
	cases := []struct {
		name   string
		faults []func(func() error) error
		want   error
		puts   int // faults left over
	}{
		{"reply lost", []func(func() error) error{lost}, nil, 0},
		{"down, then there", []func(func() error) error{down, down}, nil, 0},
		{"409, then there", []func(func() error) error{conflict, conflict, conflict}, nil, 0},
		{"409, then the reply is lost", []func(func() error) error{conflict, lost}, nil, 0},
		{"denied at once", []func(func() error) error{denied, denied}, store.ErrDenied, 1},
		{"down for good", []func(func() error) error{down, down, down, down, down, down, down}, store.ErrUnavailable, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := &faulty{Store: store.NewMemory(), faults: c.faults}
			_, err := store.Commit(context.Background(), f, "k", []byte("{}"))
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.want)
			}
			require.Len(t, f.faults, c.puts)
		})
	}
	f := &faulty{Store: store.NewMemory(), faults: []func(func() error) error{lost}}
	require.NoError(t, f.Store.Put(context.Background(), "k", []byte(`{"other":1}`), store.PutOptions{}))
	_, err := store.Commit(context.Background(), f, "k", []byte("{}"))
	require.ErrorIs(t, err, store.ErrDivergence)
}

// broken answers bodies that end early.
type broken struct {
	store.Store
	every int64
	opens int
}

func (b *broken) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	b.opens++
	r, o, err := b.Store.Open(ctx, key, offset)
	if err != nil {
		return nil, o, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(r, b.every), failing{}), r}, o, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestReadTakesUpWhereItBrokeOff(t *testing.T) {
	ctx := context.Background()
	m := store.NewMemory()
	body := bytes.Repeat([]byte("0123456789"), 100)
	ref, err := store.PutArtifact(ctx, m, "d", "n", "bin", body)
	require.NoError(t, err)
	b := &broken{Store: m, every: 300}
	got, err := store.GetArtifact(ctx, b, ref)
	require.NoError(t, err)
	require.Equal(t, body, got)
	require.Equal(t, 4, b.opens)
	_, err = store.GetArtifact(ctx, &broken{Store: m, every: 10}, ref)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, ref.Key)
}

func TestOverlay(t *testing.T) {
	ctx := context.Background()
	base := store.NewMemory()
	ref, err := store.PutArtifact(ctx, base, "d", "n", "bin", []byte("recorded"))
	require.NoError(t, err)
	over := store.NewOverlay(base)
	got, err := store.GetArtifact(ctx, over, ref)
	require.NoError(t, err)
	require.Equal(t, "recorded", string(got))
	_, err = store.PutArtifact(ctx, over, "d", "n", "bin", []byte("recorded"))
	require.NoError(t, err)
	require.Empty(t, over.Own(), "the same bytes again need no copy")
	other, err := store.PutArtifact(ctx, over, "d", "m", "bin", []byte("recomputed"))
	require.NoError(t, err)
	require.Len(t, over.Own(), 1)
	_, err = base.Stat(ctx, other.Key)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Equal(t, []string{other.Key, ref.Key}, keys(t, over, "d/"))
	require.NoError(t, over.Delete(ctx, ref.Key))
	require.Equal(t, []string{other.Key}, keys(t, over, "d/"))
	require.Equal(t, []string{ref.Key}, keys(t, base, "d/"))
}

// putFile writes a file as models are written, as one of a folder.
func putFile(ctx context.Context, s store.Store, path string) (store.Ref, error) {
	f, err := os.Open(path)
	if err != nil {
		return store.Ref{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return store.Ref{}, err
	}
	folder, err := store.PutFolder(ctx, s, store.ModelPrefix, []store.FolderFile{{Name: "model.safetensors", Open: func() io.Reader { return io.NewSectionReader(f, 0, info.Size()) }, Size: info.Size()}})
	return folder.Files["model.safetensors"], err
}
