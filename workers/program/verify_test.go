package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/storetest"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// storedRun commits n iterations of a run, with a snapshot in the last one; the
// ones of tombstones are recorded in it too.
func storedRun(t *testing.T, s store.Store, run string, n int, tombstones ...store.Tombstone) []store.Link {
	t.Helper()
	ctx := context.Background()
	spec, err := store.Commit(ctx, s, store.SpecKey(run), []byte(`{}`))
	require.NoError(t, err)
	base, err := store.PutFolder(ctx, s, store.ModelPrefix, []store.FolderFile{{Name: "model.safetensors", Body: []byte("weights")}})
	require.NoError(t, err)
	var links []store.Link
	for i := range n {
		m := &store.Manifest{
			Run: run, Iteration: i, Spec: spec, Base: store.ModelRef{Name: "starter", Dir: base.Dir, Digest: base.Digest, Files: base.Files},
			Fingerprint: "cpu", StateBefore: fmt.Sprint("state-", i), StateAfter: fmt.Sprint("state-", i+1),
			Metrics: map[string]canon.Float{"reward/mean": 0.5},
		}
		m.Settings, m.SettingsDigest, err = store.NewSettings(map[string]any{})
		require.NoError(t, err)
		batch, err := store.PutArtifact(ctx, s, store.IterationDir(run, 0, i), "batch", "safetensors", fmt.Appendf(nil, "batch %d", i))
		require.NoError(t, err)
		m.Batch = &batch
		if i > 0 {
			m.Parent = &links[i-1].Ref
		}
		if i == n-1 {
			folder, err := store.PutFolder(ctx, s, store.SnapshotPrefix(run, 0, n), []store.FolderFile{{Name: "model.safetensors", Body: []byte("later weights")}})
			require.NoError(t, err)
			m.Snapshot = &store.SnapshotRef{Version: n, Dir: folder.Dir, Files: folder.Files, State: m.StateAfter}
			m.Tombstones = tombstones
		}
		ref, err := store.CommitManifest(ctx, s, m)
		require.NoError(t, err)
		links = append(links, store.Link{Ref: ref, Manifest: m})
	}
	return links
}

// overwrite puts other bytes where nothing is ever overwritten.
func overwrite(t *testing.T, s store.Store, key, body string) {
	t.Helper()
	require.NoError(t, s.Delete(context.Background(), key))
	require.NoError(t, s.Put(context.Background(), key, []byte(body), store.PutOptions{}))
}

// A branch says where it was opened, and why.
func TestVerifyPrintsBranches(t *testing.T) {
	opened, err := json.Marshal(activities.Opened{
		Branch: 0, Iteration: 7, Events: []collapse.Event{{Text: "the gradient norm is not finite"}}, Changes: []string{"update.learning_rate × 0.5: 0.00015"},
	})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, printReport(&out, store.Report{Run: "r", Branches: []store.BranchReport{
		{Branch: 0, First: 0, Last: 7, Head: store.Ref{Key: "head"}},
		{Branch: 1, First: 5, Last: 9, Parent: &store.Ref{Key: "runs/r/b0/iterations/000004/manifest.json"}, Opened: opened},
		{Branch: 2, First: 6, Last: 6, Parent: &store.Ref{Key: "runs/r/b1/iterations/000005/manifest.json"}, Opened: json.RawMessage(`{"branch":1,"iteration":9}`)},
	}, Reasons: map[string]int{"snapshots: retain 2": 16}}, "not compared"))
	require.Contains(t, out.String(), `branch 1: iterations 5 to 9
  from   runs/r/b0/iterations/000004/manifest.json
  opened behind iteration 7 of branch 0: the gradient norm is not finite
         update.learning_rate × 0.5: 0.00015
`)
	require.Contains(t, out.String(), "opened behind iteration 9 of branch 1: as asked\n")
	require.Contains(t, out.String(), "removed: 16 objects, as tombstones say (snapshots: retain 2); --json lists them\n")
}

