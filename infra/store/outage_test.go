package store_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// outage is a store that does not answer once: at the read whose number is fails.
type outage struct {
	store.Store
	asked, fails int
}

func (o *outage) down(op, key string) error {
	o.asked++
	if o.asked-1 != o.fails {
		return nil
	}
	return &store.Error{Op: op, Where: o.Location(key), Kind: store.ErrUnavailable}
}

func (o *outage) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	if err := o.down("open", key); err != nil {
		return nil, store.Object{}, err
	}
	return o.Store.Open(ctx, key, offset)
}

func (o *outage) Stat(ctx context.Context, key string) (store.Object, error) {
	if err := o.down("stat", key); err != nil {
		return store.Object{}, err
	}
	return o.Store.Stat(ctx, key)
}

func (o *outage) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	if err := o.down("list", prefix); err != nil {
		return func(yield func(store.Object, error) bool) { yield(store.Object{}, err) }
	}
	return o.Store.List(ctx, prefix)
}

func (o *outage) Folders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	if err := o.down("list", prefix); err != nil {
		return func(yield func(string, error) bool) { yield("", err) }
	}
	return o.Store.Folders(ctx, prefix)
}

// A store that does not answer is not one without the object: whoever reads a chain says so, whichever of its reads
// it was.
func TestOutageIsNotAbsence(t *testing.T) {
	ctx := t.Context()
	s := store.NewMemory()
	chain := fork(t, s, makeRun(t, s, "run", 7), 1)
	head := chain[len(chain)-1]
	for name, c := range map[string]struct {
		least int // reads
		read  func(store.Store) error
	}{
		"head":           {3, func(s store.Store) error { _, err := store.Head(ctx, s, "run"); return err }},
		"head of branch": {2, func(s store.Store) error { _, err := store.HeadOf(ctx, s, "run", 0); return err }},
		"chain":          {8, func(s store.Store) error { _, err := store.LoadChain(ctx, s, head.Ref); return err }},
		"rebuild":        {5, func(s store.Store) error { _, err := store.FindRebuild(ctx, s, head.Ref, nil); return err }},
		"kept snapshots": {8, func(s store.Store) error { _, err := store.KeptSnapshots(ctx, s, head.Ref); return err }},
		"verify": {40, func(s store.Store) error {
			report, err := store.Verify(ctx, s, "run", nil)
			if err == nil && len(report.Problems) > 0 {
				return fmt.Errorf("%w: it counts as a problem of the run: %v", errBlamed, report.Problems)
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			count := &outage{Store: s, fails: -1}
			require.NoError(t, c.read(count))
			require.GreaterOrEqual(t, count.asked, c.least)
			for i := range count.asked {
				require.ErrorIs(t, c.read(&outage{Store: s, fails: i}), store.ErrUnavailable, "read %d of %d", i+1, count.asked)
			}
		})
	}
}

var errBlamed = fmt.Errorf("the run is blamed")

// A commit that the bucket has confirmed and lost is not restored from a copy where it is the newest: the run continues before it.
func TestLostCommitIsNamed(t *testing.T) {
	s := store.NewMemory()
	chain := makeRun(t, s, "run", 3)
	require.NoError(t, s.Delete(t.Context(), chain[2].Ref.Key))
	_, err := store.ReadManifest(t.Context(), s, chain[2].Ref)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "the bucket has lost a commit: if it is the newest, start the run again")
	head, err := store.Head(t.Context(), s, "run")
	require.NoError(t, err)
	require.Equal(t, chain[1].Ref, head.Ref)
}
