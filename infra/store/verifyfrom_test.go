package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// A forked run is rebuilt from the other run's snapshot and updates, across as many runs
// as needed: they are verified with it.
func TestVerifyWhatAForkIsRebuiltFrom(t *testing.T) {
	ctx := context.Background()
	s := store.NewMemory()
	goOn := func(run string, from store.Chain, branch int) store.Chain {
		spec, err := store.Commit(ctx, s, store.SpecKey(run), []byte(`{"run":"`+run+`"}`))
		require.NoError(t, err)
		last := from[len(from)-1].Manifest.Iteration
		return append(from[:len(from):len(from)], addIteration(t, s, from, store.Manifest{Run: run, Branch: branch, Iteration: last + 1, Spec: spec}))
	}
	first := makeRun(t, s, "first", 7)
	second := goOn("second", first[:4], 0)
	child := goOn("child", second, 0)
	addIteration(t, s, child, store.Manifest{Run: "child", Iteration: 6})
	goOn("child", second, 1) // back to where it began
	good, err := store.Verify(ctx, s, "child", nil)
	require.NoError(t, err)
	require.True(t, good.OK(), "%v", good.Problems)
	require.Equal(t, 3, good.Manifests, "its own")
	require.Empty(t, good.Orphans)

	damaged := func(key string) []store.Problem {
		t.Helper()
		body, _, err := store.ReadFixed(ctx, s, key, 1<<20)
		require.NoError(t, err)
		bad := append([]byte(nil), body...)
		bad[len(bad)/2] ^= 1
		require.NoError(t, s.Put(ctx, key, bad, store.PutOptions{}))
		report, err := store.Verify(ctx, s, "child", nil)
		require.NoError(t, err)
		require.NoError(t, s.Delete(ctx, key))
		gone, err := store.Verify(ctx, s, "child", nil)
		require.NoError(t, err)
		require.NoError(t, s.Put(ctx, key, body, store.PutOptions{}))
		for _, p := range append(report.Problems, gone.Problems...) {
			require.Equal(t, key, p.Key)
		}
		return append(report.Problems, gone.Problems...)
	}
	// Version 5 of second, where child begins: first's snapshot of version 3, then
	// iteration 3 of first and iteration 4 of second.
	snapshot := first[2].Manifest.Snapshot
	needed := map[string]string{
		first[2].Ref.Key: "rebuild.manifest", first[3].Ref.Key: "rebuild.manifest",
		first[3].Manifest.Batch.Key: "rebuild.batch", first[3].Manifest.Spec.Key: "rebuild.spec",
		second[4].Manifest.Batch.Key: "rebuild.batch", second[4].Manifest.Spec.Key: "rebuild.spec",
	}
	for key, role := range needed {
		problems := damaged(key)
		require.Len(t, problems, 2, key)
		require.Equal(t, []string{store.ProblemAltered, store.ProblemMissing}, []string{problems[0].Kind, problems[1].Kind}, "%v", problems)
		require.Equal(t, role, problems[0].Role, key)
		require.NotEmpty(t, problems[0].NamedBy)
	}
	for name, ref := range snapshot.Files {
		problems := damaged(ref.Key)
		require.Len(t, problems, 1, "a snapshot that is gone is no loss: an older one will do")
		require.Equal(t, fmt.Sprintf("rebuild.snapshot.files[%q]", name), problems[0].Role)
	}
	require.NotEmpty(t, damaged(second[4].Ref.Key), "the parent itself")
	for _, other := range []string{first[1].Ref.Key, first[2].Manifest.Batch.Key, first[3].Manifest.Scores.Key, first[4].Ref.Key, first[4].Manifest.Batch.Key} {
		require.Empty(t, damaged(other), "not needed: %s", other)
	}

	// With the snapshot gone, it is rebuilt from the beginning.
	for _, ref := range snapshot.Files {
		require.NoError(t, s.Delete(ctx, ref.Key))
	}
	longer, err := store.Verify(ctx, s, "child", nil)
	require.NoError(t, err)
	require.True(t, longer.OK(), "%v", longer.Problems)
	require.Greater(t, longer.Objects, good.Objects)
	require.Len(t, damaged(first[0].Manifest.Batch.Key), 2)

	// Sound manifests that do not fit each other.
	broken := *first[4].Manifest
	broken.Run, broken.Branch, broken.StateBefore = "broken", 0, "another"
	ref, err := store.CommitManifest(ctx, s, &broken)
	require.NoError(t, err)
	goOn("of-broken", append(first[:4:4], store.Link{Ref: ref, Manifest: &broken}), 0)
	report, err := store.Verify(ctx, s, "of-broken", nil)
	require.NoError(t, err)
	require.Equal(t, []string{broken.Key()}, problemKeys(report))
	require.Equal(t, store.ProblemBroken, report.Problems[0].Kind)
}
