package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/storetest"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// makeRun writes a run as Train would: n iterations of branch 0, a snapshot every 3, an
// evaluation every 2.
func makeRun(t *testing.T, s store.Store, run string, n int) store.Chain {
	t.Helper()
	ctx := context.Background()
	spec, err := store.Commit(ctx, s, store.SpecKey(run), []byte(`{"run":"`+run+`"}`))
	require.NoError(t, err)
	base, err := store.PutFolder(ctx, s, store.ModelPrefix, []store.FolderFile{
		{Name: "config.json", Body: []byte("{}")}, {Name: "model.safetensors", Body: []byte("weights 0")},
	})
	require.NoError(t, err)
	var chain store.Chain
	for i := range n {
		chain = append(chain, addIteration(t, s, chain, store.Manifest{
			Run: run, Branch: 0, Iteration: i, Spec: spec,
			Base: store.ModelRef{Name: "starter", Dir: base.Dir, Digest: base.Digest, Files: base.Files, State: "state-0"},
		}))
	}
	return chain
}

func addIteration(t *testing.T, s store.Store, before store.Chain, m store.Manifest) store.Link {
	t.Helper()
	ctx := context.Background()
	dir := store.IterationDir(m.Run, m.Branch, m.Iteration)
	put := func(dir, name string) store.Ref {
		ref, err := tables.Put(ctx, s, dir, name, storetest.SampleRows(3+m.Iteration+10*m.Branch))
		require.NoError(t, err)
		return ref
	}
	body := func(name, ext string) *store.Ref {
		ref, err := store.PutArtifact(ctx, s, dir, name, ext, fmt.Appendf(nil, "%s of %d.%d", name, m.Branch, m.Iteration))
		require.NoError(t, err)
		return &ref
	}
	m.StateBefore, m.StateAfter = "state-0", fmt.Sprintf("state-%d.%d", m.Branch, m.Iteration+1)
	if len(before) > 0 {
		parent := before[len(before)-1]
		m.Parent, m.StateBefore = &parent.Ref, parent.Manifest.StateAfter
		m.Base = parent.Manifest.Base
		if m.Run == parent.Manifest.Run {
			m.Spec = parent.Manifest.Spec
		}
	}
	var err error
	m.Settings, m.SettingsDigest, err = store.NewSettings(map[string]any{"learning_rate": 3e-4})
	require.NoError(t, err)
	m.Fingerprint, m.Device = "cpu-1234", json.RawMessage(`{"plugin":"abc"}`)
	m.Programs = map[string]string{"update": "aa", "decode": "bb"}
	m.Turns = []store.TurnRefs{{Generate: put(dir, "turn-1.generate"), Step: put(dir, "turn-1.step")}}
	trajectories := put(dir, "trajectories")
	m.Trajectories, m.Scores, m.Batch = &trajectories, body("scores", "safetensors"), body("batch", "safetensors")
	m.Update = store.UpdateCounts{Steps: int64(m.Iteration + 1), Rows: 32, Tokens: 640, MicroBatches: 4}
	m.Metrics = map[string]canon.Float{"reward": 0.5, "loss": canon.Float(1e-3)}
	if (m.Iteration+1)%3 == 0 {
		folder, err := store.PutFolder(ctx, s, store.SnapshotPrefix(m.Run, m.Branch, m.Version()), []store.FolderFile{
			{Name: "model.safetensors", Body: []byte("weights " + m.StateAfter)}, {Name: "optimizer.safetensors", Body: []byte("moments " + m.StateAfter)},
		})
		require.NoError(t, err)
		m.Snapshot = &store.SnapshotRef{Version: m.Version(), Dir: folder.Dir, Files: folder.Files, State: m.StateAfter}
	}
	if (m.Iteration+1)%2 == 0 {
		tr := put(store.EvaluationDir(m.Run, m.Branch, m.Version()), "trajectories")
		m.Evaluations = []store.EvaluationRef{{Version: m.Version(), Trajectories: &tr, Metrics: map[string]canon.Float{"success": 0.75}}}
	}
	ref, err := store.CommitManifest(ctx, s, &m)
	require.NoError(t, err)
	stored, err := store.ReadManifest(ctx, s, ref)
	require.NoError(t, err)
	return store.Link{Ref: ref, Manifest: stored}
}

// fork opens branch 1 at the end of a chain.
func fork(t *testing.T, s store.Store, upTo store.Chain, n int) store.Chain {
	chain := append(store.Chain(nil), upTo...)
	for range n {
		last := chain[len(chain)-1].Manifest
		chain = append(chain, addIteration(t, s, chain, store.Manifest{Run: last.Run, Branch: 1, Iteration: last.Iteration + 1}))
	}
	return chain
}