func TestVerifyRun(t *testing.T) {
	const run = "run 1"
	batch := func(links []store.Link, i int) string { return links[i].Manifest.Batch.Key }
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, s store.Store, links []store.Link) (key string)
		kind   string // of the problem; empty if there is none
		want   []string
	}{
		{"sound", func(t *testing.T, s store.Store, links []store.Link) string { return links[2].Ref.Key }, "",
			[]string{"branch 0: iterations 0 to 2\n", "state  state-3\n", "3 manifests, 9 sound objects, ", "run 1 is sound"}},
		{"begun and not committed", func(t *testing.T, s store.Store, links []store.Link) string {
			_, err := store.PutArtifact(context.Background(), s, store.IterationDir(run, 0, 3), "batch", "safetensors", make([]byte, 1536))
			require.NoError(t, err)
			return links[2].Ref.Key
		}, "", []string{"begun and not committed: 3\n", "1 object, 1.5 KiB, that no manifest names (reprise gc 'run 1' lists them)"}},
		{"altered", func(t *testing.T, s store.Store, links []store.Link) string {
			overwrite(t, s, batch(links, 1), "botch 1")
			return batch(links, 1)
		}, store.ProblemAltered, []string{"altered: ", "(batch of ", "run 1 is damaged: 1 problem\n"}},
		{"missing", func(t *testing.T, s store.Store, links []store.Link) string {
			require.NoError(t, s.Delete(context.Background(), batch(links, 1)))
			return batch(links, 1)
		}, store.ProblemMissing, []string{"missing: "}},
		{"removed", func(t *testing.T, s store.Store, links []store.Link) string {
			require.NoError(t, s.Delete(context.Background(), batch(links, 0)))
			return batch(links, 0)
		}, "", []string{"removed: 1 object, as tombstones say ("}},
		{"the head's manifest", func(t *testing.T, s store.Store, links []store.Link) string {
			overwrite(t, s, links[2].Ref.Key, "{}")
			return links[2].Ref.Key
		}, store.ProblemInvalid, []string{"invalid: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := store.NewMemory()
			// The first batch's key is known beforehand, and a tombstone names it.
			body := []byte("batch 0")
			tomb := store.IterationDir(run, 0, 0) + "/batch." + canon.Digest(body)[:12] + ".safetensors"
			links := storedRun(t, s, run, 3, store.Tombstone{Key: tomb, Digest: canon.Digest(body), Reason: "test"})
			require.Equal(t, tomb, batch(links, 0))
			key := c.damage(t, s, links)

			var out, progress bytes.Buffer
			err := verifyRun(context.Background(), s, run, notReached, &out, &hashing{out: &progress}, false)
			var outJSON bytes.Buffer
			errJSON := verifyRun(context.Background(), s, run, notReached, &outJSON, newHashing(&progress), true)
			require.Equal(t, err, errJSON)
			if c.kind == "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, command.ErrSilent)
			}
			if c.name == "removed" {
				require.Contains(t, outJSON.String(), key)
			} else {
				require.Contains(t, out.String(), key)
			}
			for _, want := range c.want {
				require.Contains(t, out.String(), want)
			}
			var report struct {
				OK       bool
				Run      string
				Problems []store.Problem
				Orphans  []map[string]any
			}
			require.NoError(t, json.Unmarshal(outJSON.Bytes(), &report))
			require.Equal(t, c.kind == "", report.OK)
			require.Equal(t, run, report.Run)
			require.NotNil(t, report.Problems)
			if c.kind != "" {
				require.Equal(t, []string{c.kind, key}, []string{report.Problems[0].Kind, report.Problems[0].Key})
			}
			for _, o := range report.Orphans {
				require.Contains(t, o, "key")
			}
			require.Regexp(t, `hashed \d+ of \d+ objects, \d+ bytes? of \d+ bytes`, progress.String())
		})
	}

	err := verifyRun(context.Background(), store.NewMemory(), "nobody", notReached, new(bytes.Buffer), newHashing(new(bytes.Buffer)), false)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "nobody")
}

// serverRun is a run on a real S3 server that the environment names.
func serverRun(t *testing.T, run string) (*storetest.Server, []store.Link) {
	t.Helper()
	server := storetest.StartS3(t)
	for _, pair := range server.Env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	t.Setenv("REPRISE_S3_ENDPOINT", server.Endpoint)
	t.Setenv("REPRISE_S3_BUCKET", storetest.Bucket)
	t.Setenv("REPRISE_S3_PREFIX", "team/a")
	t.Setenv("REPRISE_S3_PATH_STYLE", "true")
	return server, storedRun(t, server.Store("team/a"), run, 3)
}

