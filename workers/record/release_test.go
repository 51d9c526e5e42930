package record

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows"
)

var recordRelease = flag.String("release", "", "record half a run of this release, such as v0.1.0")

const (
	releases = "../../workflows/testdata/releases"
	// halfway is the iteration whose commit ends a recording.
	halfway = 5
	// checkpoint makes an SQLite database one file.
	checkpoint = `
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute("PRAGMA wal_checkpoint(TRUNCATE)")
c.execute("VACUUM")
`
)

// release is half a run of a release, and its end. Beside it are temporal.db.gz, the
// database of the Temporal server that was stopped, and bucket.tar.gz, the objects.
type release struct {
	Run        string `json:"run"`
	Commit     string `json:"commit"`
	Numerics   int    `json:"numerics"`
	Committed  int    `json:"committed"`  // iterations
	Iterations int    `json:"iterations"` // of the whole run
	// Machine is the fingerprint of the device that began the run. State and Manifest are its
	// end there: the state's fingerprint and the manifest's digest.
	Machine  string `json:"machine"`
	State    string `json:"state"`
	Manifest string `json:"manifest"`
}

// The present build finishes the half-done runs of the releases: where a run began, with the
// recorded end; elsewhere, or after Numerics was raised, through adopt-programs.
func TestReleases(t *testing.T) {
	if *recordRelease != "" {
		record := &recorder{}
		record.release(t, *recordRelease)
	}
	folders, err := filepath.Glob(filepath.Join(releases, "*"))
	require.NoError(t, err)
	for _, folder := range folders {
		version := filepath.Base(folder)
		of := readRelease(t, version)
		t.Run(version+"/resumes", func(t *testing.T) {
			here := fingerprint(t)
			if here != of.Machine {
				t.Skipf("the run began on %s, this is %s: it can only adopt", of.Machine, here)
			}
			head := finish(t, unpackedDatabase(t, version), version, of, false)
			require.Equal(t, of.State, head.Manifest.StateAfter)
			require.Equal(t, of.Manifest, head.Ref.Digest)
			require.Zero(t, head.Manifest.Branch)
		})
		t.Run(version+"/adopts", func(t *testing.T) {
			head := finish(t, unpackedDatabase(t, version), version, of, true)
			require.Equal(t, 1, head.Manifest.Branch)
		})
	}
}

// finish lets the present build end the run of a release. With adopt the run is asked to
// adopt the programs of this build before it has a device.
func finish(t *testing.T, dir, version string, of release, adopt bool) store.Link {
	t.Helper()
	var head store.Link
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	require.NoError(t, stack.WithServers(ctx, dev.Options{Dir: dir}, func(on stack.Servers) error {
		if version != "" {
			unpackBucket(t, on.Bucket, version)
		}
		if adopt {
			stop := serve(ctx, t, on, workers.RoleWorkflow, workers.RoleHost)
			handle, err := on.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
				WorkflowID: of.Run, UpdateName: "adopt-programs", Args: []any{workflows.Adopt{}},
				WaitForStage: client.WorkflowUpdateStageCompleted,
			})
			if err == nil {
				var answer string
				err = handle.Get(ctx, &answer)
				t.Log(answer)
			}
			stop()
			if err != nil {
				return err
			}
		}
		stop := serve(ctx, t, on, workers.Roles...)
		defer stop()
		var result workflows.TrainResult
		if err := on.Client.GetWorkflow(ctx, of.Run, "").Get(ctx, &result); err != nil {
			return err
		}
		require.Equal(t, of.Iterations, result.Iterations)
		report, err := store.Verify(ctx, on.Bucket, of.Run, nil)
		if err != nil {
			return err
		}
		require.Empty(t, report.Problems)
		head, err = store.Head(ctx, on.Bucket, of.Run)
		return err
	}))
	return head
}