func TestChain(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		_, err := store.Head(ctx, s, "run/1")
		require.ErrorIs(t, err, store.ErrNotFound)
		main := makeRun(t, s, "run/1", 7)
		head, err := store.Head(ctx, s, "run/1")
		require.NoError(t, err)
		require.Equal(t, main[6], head)

		// An iteration that was begun does not change the head.
		_, err = store.PutArtifact(ctx, s, store.IterationDir("run/1", 0, 7), "turn-1.generate", "parquet", []byte("x"))
		require.NoError(t, err)
		head, err = store.Head(ctx, s, "run/1")
		require.NoError(t, err)
		require.Equal(t, 6, head.Manifest.Iteration)

		chain, err := store.LoadChain(ctx, s, head.Ref)
		require.NoError(t, err)
		require.Equal(t, main, chain)
		require.Equal(t, 7, chain.Version())

		branch := fork(t, s, main[:5], 3)
		head, err = store.Head(ctx, s, "run/1")
		require.NoError(t, err)
		require.Equal(t, 1, head.Manifest.Branch)
		chain, err = store.LoadChain(ctx, s, head.Ref)
		require.NoError(t, err)
		require.Equal(t, branch, chain)
		require.Len(t, chain, 8)

		for _, c := range []struct{ version, snapshot, again int }{{2, 0, 2}, {3, 3, 0}, {5, 3, 2}, {6, 6, 0}, {8, 6, 2}} {
			got, err := store.FindRebuild(ctx, s, chain[c.version-1].Ref, nil)
			require.NoError(t, err)
			require.Equal(t, c.version, got.Head.Version())
			require.Len(t, got.Again, c.again)
			if c.snapshot == 0 {
				require.Nil(t, got.Snapshot)
			} else {
				require.Equal(t, c.snapshot, got.Snapshot.Version)
			}
			for i, link := range got.Again {
				require.Equal(t, c.snapshot+i, link.Manifest.Iteration)
			}
		}

		// A chain whose links do not fit is refused.
		bad := *main[6].Manifest
		bad.StateBefore = "another"
		bad.Snapshot, bad.Iteration = nil, 7
		bad.Parent = &main[6].Ref
		ref, err := store.CommitManifest(ctx, s, &bad)
		require.NoError(t, err)
		_, err = store.LoadChain(ctx, s, ref)
		require.ErrorIs(t, err, store.ErrBroken)
	})
}

func TestTombstones(t *testing.T) {
	ctx := context.Background()
	s := store.NewMemory()
	chain := makeRun(t, s, "r", 7)
	snapshot := chain[5].Manifest.Snapshot
	var tombs []store.Tombstone
	for _, ref := range snapshot.Files {
		tombs = append(tombs, store.Tombstone{Key: ref.Key, Digest: ref.Digest, Reason: "snapshots: keep 1"})
		require.NoError(t, s.Delete(ctx, ref.Key))
	}
	report, err := store.Verify(ctx, s, "r", nil)
	require.NoError(t, err)
	require.Len(t, report.Problems, 2)
	require.Equal(t, store.ProblemMissing, report.Problems[0].Kind)

	chain = append(chain, addIteration(t, s, chain, store.Manifest{Run: "r", Iteration: 7, Tombstones: tombs}))
	report, err = store.Verify(ctx, s, "r", nil)
	require.NoError(t, err)
	require.True(t, report.OK(), "%v", report.Problems)
	require.Len(t, report.Removed, 2)
	kept, err := store.KeptSnapshots(ctx, s, chain[7].Ref)
	require.NoError(t, err)
	require.Empty(t, kept, "the walk ends at one that is gone")
	kept, err = store.KeptSnapshots(ctx, s, chain[6].Ref)
	require.NoError(t, err)
	require.Len(t, kept, 2)
	// The tombstone is in iteration 7; one who went back to before it finds the file
	// gone all the same.
	for _, head := range []int{7, 6} {
		got, err := store.FindRebuild(ctx, s, chain[head].Ref, nil)
		require.NoError(t, err)
		require.Equal(t, 3, got.Snapshot.Version)
		require.Len(t, got.Again, head+1-3)
	}
}

