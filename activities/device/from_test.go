package device

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// fork is a run in the same store that is forked from another's iteration.
func (r *testRun) fork(t *testing.T, id string, edits ...string) *testRun {
	t.Helper()
	out := &testRun{store: r.store, Host: r.Host, Device: r.Device}
	got, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: id, Spec: tinySpec(t, edits...)})
	require.NoError(t, err)
	require.NotNil(t, got.From)
	require.False(t, got.Plan.Prepare)
	out.Run, out.Plan = activities.Run{ID: id, Spec: got.Spec, Base: *got.Base}, got.Plan
	out.head, out.state = &got.From.Manifest, got.From.State
	out.commits = make([]activities.CommitInput, got.Plan.First) // another's
	restored := r.forkRestore(t, out)
	require.Equal(t, out.state, restored.State)
	out.programs = restored.Programs
	return out
}

func (r *testRun) forkRestore(t *testing.T, of *testRun) activities.RestoreResult {
	t.Helper()
	got, err := r.Device.Restore(t.Context(), activities.RestoreInput{Version: of.version(), Head: of.head})
	require.NoError(t, err)
	return got
}

// A run is forked from another's iteration with other settings and other shapes; the
// other's updates are computed again with the other's spec.
func TestFrom(t *testing.T) {
	t.Parallel()
	source := begun(t, "source", tinySpec(t, "iterations=3", "snapshot.every=5", "evaluation.every=0", `credit.algorithm="gae"`))
	for range 3 {
		source.iterate(t)
	}
	edits := []string{
		"iterations=5", "snapshot.every=5", "evaluation.every=0", `credit.algorithm="gae"`, `from={"run":"source","iteration":1}`,
		"update.learning_rate=0.001", "update.micro_batch=2", "update.epochs=2", "seed=9",
	}
	r := source.fork(t, "fork", edits...)
	require.Equal(t, source.commits[1].StateAfter, r.state)
	third := r.iterateFork(t)
	require.Equal(t, 2, third.Iteration)
	require.Equal(t, source.commits[2].Parent, third.Parent, "the two share a parent")
	require.NotEqual(t, source.commits[2].StateAfter, third.StateAfter)
	r.iterateFork(t)

	r.forget(t)
	got := r.forkRestore(t, r)
	require.Equal(t, r.state, got.State)
	require.Equal(t, 4, got.Telemetry.Recomputed, "two of the other run, two of its own")
	read := &recording{Store: r.store, opened: map[string]bool{r.Run.Base.Key: true}}
	report, err := store.Verify(t.Context(), read, "fork", nil)
	require.NoError(t, err)
	require.True(t, report.OK(), "%v", report.Problems)
	// The verified objects are all that a rebuild needs, except for the list of the base
	// model's files, which is made from a manifest.
	r.forget(t)
	sound := &Device{Store: read.copied(t), Engine: r.Device.Engine}
	got, err = sound.Restore(t.Context(), activities.RestoreInput{Version: r.version(), Head: r.head})
	require.NoError(t, err)
	require.Equal(t, r.state, got.State)
	require.Equal(t, 4, got.Telemetry.Recomputed)
	require.Contains(t, report.Branches[0].Parent.Key, "runs/source/")
	head, err := run.FindHead(t.Context(), r.Host.Store, "fork", nil)
	require.NoError(t, err)
	require.Equal(t, 3, head.Iteration)
	again, err := r.Host.Resolve(t.Context(), activities.ResolveInput{Run: "fork", Spec: tinySpec(t, edits...)})
	require.NoError(t, err)
	require.Nil(t, again.From)
	require.Equal(t, 3, again.Head.Iteration, "it goes on behind its own")
	batches, err := run.RecentBatches(t.Context(), r.store, r.Run.ID, r.head, 9)
	require.NoError(t, err)
	require.Len(t, batches, 2, "of its own")
	batches, err = run.RecentBatches(t.Context(), r.store, r.Run.ID, source.head, 9)
	require.NoError(t, err)
	require.Empty(t, batches, "none are of its own")

	for name, c := range map[string]struct {
		edits []string
		says  string
	}{
		"no run":         {[]string{`from={"run":"nobody","iteration":1}`}, `iteration 1 of run "nobody" is not committed`},
		"no iteration":   {[]string{`from={"run":"source","iteration":3}`}, "version 4 of run source is not committed"},
		"no branch":      {[]string{`from={"run":"source","iteration":1,"branch":2}`}, `iteration 1 of run "source" is not committed`},
		"another policy": {[]string{"policy.starter.layers=2"}, "policy.starter.layers: found 2; allowed: 1 (run source has it"},
		"no critic":      {[]string{`credit.algorithm="grpo"`}, "credit.algorithm: found grpo"},
	} {
		_, err := source.Host.Resolve(t.Context(), activities.ResolveInput{Run: "bad", Spec: tinySpec(t, append(edits[:len(edits):len(edits)], c.edits...)...)})
		require.Error(t, err, name)
		require.True(t, strings.Contains(err.Error(), c.says) || name == "no iteration" && strings.Contains(err.Error(), "is not committed"), "%s: %v", name, err)
		require.NotEmpty(t, run.KindOf(err), name)
	}
}

