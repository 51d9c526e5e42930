package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// A marker is written once: a removal that is repeated leaves the first one's bytes.
func TestRemoved(t *testing.T) {
	s := store.NewMemory()
	at := time.Date(2026, 11, 28, 13, 5, 59, 7e8, time.FixedZone("", 3600))
	require.NoError(t, store.RefuseRemoved(t.Context(), s, "a/b"))
	first := store.Removed{Kind: "run", ID: "a/b", Sweep: "a", At: at, Objects: 3, Bytes: 99, Heads: []store.RemovedHead{{Branch: 1, Iteration: 7, Manifest: "m", State: "s"}}}
	got, err := store.MarkRemoved(t.Context(), s, store.RunDir("a/b"), first)
	require.NoError(t, err)
	body, _, err := store.ReadFixed(t.Context(), s, "runs/a%2Fb/removed.json", 1<<20)
	require.NoError(t, err)
	again, err := store.MarkRemoved(t.Context(), s, store.RunDir("a/b"), store.Removed{Kind: "run", ID: "a/b", At: at.Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, got, again)
	same, _, err := store.ReadFixed(t.Context(), s, "runs/a%2Fb/removed.json", 1<<20)
	require.NoError(t, err)
	require.Equal(t, body, same)
	read, err := store.ReadRemoved(t.Context(), s, store.RunDir("a/b"))
	require.NoError(t, err)
	require.Equal(t, &got, read)
	require.Equal(t, first.Heads, read.Heads)

	err = store.RefuseRemoved(t.Context(), s, "a/b")
	require.ErrorIs(t, err, store.ErrRemoved)
	require.EqualError(t, err, `removed: run "a/b" was removed on 2026-11-28 at 12:05 UTC with sweep "a" (memory:runs/a%2Fb/removed.json is what stays of it), and its id is not used again: use another one`)

	// The id of a sweep or an evaluation is used up for a run too.
	for kind, dir := range map[string]string{"sweep": store.SweepDir("s"), "evaluation": store.ApartDir("e")} {
		_, err := store.MarkRemoved(t.Context(), s, dir, store.Removed{Kind: kind, ID: kind[:1], At: at})
		require.NoError(t, err)
		err = store.RefuseRemoved(t.Context(), s, kind[:1])
		require.ErrorIs(t, err, store.ErrRemoved)
		require.ErrorContains(t, err, dir+"/removed.json")
	}
	require.NoError(t, s.Put(t.Context(), "runs/bad/removed.json", []byte("{"), store.PutOptions{}))
	require.ErrorIs(t, store.RefuseRemoved(t.Context(), s, "bad"), store.ErrInvalid)
}