func TestVerify(t *testing.T) {
	srv := storetest.StartS3(t)
	s := srv.Store("p")
	ctx := context.Background()
	main := makeRun(t, s, "run", 4)
	branch := fork(t, s, main[:2], 2)
	orphan, err := store.PutArtifact(ctx, s, store.IterationDir("run", 0, 4), "turn-1.generate", "parquet", []byte("orphan"))
	require.NoError(t, err)
	require.NoError(t, s.Put(ctx, store.TelemetryDir("run")+"/x.json", []byte("{}"), store.PutOptions{}))

	_, err = store.Verify(ctx, s, "nobody", nil)
	require.ErrorIs(t, err, store.ErrNotFound)
	calls := 0
	good, err := store.Verify(ctx, s, "run", func(done, total int, bytes, all int64) { calls++; require.LessOrEqual(t, done, total) })
	require.NoError(t, err)
	require.True(t, good.OK(), "%v", good.Problems)
	require.Equal(t, 6, good.Manifests)
	require.Equal(t, good.Objects-6, calls)
	require.Equal(t, []store.BranchReport{
		{Branch: 0, First: 0, Last: 3, Head: main[3].Ref, State: "state-0.4", Uncommitted: []int{4}},
		{Branch: 1, First: 2, Last: 3, Parent: &main[1].Ref, Head: branch[3].Ref, State: "state-1.4"},
	}, good.Branches)
	require.Len(t, good.Orphans, 1)
	require.Equal(t, orphan.Key, good.Orphans[0].Key)
	again, err := store.Verify(ctx, s, "run", nil)
	require.NoError(t, err)
	require.Equal(t, good, again)

	// One flipped byte in any object, or the object gone: found by name.
	seen := map[string]bool{}
	for _, link := range append(main, branch[2:]...) {
		for _, named := range append(link.Manifest.Refs(), store.NamedRef{Role: "manifest", Ref: link.Ref}) {
			if seen[named.Key] {
				continue
			}
			seen[named.Key] = true
			path := srv.Path("p/" + named.Key)
			body, err := os.ReadFile(path)
			require.NoError(t, err)
			bad := append([]byte(nil), body...)
			bad[len(bad)/2] ^= 1
			require.NoError(t, os.WriteFile(path, bad, 0o644))
			report, err := store.Verify(ctx, s, "run", nil)
			require.NoError(t, err)
			require.Contains(t, problemKeys(report), named.Key, "flipped byte")
			for _, p := range report.Problems {
				require.Contains(t, []string{store.ProblemAltered, store.ProblemInvalid}, p.Kind, "%s", p)
				require.Equal(t, named.Key, p.Key)
			}
			require.NoError(t, os.WriteFile(path, body, 0o644))
		}
	}
	require.Equal(t, good.Objects, len(seen), "every object that was hashed was damaged once")
	for _, key := range []string{main[2].Ref.Key, main[0].Ref.Key, main[2].Manifest.Batch.Key, main[0].Manifest.Spec.Key, main[0].Manifest.Base.Files["config.json"].Key} {
		body, _, err := store.ReadFixed(ctx, s, key, 1<<20)
		require.NoError(t, err)
		require.NoError(t, s.Delete(ctx, key))
		report, err := store.Verify(ctx, s, "run", nil)
		require.NoError(t, err)
		require.Equal(t, []string{key}, problemKeys(report), "missing")
		require.Equal(t, store.ProblemMissing, report.Problems[0].Kind)
		require.NoError(t, s.Put(ctx, key, body, store.PutOptions{}))
	}

	// A manifest replaced by a sound one of other contents is altered to its child.
	other := *main[2].Manifest
	other.Metrics = map[string]canon.Float{"reward": 1}
	text, err := other.Encode()
	require.NoError(t, err)
	require.NoError(t, s.Put(ctx, other.Key(), text, store.PutOptions{}))
	report, err := store.Verify(ctx, s, "run", nil)
	require.NoError(t, err)
	require.Equal(t, []string{other.Key()}, problemKeys(report))
	require.Equal(t, store.ProblemAltered, report.Problems[0].Kind)
	require.Contains(t, report.Problems[0].String(), main[3].Ref.Key)

	srv.Kill()
	_, err = store.Verify(ctx, s, "run", nil)
	require.ErrorIs(t, err, store.ErrUnavailable)
}

func problemKeys(r store.Report) (out []string) {
	for _, p := range r.Problems {
		if len(out) == 0 || out[len(out)-1] != p.Key {
			out = append(out, p.Key)
		}
	}
	return out
}

