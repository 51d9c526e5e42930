package store_test

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// largeFile is a folder of one file that is read as a stream.
func largeFile(t *testing.T, s store.Store, size int) (body []byte, files map[string]store.Ref) {
	t.Helper()
	body = noise(7, size)
	folder, err := store.PutFolder(t.Context(), s, "models/", []store.FolderFile{{Name: "model.safetensors", Body: body}})
	require.NoError(t, err)
	return body, folder.Files
}

// Large files are read ahead: all bytes come in order, whatever is asked for at a time, also
// over connections that break; the times of reading and hashing are counted, also of a copy.
func TestReadAhead(t *testing.T) {
	for _, size := range []int{8<<20 + 1, 24 << 20, 24<<20 + 12345} {
		s := &broken{Store: store.NewMemory(), every: 7 << 20}
		body, files := largeFile(t, s, size)
		reading := &store.Reading{Local: store.NewLocalFiles(filepath.Join(t.TempDir(), "models"), 1<<30)}
		fsys := store.FS(t.Context(), s, files, reading)
		for _, piece := range []int{1 << 10, 333_333, 1 << 20, 3 << 20} {
			f, err := fsys.Open("model.safetensors")
			require.NoError(t, err)
			var got bytes.Buffer
			_, err = io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{f}, make([]byte, piece))
			require.NoError(t, err)
			require.True(t, bytes.Equal(body, got.Bytes()), "%d at a time", piece)
			n, err := f.Read(make([]byte, 1))
			require.Zero(t, n)
			require.ErrorIs(t, err, io.EOF, "again")
			require.NoError(t, f.Close())
		}
		read, hash := reading.Seconds()
		require.Positive(t, read)
		require.Positive(t, hash)
	}
}

// A file that is closed before its end leaves nothing that runs, also while its server sends
// nothing any more.
func TestReadAheadEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silentStore{Store: store.NewMemory(), after: 4 << 20}
		body, files := largeFile(t, s, 24<<20)
		f, err := store.FS(t.Context(), s, files, nil).Open("model.safetensors")
		require.NoError(t, err)
		head := make([]byte, 2<<20)
		_, err = io.ReadFull(f, head)
		require.NoError(t, err)
		require.True(t, bytes.Equal(body[:len(head)], head))
		synctest.Wait()
		require.NoError(t, f.Close())
		_, err = f.Read(head)
		require.Error(t, err)
	}) // fails if a goroutine is left
}

// silentStore sends some bytes of an object and then nothing, until the context is done.
type silentStore struct {
	store.Store
	after int64
}

func (s *silentStore) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	body, o, err := s.Store.Open(ctx, key, offset)
	if err != nil {
		return nil, o, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(body, s.after), silence{ctx}), body}, o, nil
}

type silence struct{ ctx context.Context }

func (s silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// Of a file whose header alone is read, no more is asked for.
func TestHeadersAreNotReadAhead(t *testing.T) {
	s := &meteredStore{Store: store.NewMemory()}
	_, files := largeFile(t, s, 24<<20)
	before := runtime.NumGoroutine()
	f, err := store.FS(t.Context(), s, files, nil).Open("model.safetensors")
	require.NoError(t, err)
	_, err = io.ReadFull(f, make([]byte, 100_000))
	require.NoError(t, err)
	require.Equal(t, 100_000, s.read)
	require.Equal(t, before, runtime.NumGoroutine())
	require.NoError(t, f.Close())
}

// meteredStore counts the bytes that are read of its objects.
type meteredStore struct {
	store.Store
	read int
}

func (s *meteredStore) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	body, o, err := s.Store.Open(ctx, key, offset)
	if err != nil {
		return nil, o, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(body, counted{&s.read}), body}, o, nil
}

type counted struct{ n *int }

func (c counted) Write(p []byte) (int, error) {
	*c.n += len(p)
	return len(p), nil
}
