package store_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// countedStore counts what is read through it.
type countedStore struct {
	store.Store
	opened int
}

func (c *countedStore) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	c.opened++
	return c.Store.Open(ctx, key, offset)
}

func TestCacheKeepsWhatWasWrittenOrRead(t *testing.T) {
	ctx := context.Background()
	below := &countedStore{Store: store.NewMemory()}
	c := store.NewCache(below, 1<<20)

	ref, err := store.PutArtifact(ctx, c, "runs/a", "batch", "bin", []byte("written here"))
	require.NoError(t, err)
	body, err := store.GetArtifact(ctx, c, ref)
	require.NoError(t, err)
	require.Equal(t, "written here", string(body))
	require.Zero(t, below.opened)

	// A caller that changes the bytes does not change the cache.
	body[0] = 'X'
	body, err = store.GetArtifact(ctx, c, ref)
	require.NoError(t, err)
	require.Equal(t, "written here", string(body))

	other, err := store.PutArtifact(ctx, below, "runs/a", "other", "bin", []byte("written elsewhere"))
	require.NoError(t, err)
	other.Content = ref.Digest // a table's ref names its columns too
	for range 3 {
		body, err = store.GetArtifact(ctx, c, other)
		require.NoError(t, err)
		require.Equal(t, "written elsewhere", string(body))
	}
	require.Equal(t, 1, below.opened)
}

// Of many small bodies the newest are kept: a run of days needs no more memory than one of an hour.
func TestCacheKeepsTheNewest(t *testing.T) {
	ctx := context.Background()
	below := &countedStore{Store: store.NewMemory()}
	c := store.NewCache(below, 1<<30)
	var refs []store.Ref
	for i := range 1100 {
		ref, err := store.PutArtifact(ctx, c, "runs/a", fmt.Sprint(i), "bin", []byte(fmt.Sprint("body ", i)))
		require.NoError(t, err)
		refs = append(refs, ref)
	}
	for _, ref := range refs[1100-1024:] {
		_, err := store.GetArtifact(ctx, c, ref)
		require.NoError(t, err)
	}
	require.Zero(t, below.opened)
	_, err := store.GetArtifact(ctx, c, refs[1100-1025])
	require.NoError(t, err)
	require.Equal(t, 1, below.opened)
}

func TestCacheNeverAnswersForTheBucket(t *testing.T) {
	ctx := context.Background()
	below := store.NewMemory()
	c := store.NewCache(below, 1<<20)
	ref, err := store.PutArtifact(ctx, c, "runs/a", "batch", "bin", []byte("sound"))
	require.NoError(t, err)
	require.NoError(t, below.Put(ctx, ref.Key, []byte("bound"), store.PutOptions{}))

	require.ErrorIs(t, store.VerifyArtifact(ctx, c, ref), store.ErrAltered)
	_, err = store.PutArtifact(ctx, c, "runs/a", "batch", "bin", []byte("sound"))
	require.ErrorIs(t, err, store.ErrAltered)

	// Another digest or another key is another artifact.
	wrong := ref
	wrong.Digest = "0" + ref.Digest[1:]
	if wrong == ref {
		wrong.Digest = "1" + ref.Digest[1:]
	}
	_, err = store.GetArtifact(ctx, c, wrong)
	require.ErrorIs(t, err, store.ErrAltered)
	wrong = ref
	wrong.Key = "runs/b/batch.bin"
	_, err = store.GetArtifact(ctx, c, wrong)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestCacheIsBounded(t *testing.T) {
	ctx := context.Background()
	below := &countedStore{Store: store.NewMemory()}
	c := store.NewCache(below, 800)
	var refs []store.Ref
	for n := range 10 {
		ref, err := store.PutArtifact(ctx, c, "runs/a", fmt.Sprint(n), "bin", bytes.Repeat([]byte{byte(n)}, 100))
		require.NoError(t, err)
		refs = append(refs, ref)
	}
	large, err := store.PutArtifact(ctx, c, "runs/a", "large", "bin", make([]byte, 101))
	require.NoError(t, err)

	reads := func(ref store.Ref) int {
		before := below.opened
		_, err := store.GetArtifact(ctx, c, ref)
		require.NoError(t, err)
		return below.opened - before
	}
	require.Equal(t, 0, reads(refs[9]))
	require.Equal(t, 0, reads(refs[2]))
	require.Equal(t, 1, reads(refs[0]), "the oldest went first")
	require.Equal(t, 0, reads(refs[0]), "and is kept again")
	require.Equal(t, 1, reads(large))
	require.Equal(t, 1, reads(large), "too large to be kept")
}