func TestGarbage(t *testing.T) {
	ctx := context.Background()
	s := store.NewMemory()
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	s.SetTime(now.Add(-48 * time.Hour))
	chain := makeRun(t, s, "run", 4)
	makeRun(t, s, "run-2", 2)
	put := func(dir, name string) string {
		ref, err := store.PutArtifact(ctx, s, dir, name, "bin", []byte("garbage"))
		require.NoError(t, err)
		return ref.Key
	}
	old := put(store.IterationDir("run", 0, 1), "attempt")
	oldSnapshot := put(store.BranchDir("run", 0)+"/snapshots/000002.abcdefabcdef", "model")
	underWay := put(store.IterationDir("run", 0, 4), "turn-1.generate")
	nextSnapshot := put(store.BranchDir("run", 0)+"/snapshots/000005.abcdefabcdef", "model")
	put(store.TelemetryDir("run"), "attempts")
	put(store.ReportDir("run"), "index")
	put(store.IterationDir("run-2", 0, 0), "attempt")
	s.SetTime(now.Add(-time.Hour))
	put(store.IterationDir("run", 0, 1), "younger")
	s.AddUpload(store.Upload{Key: store.BranchDir("run", 0) + "/snapshots/000003.x/model", ID: "1", Started: now.Add(-30 * time.Hour)})
	s.AddUpload(store.Upload{Key: store.BranchDir("run", 0) + "/snapshots/000003.x/model", ID: "2", Started: now.Add(-time.Hour)})

	found := func(opts store.GarbageOptions) (store.Garbage, []string) {
		opts.Now = now
		g, err := store.FindGarbage(ctx, s, "run", opts)
		require.NoError(t, err)
		var keys []string
		for _, o := range g.Objects {
			keys = append(keys, o.Key)
		}
		return g, keys
	}
	g, got := found(store.GarbageOptions{})
	require.Equal(t, []string{old, oldSnapshot}, got)
	require.EqualValues(t, 14, g.Bytes)
	require.Equal(t, 2, g.Pending)
	require.Equal(t, 2, g.Young)
	require.Len(t, g.Uploads, 1)
	require.Equal(t, "1", g.Uploads[0].ID)
	all, got := found(store.GarbageOptions{Ended: true})
	require.Equal(t, []string{old, underWay, oldSnapshot, nextSnapshot}, got)
	_, got = found(store.GarbageOptions{Grace: -1})
	require.Len(t, got, 3)

	// Looking deletes nothing; deleting leaves a run that verifies.
	require.NoError(t, store.DeleteGarbage(ctx, s, all))
	require.NoError(t, store.DeleteGarbage(ctx, s, all))
	report, err := store.Verify(ctx, s, "run", nil)
	require.NoError(t, err)
	require.True(t, report.OK())
	require.Len(t, report.Orphans, 1, "the younger one")
	report, err = store.Verify(ctx, s, "run-2", nil)
	require.NoError(t, err)
	require.Len(t, report.Orphans, 1, "another run's orphans are untouched")

	// A run that has only begun is all under way.
	put(store.IterationDir("fresh", 0, 0), "turn-1.generate")
	fresh, err := store.FindGarbage(ctx, s, "fresh", store.GarbageOptions{Grace: -1, Now: now.Add(time.Hour)})
	require.NoError(t, err)
	require.Empty(t, fresh.Objects)
	require.Equal(t, 1, fresh.Pending)

	// Damage is no time to collect.
	require.NoError(t, s.Put(ctx, chain[3].Ref.Key, []byte("{}"), store.PutOptions{}))
	_, err = store.FindGarbage(ctx, s, "run", store.GarbageOptions{Now: now})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.NoError(t, s.Delete(ctx, chain[3].Ref.Key))
	require.NoError(t, s.Delete(ctx, chain[1].Ref.Key))
	_, err = store.FindGarbage(ctx, s, "run", store.GarbageOptions{Now: now})
	require.ErrorIs(t, err, store.ErrInvalid)
}

// A run that began at another one's iteration keeps its own snapshots: those of the other run are not its to remove.
func TestKeptSnapshotsAreTheRunsOwn(t *testing.T) {
	ctx, s := t.Context(), store.NewMemory()
	chain := makeRun(t, s, "first", 7)
	spec, err := store.Commit(ctx, s, store.SpecKey("second"), []byte(`{"run":"second"}`))
	require.NoError(t, err)
	for n := 7; n < 12; n++ {
		chain = append(chain, addIteration(t, s, chain, store.Manifest{Run: "second", Iteration: n, Spec: spec}))
	}
	for last, want := range map[int][]int{6: {6, 3}, 7: nil, 8: {9}, 11: {12, 9}} {
		kept, err := store.KeptSnapshots(ctx, s, chain[last].Ref)
		require.NoError(t, err)
		var versions []int
		for _, snapshot := range kept {
			versions = append(versions, snapshot.Version)
		}
		require.Equal(t, want, versions, "after iteration %d", last)
	}
}
