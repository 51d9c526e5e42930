// Package record plays scripts on a real Temporal server, a real S3 server and real
// worker processes, and writes the histories of their workflows to
// workflows/testdata/histories. The tests of package workflows replay them, so
// that a change which would break a running workflow is caught.
//
//	go test ./workers/record -run TestRecord -record -timeout 40m         # all scripts
//	go test ./workers/record -run TestRecord/killed -record               # one
//
// `make release-record` records them of a release, beside half a run of it, in workflows/testdata/releases/VERSION.
//
// From the first release on, record again only when a change of workflow code is meant to end
// compatibility with the runs of the release before; otherwise guard the change in
// workflows/changes.go and keep the histories.
package record

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/stack"
)

var (
	recordHistories = flag.Bool("record", false, "play the scripts and record their histories")
	recordInto      = flag.String("into", folder, "folder of the histories: a release has one of its own")
)

const (
	folder = "../../workflows/testdata/histories"
	// scriptTime bounds what one script may take.
	scriptTime = 3 * time.Minute
)

// recorder is what scripts are played with.
type recorder struct {
	client.Client
	dir      string // the stack's folder
	program  string // the built reprise
	hostname string
	workers  []*exec.Cmd
}

// TestRecord checks that every recorded history has its script and every script its
// histories. With -record it plays the scripts first and writes their histories.
func TestRecord(t *testing.T) {
	if *recordHistories {
		require.NoError(t, os.MkdirAll(*recordInto, 0o755))
		record(t)
	}
	recorded := map[string]bool{}
	entries, err := os.ReadDir(*recordInto)
	require.NoError(t, err)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json.gz")
		require.True(t, ok, "%s is not a history", e.Name())
		name, _, _ = strings.Cut(name, "-")
		recorded[name] = true
	}
	for _, s := range scripts {
		require.NotContains(t, s.name, "-", "what follows it numbers the histories of a script")
		require.NotNil(t, s.play, s.name)
		require.True(t, recorded[s.name], "the script %s has no history, or stands twice: run this test with -record", s.name)
		delete(recorded, s.name)
	}
	require.Empty(t, recorded, "histories without a script")
}

// record plays the scripts on servers of their own.
func record(t *testing.T) {
	r := &recorder{}
	r.buildProgram(t)
	require.NoError(t, stack.WithServers(t.Context(), dev.Options{Ephemeral: true}, func(on stack.Servers) error {
		r.dir, r.Client = on.Dir(), on.Client
		for _, s := range scripts {
			t.Run(s.name, func(t *testing.T) { require.NoError(t, r.play(t.Context(), s)) })
		}
		return nil
	}))
}

// buildProgram builds the program of the workers.
func (r *recorder) buildProgram(t *testing.T) {
	t.Helper()
	var err error
	r.hostname, err = os.Hostname()
	require.NoError(t, err)
	r.program = filepath.Join(t.TempDir(), "reprise")
	build, err := exec.Command("go", "build", "-o", r.program, "github.com/reprise-rl/reprise/workers/reprise").CombinedOutput()
	require.NoError(t, err, "build reprise: %s", build)
}

// play records one script.
func (r *recorder) play(ctx context.Context, s script) error {
	ctx, cancel := context.WithTimeout(ctx, scriptTime)
	defer cancel()
	defer r.stopWorkers()
	runs, err := s.play(ctx, r)
	if err != nil {
		return err
	}
	for i, run := range runs {
		name := s.name
		if len(runs) > 1 {
			name = fmt.Sprintf("%s-%d", s.name, i)
		}
		if err := r.write(ctx, name, run); err != nil {
			return err
		}
	}
	return nil
}

// startWorker starts a worker process; stopWorkers ends those that still run.
func (r *recorder) startWorker(environment []string, flags ...string) (*exec.Cmd, error) {
	for _, of := range environment {
		if list, ok := strings.CutPrefix(of, faults.Env+"="); ok && faults.Ends(list) {
			flags = append(flags, "--one-process") // the scripts wait for its end
		}
	}
	w := exec.Command(r.program, append([]string{"worker", "--dev-dir", r.dir, "--session-heartbeat", "3s"}, flags...)...)
	w.Env = append(os.Environ(), programcache.Env+"="+filepath.Join(filepath.Dir(r.program), "programs"))
	w.Env = append(w.Env, environment...)
	w.Stderr = os.Stderr
	w.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := w.Start(); err != nil {
		return nil, err
	}
	r.workers = append(r.workers, w)
	return w, nil
}

func (r *recorder) stopWorkers() {
	for _, w := range r.workers {
		_ = w.Process.Signal(syscall.SIGTERM)
	}
	for _, w := range r.workers {
		_ = w.Wait() // how a killed one ended is of no interest
	}
	r.workers = nil
}

// write writes the history of one run of a workflow.
func (r *recorder) write(ctx context.Context, name string, run execution) error {
	var h history.History
	events := r.GetWorkflowHistory(ctx, run.id, run.run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return fmt.Errorf("history of %s: %w", run.id, err)
		}
		h.Events = append(h.Events, event)
	}
	b, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(&h)
	if err != nil {
		return fmt.Errorf("encode the history of %s: %w", run.id, err)
	}
	if b, err = anonymous(b, r.hostname); err != nil {
		return fmt.Errorf("history of %s: %w", run.id, err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(b); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	path := filepath.Join(*recordInto, name+".json.gz")
	fmt.Printf("%s: %d events, %d bytes, %d packed\n", path, len(h.Events), len(b), packed.Len())
	return os.WriteFile(path, packed.Bytes(), 0o644)
}