func TestVerifyAndGCCommands(t *testing.T) {
	server, links := serverRun(t, "bandit-1")
	out, stderr, err := execute(verifyCommand(), "", "bandit-1")
	require.NoError(t, err)
	require.Empty(t, stderr)
	require.Contains(t, out, "bandit-1 is sound")

	s := server.Store("team/a")
	orphan, err := store.PutArtifact(context.Background(), s, store.IterationDir("bandit-1", 0, 1), "batch", "safetensors", []byte("of a killed attempt"))
	require.NoError(t, err)
	out, _, err = execute(gcCommand(), "", "bandit-1")
	require.NoError(t, err)
	require.Contains(t, out, "0 objects")
	require.Contains(t, out, "kept: 1 younger than 24h0m0s")
	// The server's times are in whole seconds, so the orphan may seem a second younger.
	require.Eventually(t, func() bool {
		out, _, err = execute(gcCommand(), "", "bandit-1", "--grace", "0")
		return err == nil && strings.Contains(out, orphan.Key)
	}, time.Minute, 100*time.Millisecond)
	require.Contains(t, out, "nothing was deleted")
	out, _, err = execute(gcCommand(), "", "--grace", "0", "--delete")
	require.NoError(t, err)
	require.Contains(t, out, orphan.Key)
	require.Contains(t, out, "deleted\n")
	out, _, err = execute(gcCommand(), "", "--grace", "0", "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"run":"bandit-1","objects":[],"uploads":[],"bytes":0,"young":0,"pending":0,"deleted":false}`, out)

	path := server.Path("team/a/" + links[1].Manifest.Batch.Key)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[0] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o600))
	out, _, err = execute(verifyCommand(), "", "bandit-1")
	require.ErrorIs(t, err, command.ErrSilent)
	require.Contains(t, out, "altered: "+links[1].Manifest.Batch.Key)

	_, _, err = execute(verifyCommand(), "", "bandit-2")
	require.ErrorIs(t, err, store.ErrNotFound)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	_, _, err = execute(verifyCommand(), "", "bandit-1")
	require.ErrorIs(t, err, store.ErrDenied)
	require.NotContains(t, err.Error(), "wrong")
}

// An iteration that is not committed yet is refused before a device is opened.
func TestCommitted(t *testing.T) {
	s := store.NewMemory()
	storedRun(t, s, "run", 3)
	require.NoError(t, committed(t.Context(), s, "run", 2))
	err := committed(t.Context(), s, "run", 99)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, `iteration 99 of run "run" is not committed; the newest is 2 (3 of them, counted from 0)`)
	// A run that has begun and not committed is no wrong id.
	_, err = store.Verify(t.Context(), s, "nobody", nil)
	require.ErrorContains(t, err, "or the run has not committed yet: reprise watch nobody")
	// An artifact that is gone has a remedy.
	_, err = store.GetArtifact(t.Context(), s, store.Ref{Key: "runs/run/x." + strings.Repeat("0", 12) + ".json", Digest: strings.Repeat("0", 64), Size: 1})
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "restore the object from a copy and start the run again")
}

// notReached is a Temporal server that cannot be reached.
func notReached(context.Context) (store.Ref, error) {
	return store.Ref{}, errors.New("connection refused")
}

// A bucket that has lost the newest commit looks whole by itself: what the run's memo names has to be there.
func TestVerifyComparesWithTheMemo(t *testing.T) {
	s := store.NewMemory()
	links := storedRun(t, s, "r", 3)
	verify := func(newest func(context.Context) (store.Ref, error)) (string, error) {
		var out bytes.Buffer
		err := verifyRun(t.Context(), s, "r", newest, &out, newHashing(new(bytes.Buffer)), false)
		return out.String(), err
	}
	memo := func(context.Context) (store.Ref, error) { return links[2].Ref, nil }
	out, err := verify(memo)
	require.NoError(t, err)
	require.Contains(t, out, "the run's memo in Temporal names runs/r/b0/iterations/000002/manifest.json\n")
	out, err = verify(func(context.Context) (store.Ref, error) { return links[1].Ref, nil })
	require.NoError(t, err, "a commit may be newer than the memo")
	require.Contains(t, out, "is sound")

	require.NoError(t, s.Delete(t.Context(), links[2].Ref.Key))
	out, err = verify(notReached)
	require.NoError(t, err)
	require.Contains(t, out, "not compared with Temporal: connection refused\n")
	out, err = verify(memo)
	require.ErrorIs(t, err, command.ErrSilent)
	require.Contains(t, out, "missing: runs/r/b0/iterations/000002/manifest.json (newest manifest of the run's memo): ")
	require.Contains(t, out, "r is damaged: 1 problem")
	other := links[1].Ref
	other.Digest = strings.Repeat("0", 64)
	out, err = verify(func(context.Context) (store.Ref, error) { return other, nil })
	require.ErrorIs(t, err, command.ErrSilent)
	require.Contains(t, out, "altered: runs/r/b0/iterations/000001/manifest.json (newest manifest of the run's memo): ")
	_, err = verify(func(context.Context) (store.Ref, error) { return store.Ref{Key: "runs/r/x"}, nil })
	require.Error(t, err, "a memo that names nothing")
}