// Retention leaves the snapshot that a fork begins with, and the manifests say the same as without a fork.
func TestForkKeepsItsSnapshot(t *testing.T) {
	t.Parallel()
	edits := []string{"iterations=4", "snapshot.every=1", "snapshot.retain=1", "evaluation.every=0"}
	alone := begun(t, "source", tinySpec(t, edits...))
	for range 3 {
		alone.iterate(t)
	}
	snapshot := func(r *testRun, n int) bool {
		t.Helper()
		_, err := r.store.Stat(t.Context(), r.commits[n].Snapshot.Files["model.safetensors"].Key)
		if err != nil {
			require.ErrorIs(t, err, store.ErrNotFound)
		}
		return err == nil
	}
	source := begun(t, "source", tinySpec(t, edits...))
	source.iterate(t)
	fork := source.fork(t, "fork", append([]string{`from={"run":"source","iteration":0}`, "seed=9"}, edits...)...)
	source.restore(t, activities.RestoreInput{Version: source.version(), Head: source.head})
	for range 2 {
		source.iterate(t)
	}
	require.Equal(t, *alone.head, *source.head, "the same bytes with a fork and without")
	require.Equal(t, []bool{false, false, true}, []bool{snapshot(alone, 0), snapshot(alone, 1), snapshot(alone, 2)})
	require.Equal(t, []bool{true, false, true}, []bool{snapshot(source, 0), snapshot(source, 1), snapshot(source, 2)})
	source.forget(t)
	require.Zero(t, source.forkRestore(t, fork).Telemetry.Recomputed, "nothing is rebuilt from batches")
	report, err := store.Verify(t.Context(), source.store, "source", nil)
	require.NoError(t, err)
	require.True(t, report.OK(), "%v", report.Problems)

	kept, err := store.KeptForForks(t.Context(), source.store, "source")
	require.NoError(t, err)
	require.Equal(t, map[string]bool{source.commits[0].Snapshot.Dir: true}, kept)
	// A retried commit deletes no more, until the fork is removed.
	retry := func() {
		_, err := source.Host.Commit(t.Context(), source.commits[1])
		require.NoError(t, err)
	}
	retry()
	require.True(t, snapshot(source, 0))
	require.NoError(t, source.store.Put(t.Context(), store.ForksDir("source")+"/damaged.json", []byte("{"), store.PutOptions{}))
	_, err = store.MarkRemoved(t.Context(), source.store, store.RunDir("fork"), store.Removed{Kind: "run", ID: "fork"})
	require.NoError(t, err)
	retry()
	require.False(t, snapshot(source, 0))
}

// recording is a store that remembers which objects were read.
type recording struct {
	store.Store
	mu     sync.Mutex
	opened map[string]bool
}

func (r *recording) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	r.mu.Lock()
	r.opened[key] = true
	r.mu.Unlock()
	return r.Store.Open(ctx, key, offset)
}

// copied is a store of those objects alone.
func (r *recording) copied(t *testing.T) *store.Memory {
	t.Helper()
	out := store.NewMemory()
	for key := range r.opened {
		body, _, err := store.ReadFixed(t.Context(), r.Store, key, 1<<30)
		require.NoError(t, err)
		require.NoError(t, out.Put(t.Context(), key, body, store.PutOptions{}))
	}
	return out
}

// iterateFork is iterate for the first iterations of a fork, which has no commits of
// its own before them.
func (r *testRun) iterateFork(t *testing.T) activities.CommitInput {
	t.Helper()
	it := r.iteration()
	if last := r.commits[len(r.commits)-1]; last.Run.ID == "" {
		it.Before, it.Previous, it.Tables, it.Rolled = activities.Detected{}, nil, nil, nil
	}
	in, err := r.Iterate(t.Context(), it)
	require.NoError(t, err)
	r.commit(t, in)
	return in
}
