package device

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// cachedWorker is a device worker with a cache of programs, and how often it has sampled.
type cachedWorker struct {
	*testRun
	e       *Engine
	sampled int
}

// cached starts a worker of a process of its own on a folder of programs.
func cached(t *testing.T, r *testRun, dir string) *cachedWorker { return sharing(t, r, dir, nil) }

// sharing starts one that shares programs through a bucket as well.
func sharing(t *testing.T, r *testRun, dir string, shared *programcache.Shared) *cachedWorker {
	t.Helper()
	w := &cachedWorker{testRun: r, e: opened(t, model.DeviceOptions{ProgramCache: dir, Shared: shared, Warn: func(problem string) { t.Log(problem) }})}
	w.e.trusted = false
	w.e.device.Before = func(program string) error {
		if program == "decode" {
			w.sampled++
		}
		return nil
	}
	return w
}

func (w *cachedWorker) restore(t *testing.T) (activities.RestoreResult, error) {
	t.Helper()
	d := &Device{Store: w.store, Engine: w.e}
	return d.Restore(t.Context(), activities.RestoreInput{Version: activities.Version{Run: w.Run}})
}

// A worker that finds a run's programs in the cache restores the same state with the same
// programs, does not test itself where the record says that it has passed, and reports where
// the programs came from.
func TestRestoreWithCachedPrograms(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "programs")
	r := resolved(t, "cached", tinySpec(t, "rollout.max_new_tokens=10"))
	var results [2]activities.RestoreResult
	for i, tests := range []int{2, 0} {
		w := cached(t, r, dir)
		var err error
		results[i], err = w.restore(t)
		require.NoError(t, err)
		require.Equal(t, tests, w.sampled, "a self-test generates twice")
	}
	first, second := results[0], results[1]
	require.Equal(t, first.State, second.State)
	require.Equal(t, first.Programs, second.Programs)
	n := first.Telemetry.CompiledPrograms
	require.GreaterOrEqual(t, n, 6)
	require.Zero(t, first.Telemetry.CachedPrograms)
	require.Zero(t, second.Telemetry.CompiledPrograms)
	require.Equal(t, n, second.Telemetry.CachedPrograms)
	require.Positive(t, second.Telemetry.CachedSeconds)
	for _, r := range results {
		took := r.Telemetry
		require.Positive(t, took.LowerSeconds)
		require.Positive(t, took.SelfTestSeconds, "looking for the record takes time too")
		require.Less(t, took.LowerSeconds+took.CachedSeconds+took.SelfTestSeconds, took.CompileSeconds)
		require.Zero(t, took.CacheFaults)
		require.Positive(t, took.UploadSeconds)
		require.Positive(t, took.FingerprintSeconds)
		t.Logf("programs %.2f s: lowered in %.2f s, from the cache in %.2f s, tested in %.2f s",
			took.CompileSeconds, took.LowerSeconds, took.CachedSeconds, took.SelfTestSeconds)
	}
}

// Without a record, or with a damaged one, the device is tested. A device that differs is
// refused and leaves no record.
func TestSelfTestRecords(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "programs")
	r := resolved(t, "recorded", tinySpec(t, `credit.algorithm="gae"`, "rollout.max_new_tokens=10"))
	records := func() []string {
		files, err := filepath.Glob(filepath.Join(dir, "*.record"))
		require.NoError(t, err)
		return files
	}
	differs := func(at int) {
		w := cached(t, r, dir)
		asked := 0
		w.e.Differ = func(context.Context) bool { asked++; return asked == at }
		_, err := w.restore(t)
		require.ErrorContains(t, err, "does not repeat its bits")
		require.Equal(t, activities.KindDeviceFailed, run.KindOf(err))
	}
	passes := func(tests int) {
		w := cached(t, r, dir)
		_, err := w.restore(t)
		require.NoError(t, err)
		require.Equal(t, tests, w.sampled)
	}
	differs(1)
	differs(2)
	require.Empty(t, records())
	differs(3) // in the critic's update, after the policy's
	require.Len(t, records(), 1)
	passes(0)
	require.Len(t, records(), 2, "one of the policy's programs, one of the critic's")
	passes(0)
	for _, file := range records() {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(content), selfTestName)
		require.Contains(t, string(content), "backward")
		require.NoError(t, os.WriteFile(file, content[1:], 0o600))
	}
	differs(1)
	passes(2)
	require.Len(t, records(), 2)
}

// signingKey is a new private key.
func signingKey(t *testing.T) *programcache.SigningKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	k, err := programcache.LoadSigningKey(path)
	require.NoError(t, err)
	return k
}

// A worker whose folder is empty restores the same state by the programs that another one has put into the bucket. It does not test
// itself where the bucket has the record that this machine has passed. By another key it compiles and tests.
func TestRestoreWithProgramsOfABucket(t *testing.T) {
	t.Parallel()
	r, bucket := resolved(t, "shared", tinySpec(t, "rollout.max_new_tokens=10")), store.NewMemory()
	key := signingKey(t)
	restored := func(key *programcache.SigningKey, tests int) activities.RestoreResult {
		t.Helper()
		shared := programcache.NewShared(bucket, key)
		w := sharing(t, r, filepath.Join(t.TempDir(), "programs"), shared)
		result, err := w.restore(t)
		require.NoError(t, err)
		shared.Wait()
		require.Equal(t, tests, w.sampled)
		took := result.Telemetry
		require.Zero(t, took.CacheFaults)
		t.Logf("programs %.2f s: compiled %d, from the bucket %d in %.2f s, tested in %.2f s",
			took.CompileSeconds, took.CompiledPrograms, took.CachedPrograms, took.CachedSeconds, took.SelfTestSeconds)
		return result
	}
	first := restored(key, 2)
	n := first.Telemetry.CompiledPrograms
	require.GreaterOrEqual(t, n, 6)
	require.Len(t, bucket.Own(), n+1, "the programs, and the record")
	second := restored(key, 0)
	require.Equal(t, first.State, second.State)
	require.Equal(t, first.Programs, second.Programs)
	require.Zero(t, second.Telemetry.CompiledPrograms)
	require.Equal(t, n, second.Telemetry.CachedPrograms)
	stranger := restored(signingKey(t), 2)
	require.Equal(t, first.State, stranger.State)
	require.Equal(t, n, stranger.Telemetry.CompiledPrograms)
}
