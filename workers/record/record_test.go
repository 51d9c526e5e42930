// Record plays scenes on a real Temporal server, a real S3 server and real
// worker processes, and writes the histories of their workflows to
// workflows/testdata/histories. The tests of package workflows replay them, so
// that a change which would break a run that is under way is caught.
//
//	go run ./workers/record                   # all scenes
//	go run ./workers/record killed            # one
//
// Record again only when a change of workflow code is meant to end compatibility
// with the runs of the release before; otherwise guard the change with
// workflow.GetVersion and keep the histories.
package record

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workers/stack"
)

const (
	folder    = "workflows/testdata/histories"
	sceneTime = 3 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := record(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// studio is what scenes are played in.
type studio struct {
	client.Client
	dir      string // the stack's folder
	program  string // the built reprise
	hostname string
	workers  []*exec.Cmd
}

func record(ctx context.Context, only []string) error {
	for _, name := range only {
		if !slices.ContainsFunc(scenes, func(s scene) bool { return s.name == name }) {
			return fmt.Errorf("no scene %q", name)
		}
	}
	tmp, err := os.MkdirTemp("", "reprise-record-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	s := &studio{program: filepath.Join(tmp, "reprise")}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.program, "./workers/reprise")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build (run it in the repository's root): %w", err)
	}
	if s.hostname, err = os.Hostname(); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return stack.WithServers(ctx, dev.Options{Ephemeral: true}, func(on stack.Servers) error {
		s.dir, s.Client = on.Dir(), on.Client
		return s.playAll(ctx, only)
	})
}

func (s *studio) playAll(ctx context.Context, only []string) error {
	for _, scene := range scenes {
		if len(only) > 0 && !slices.Contains(only, scene.name) {
			continue
		}
		if err := s.play(ctx, scene); err != nil {
			return fmt.Errorf("scene %s: %w", scene.name, err)
		}
	}
	return nil
}

func (s *studio) play(ctx context.Context, scene scene) error {
	ctx, cancel := context.WithTimeout(ctx, sceneTime)
	defer cancel()
	defer s.dismiss()
	runs, err := scene.play(ctx, s)
	if err != nil {
		return err
	}
	for i, run := range runs {
		name := scene.name
		if len(runs) > 1 {
			name = fmt.Sprintf("%s-%d", scene.name, i)
		}
		if err := s.keep(ctx, name, run); err != nil {
			return err
		}
	}
	return nil
}

// hire starts a worker process. Dismiss ends all that are left.
func (s *studio) hire(environment []string, flags ...string) (*exec.Cmd, error) {
	w := exec.Command(s.program, append([]string{"worker", "--dev-dir", s.dir, "--session-heartbeat", "3s"}, flags...)...)
	w.Env = append(os.Environ(), environment...)
	w.Stderr = os.Stderr
	w.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := w.Start(); err != nil {
		return nil, err
	}
	s.workers = append(s.workers, w)
	return w, nil
}

func (s *studio) dismiss() {
	for _, w := range s.workers {
		_ = w.Process.Signal(syscall.SIGTERM)
	}
	for _, w := range s.workers {
		_ = w.Wait() // killed ones have nothing more to say
	}
	s.workers = nil
}

// keep writes the history of one run of a workflow.
func (s *studio) keep(ctx context.Context, name string, run execution) error {
	var h history.History
	events := s.GetWorkflowHistory(ctx, run.id, run.run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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
	if b, err = anonymous(b, s.hostname); err != nil {
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
	path := filepath.Join(folder, name+".json.gz")
	fmt.Printf("%s: %d events, %d bytes, %d packed\n", path, len(h.Events), len(b), packed.Len())
	return os.WriteFile(path, packed.Bytes(), 0o644)
}
