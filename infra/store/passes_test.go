package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// inPasses gives a manifest two passes instead of one batch.
func inPasses(t *testing.T, s store.Store, m *store.Manifest) {
	put := func(name string) store.Ref {
		ref, err := store.PutArtifact(t.Context(), s, "runs/p/b0/iterations/000001", name, "bin", []byte(name))
		require.NoError(t, err)
		return ref
	}
	scores, corrections := put("scores-1"), put("corrections")
	m.Passes = []store.Pass{
		{Turn: 2, Batch: *m.Batch, State: "between"},
		{Turn: 1, Batch: put("batch-1"), Scores: &scores, Corrections: &corrections, State: m.StateAfter},
	}
	m.Batch = nil
}

// A manifest has one batch, or passes that end in its state.
func TestManifestOfPasses(t *testing.T) {
	s := store.NewMemory()
	chain := makeRun(t, s, "p", 2)
	one := *chain[1].Manifest
	require.Equal(t, []store.Pass{{Batch: *one.Batch, State: one.StateAfter}}, one.Updates())
	m := one
	inPasses(t, s, &m)
	require.Equal(t, m.Passes, m.Updates())
	b, err := m.Encode()
	require.NoError(t, err)
	again, err := store.DecodeManifest(b)
	require.NoError(t, err)
	require.Equal(t, m.Passes, again.Passes)
	var roles []string
	for _, r := range again.Refs() {
		roles = append(roles, r.Role)
	}
	require.Subset(t, roles, []string{"passes[0].batch", "passes[1].batch", "passes[1].scores", "passes[1].corrections"})
	for name, change := range map[string]func(*store.Manifest){
		"a batch too":        func(m *store.Manifest) { m.Batch = one.Batch },
		"another last state": func(m *store.Manifest) { m.Passes[1].State = "other" },
		"no state between":   func(m *store.Manifest) { m.Passes[0].State = "" },
		"a bad ref":          func(m *store.Manifest) { m.Passes[1].Corrections = &store.Ref{Key: "../x"} },
	} {
		t.Run(name, func(t *testing.T) {
			bad := one
			inPasses(t, s, &bad)
			change(&bad)
			_, err := bad.Encode()
			require.ErrorIs(t, err, store.ErrInvalid)
		})
	}
}

// Verify reads everything that passes name, also where another run is rebuilt from them.
func TestVerifyPasses(t *testing.T) {
	s := store.NewMemory()
	chain := makeRun(t, s, "p", 2)
	m := *chain[1].Manifest
	inPasses(t, s, &m)
	require.NoError(t, s.Delete(t.Context(), m.Key()))
	ref, err := store.CommitManifest(t.Context(), s, &m)
	require.NoError(t, err)
	stored, err := store.ReadManifest(t.Context(), s, ref)
	require.NoError(t, err)
	addIteration(t, s, store.Chain{chain[0], {Ref: ref, Manifest: stored}}, store.Manifest{Run: "forked", Iteration: 2, Spec: m.Spec})
	damaged := func(run string) map[string]bool {
		report, err := store.Verify(t.Context(), s, run, nil)
		require.NoError(t, err)
		out := map[string]bool{}
		for _, p := range report.Problems {
			out[p.Key] = true
		}
		return out
	}
	require.Empty(t, damaged("p"))
	require.Empty(t, damaged("forked"))
	last := m.Passes[1]
	for _, r := range []store.Ref{last.Batch, *last.Scores, *last.Corrections} {
		require.NoError(t, s.Put(t.Context(), r.Key, []byte("altered"), store.PutOptions{}))
	}
	require.Equal(t, map[string]bool{last.Batch.Key: true, last.Scores.Key: true, last.Corrections.Key: true}, damaged("p"))
	require.Equal(t, map[string]bool{last.Batch.Key: true}, damaged("forked"), "it is rebuilt from the batches alone")
}
