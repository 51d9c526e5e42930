package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/s3"
)

const (
	// together is how many runs are open at once: one has the device, and what another does on the
	// host goes on beside it.
	together = 2
	// runTime bounds a run.
	runTime = 10 * time.Minute
	// maxManifest is the most bytes of a manifest.
	maxManifest = 8 << 20
	// workerGrace is how long a worker may take to end.
	workerGrace = 10 * time.Second
)

// side is one of the two builds.
type side struct {
	name    string // base or here
	program string
	dir     string // of its stack and its worker's log
}

// fingerprint is that of this machine's device under the side's build.
func (s side) fingerprint(ctx context.Context) (string, error) {
	// It exits with 1, because there are no servers: what it says of the device counts.
	command := exec.CommandContext(ctx, s.program, "doctor", "--json", "--dev-dir", filepath.Join(s.dir, "none"))
	command.Env = environment()
	out, err := command.Output()
	var checks []struct{ Name, Detail string }
	if decodeErr := json.Unmarshal(out, &checks); decodeErr != nil {
		return "", fmt.Errorf("ask the program of %s for its fingerprint: %w", s.name, errors.Join(err, decodeErr))
	}
	for _, c := range checks {
		if id, ok := strings.CutPrefix(c.Detail, "fingerprint "); ok && c.Name == "device" {
			return id, nil
		}
	}
	return "", fmt.Errorf("ask the program of %s for its fingerprint: %w", s.name, errNoFingerprint)
}

var errNoFingerprint = errors.New("reprise doctor names none")

// environment is that of both sides' programs: the same plugin, and no servers but ours.
func environment() []string {
	env := os.Environ()
	if path, _, err := plugin.Find("", ""); err == nil && os.Getenv(plugin.Env) == "" {
		env = append(env, plugin.Env+"="+path)
	}
	return env
}

// run starts servers and the side's worker, and runs the presets. ended is called with each result, by
// one goroutine at a time.
func (s side) run(ctx context.Context, presets []preset, ended func(result)) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stack, err := dev.Start(ctx, dev.Options{Dir: s.dir, Ephemeral: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Stop()) }()
	settings := connect.Settings{DevDir: stack.Dir()}
	c, err := settings.DialTemporal(ctx, zap.NewNop())
	if err != nil {
		return err
	}
	defer c.Close()
	config, err := settings.S3Config()
	if err != nil {
		return err
	}
	bucket, err := s3.Open(config)
	if err != nil {
		return err
	}
	stop, err := s.work(stack.Dir(), cancel)
	if err != nil {
		return err
	}
	defer stop()
	go func() {
		select {
		case died := <-stack.Failed():
			cancel(died)
		case <-ctx.Done():
		}
	}()

	results := make(chan result)
	var open errgroup.Group
	open.SetLimit(together)
	go func() {
		defer close(results)
		for _, p := range presets {
			open.Go(func() error {
				results <- s.train(ctx, c, bucket, p)
				return nil
			})
		}
		_ = open.Wait() // what fails is in the results
	}()
	for r := range results {
		if ctx.Err() == nil { // else it says only that everything ended
			ended(r)
		}
	}
	return context.Cause(ctx)
}

// work starts the side's worker. died is called if it ends before stop.
func (s side) work(stack string, died func(error)) (stop func(), err error) {
	path := filepath.Join(s.dir, s.name+".log")
	log, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	command := exec.Command(s.program, "worker", "--dev-dir", stack, "--session-heartbeat", "30s", "--grace", "1s")
	command.Env = environment()
	command.Stdout, command.Stderr = log, log
	over := make(chan struct{})
	if err := dev.StartChild(command, func(ended error) {
		log.Close()
		died(fmt.Errorf("the worker of %s has ended (see %s): %w", s.name, path, errors.Join(ended, errWorkerEnded)))
		close(over)
	}); err != nil {
		log.Close()
		return nil, fmt.Errorf("start the worker of %s: %w", s.name, err)
	}
	return func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-over:
		case <-time.After(workerGrace):
			_ = command.Process.Kill()
			<-over
		}
	}, nil
}

var errWorkerEnded = errors.New("nobody serves the runs any more")

// train runs a preset to its end.
func (s side) train(ctx context.Context, c client.Client, bucket store.Store, p preset) result {
	begin := time.Now()
	out := result{Preset: p.name, Spec: p.digest()}
	err := func() error {
		ctx, cancel := context.WithTimeout(ctx, runTime)
		defer cancel()
		w, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: p.name, TaskQueue: "reprise"}, "Train", p.spec)
		if err != nil {
			return err
		}
		if err := w.Get(ctx, nil); err != nil {
			if ctx.Err() != nil {
				_ = c.TerminateWorkflow(context.WithoutCancel(ctx), p.name, "", "it took too long")
			}
			return err
		}
		return out.read(ctx, bucket)
	}()
	if err != nil {
		out.Error = err.Error()
	}
	out.Seconds = time.Since(begin).Seconds()
	return out
}

var manifestKey = regexp.MustCompile(`/b(\d+)/iterations/(\d+)/manifest\.json$`)

// read reads what the run committed. It decodes no more than it needs: the other build may write other
// manifests.
func (r *result) read(ctx context.Context, bucket store.Store) error {
	for o, err := range bucket.List(ctx, "runs/"+r.Preset+"/") {
		if err != nil {
			return fmt.Errorf("list the run: %w", err)
		}
		if !manifestKey.MatchString(o.Key) {
			continue
		}
		content, _, err := store.ReadFixed(ctx, bucket, o.Key, maxManifest)
		if err != nil {
			return fmt.Errorf("read a manifest: %w", err)
		}
		if err := r.add(o.Key, content); err != nil {
			return err
		}
	}
	if r.Manifest == "" {
		return errors.New("the run has committed nothing")
	}
	return nil
}
