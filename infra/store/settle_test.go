package store_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// losing is a bucket in which an artifact's PUT loses to somebody else's request: for
// as long as conflicts last the answer is kind, and the key is empty when it is read.
type losing struct {
	store.Store
	kind      error
	conflicts int
	stat      bool // Stat says that the object is there, as long
}

func (l *losing) lose() error {
	if l.conflicts == 0 {
		return nil
	}
	l.conflicts--
	return &store.Error{Op: "put", Kind: l.kind}
}

func (l *losing) Put(ctx context.Context, key string, body []byte, opts store.PutOptions) error {
	if err := l.lose(); err != nil {
		return err
	}
	return l.Store.Put(ctx, key, body, opts)
}

func (l *losing) PutFrom(ctx context.Context, key string, r io.Reader, size int64, opts store.PutOptions) error {
	if err := l.lose(); err != nil {
		return err
	}
	return l.Store.PutFrom(ctx, key, r, size, opts)
}

func (l *losing) Stat(ctx context.Context, key string) (store.Object, error) {
	if l.stat && l.lose() != nil {
		return store.Object{Key: key, Size: 4}, nil
	}
	return l.Store.Stat(ctx, key)
}

// An artifact's PUT that loses to another writer, or to a deletion, is tried again. If
// that does not help, the error is one that the caller may retry. It never says that the
// artifact, which is being written, is missing.
func TestPutThatLosesIsTriedAgain(t *testing.T) {
	ctx, body := context.Background(), []byte("body")
	puts := map[string]func(s store.Store) (store.Ref, error){
		"bytes": func(s store.Store) (store.Ref, error) { return store.PutArtifact(ctx, s, "d", "n", "bin", body) },
		"reader": func(s store.Store) (store.Ref, error) {
			folder, err := store.PutFolder(ctx, s, "d/n.", []store.FolderFile{{Name: "x", Open: func() io.Reader { return bytes.NewReader(body) }, Size: int64(len(body))}})
			return folder.Files["x"], err
		},
	}
	cases := map[string]losing{
		"409":                       {kind: store.ErrConflict},
		"412, and gone when read":   {kind: store.ErrExists},
		"the upload was aborted":    {kind: store.ErrNotFound},
		"there, and gone when read": {kind: store.ErrExists, stat: true},
	}
	for name, c := range cases {
		for how, put := range puts {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel() // it waits between tries
				l := c
				l.Store, l.conflicts = store.NewMemory(), 3
				ref, err := put(&l)
				require.NoError(t, err)
				got, err := store.GetArtifact(ctx, l.Store, ref)
				require.NoError(t, err)
				require.Equal(t, body, got)

				l.Store, l.conflicts = store.NewMemory(), 1000
				_, err = put(&l)
				require.ErrorIs(t, err, store.ErrConflict)
				require.True(t, store.Retryable(err))
				require.NotErrorIs(t, err, store.ErrNotFound)
				require.ErrorContains(t, err, "d/n.")
				require.Greater(t, l.conflicts, 980, "a bounded number of tries")

				gone, cancel := context.WithCancel(ctx)
				cancel()
				_, err = store.PutArtifact(gone, &l, "d", "n", "bin", body)
				require.ErrorIs(t, err, context.Canceled)
			})
		}
	}
}

// A server that says that a commit exists already, and has nothing when it is read, gives an error that the caller may retry.
func TestCommitThatExistsNowhere(t *testing.T) {
	l := &losing{Store: store.NewMemory(), kind: store.ErrExists, conflicts: 1000}
	_, err := store.Commit(t.Context(), l, "runs/r/m.json", []byte("{}"))
	require.ErrorIs(t, err, store.ErrConflict)
	require.NotErrorIs(t, err, store.ErrExists)
	require.ErrorContains(t, err, "commit memory:runs/r/m.json: conflicting write: the server says 6 times that it exists already, and it is not there")
}