// serve runs a worker in this process until stop is called.
func serve(ctx context.Context, t *testing.T, on stack.Servers, roles ...workers.Role) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- workers.Run(ctx, workers.Options{
			Client: on.Client, Namespace: on.Namespace(), Store: on.Bucket, Logger: zap.NewNop(), Roles: roles,
			SessionHeartbeat: 3 * time.Second, Grace: time.Second,
		})
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// release records half a run of the present build, and its end.
func (r *recorder) release(t *testing.T, version string) {
	text, err := presets.With("chaos", map[string]any{"iterations": 16, "snapshot": map[string]any{"every": 4}})
	require.NoError(t, err)
	out := filepath.Join(releases, version)
	require.NoError(t, os.MkdirAll(out, 0o755))
	dir := t.TempDir()
	of := release{Run: "half", Commit: commit(t), Numerics: model.Numerics, Committed: halfway + 1, Iterations: 16, Machine: fingerprint(t)}
	r.buildProgram(t)
	require.NoError(t, stack.WithServers(t.Context(), dev.Options{Dir: dir}, func(on stack.Servers) error {
		r.dir, r.Client = on.Dir(), on.Client
		worker, err := r.startWorker(nil)
		if err != nil {
			return err
		}
		if _, err := r.start(t.Context(), of.Run, "Train", json.RawMessage(text)); err != nil {
			return err
		}
		require.Eventually(t, func() bool {
			_, err := on.Bucket.Stat(t.Context(), store.ManifestKey(of.Run, 0, halfway))
			return err == nil
		}, scriptTime, 20*time.Millisecond)
		if err := worker.Process.Kill(); err != nil {
			return err
		}
		r.stopWorkers()
		return packBucket(t, on.Bucket, filepath.Join(out, "bucket.tar.gz"))
	}))
	path := filepath.Join(dir, "temporal.db")
	// The server leaves the newest pages in a log beside the database.
	whole, err := exec.Command("python3", "-c", checkpoint, path).CombinedOutput()
	require.NoError(t, err, "this needs python3, for its SQLite: %s", whole)
	database, err := os.ReadFile(path)
	require.NoError(t, err)
	// What is stored names no machine. Lengths stay, because they are stored too.
	database = ownerOn(r.hostname).ReplaceAll(database, []byte("${1}"+strings.Repeat("x", len(r.hostname))))
	database = bytes.ReplaceAll(database, []byte(dir), []byte(strings.Repeat("x", len(dir))))
	writePacked(t, filepath.Join(out, "temporal.db.gz"), database)
	head := finish(t, dir, "", of, false)
	of.State, of.Manifest = head.Manifest.StateAfter, head.Ref.Digest
	b, err := json.MarshalIndent(of, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(out, "release.json"), append(b, '\n'), 0o644))
}

// ownerOn finds the names that clients and servers on a machine have: a number or a UUID, and the machine.
func ownerOn(hostname string) *regexp.Regexp {
	return regexp.MustCompile(`([0-9a-f]@)` + regexp.QuoteMeta(hostname))
}

func readRelease(t *testing.T, version string) (of release) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(releases, version, "release.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &of))
	return of
}

// fingerprint is that of this machine's device.
func fingerprint(t *testing.T) string {
	t.Helper()
	plugintest.Needs(t)
	d, err := model.OpenDevice(model.DeviceOptions{})
	require.NoError(t, err)
	defer d.Close()
	return d.Fingerprint().ID()
}

// commit is the commit of the work tree, in which nothing that git knows may be changed.
func commit(t *testing.T) string {
	t.Helper()
	changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output()
	require.NoError(t, err)
	require.Empty(t, string(changed), "a release is recorded of a commit")
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(head))
}

// unpackedDatabase is a stack's folder with a release's database.
func unpackedDatabase(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "temporal.db"), unpacked(t, version, "temporal.db.gz"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "temporal.db.whole"), nil, 0o600))
	return dir
}

func unpacked(t *testing.T, version, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(releases, version, name))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}

func writePacked(t *testing.T, path string, body []byte) {
	t.Helper()
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	require.NoError(t, err)
	_, err = z.Write(body)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(path, packed.Bytes(), 0o644))
}

func unpackBucket(t *testing.T, s store.Store, version string) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(unpacked(t, version, "bucket.tar.gz")))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, s.Put(t.Context(), h.Name, body, store.PutOptions{}))
	}
}

func packBucket(t *testing.T, s store.Store, path string) error {
	t.Helper()
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	for o, err := range s.List(t.Context(), "") {
		if err != nil {
			return err
		}
		body, _, err := s.Open(t.Context(), o.Key, 0)
		if err != nil {
			return fmt.Errorf("read %s: %w", o.Key, err)
		}
		b, err := io.ReadAll(body)
		body.Close()
		if err != nil {
			return fmt.Errorf("read %s: %w", o.Key, err)
		}
		if err := w.WriteHeader(&tar.Header{Name: o.Key, Size: int64(len(b)), Mode: 0o644}); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	writePacked(t, path, all.Bytes())
	return nil
}
