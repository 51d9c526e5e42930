package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
)

// recoveries measures recoveries from kills of real worker processes on a dev stack.
func (s *benchmark) recoveries(ctx context.Context) error {
	text, _, err := specOf(s.Preset, s.KillAt+3, nil)
	if err != nil {
		return err
	}
	return stack.WithServers(ctx, s.servers, func(on stack.Servers) error {
		crew := &workerCrew{dir: on.Dir(), worker: s.Worker, running: map[int]*child{}}
		defer crew.end()
		return s.kill(ctx, on.Client, crew, text)
	})
}

func (s *benchmark) kill(ctx context.Context, c client.Client, crew *workerCrew, text []byte) error {
	for n := range s.Kills {
		for len(crew.running) < 2 {
			if err := crew.start(ctx); err != nil {
				return err
			}
		}
		run := fmt.Sprintf("bench-kill-%d", n)
		s.say(fmt.Sprintf("killing worker %d of %d, in the update of iteration %d of %s", n+1, s.Kills, s.KillAt, run))
		if _, err := stack.StartTrain(ctx, c, run, text); err != nil {
			return err
		}
		got, err := MeasureRecovery(ctx, c, run, s.KillAt, "Update", func(pid int) error {
			peak, err := PeakMemory(pid)
			if err != nil {
				return err
			}
			s.r.WorkerPeak = max(s.r.WorkerPeak, peak)
			return crew.kill(pid)
		})
		if err != nil {
			return fmt.Errorf("recovery %d: %w", n+1, err)
		}
		s.r.Recoveries = append(s.r.Recoveries, got)
		if err := c.GetWorkflow(ctx, run, "").Get(ctx, nil); err != nil {
			return fmt.Errorf("run %s after the kill: %w", run, err)
		}
	}
	for pid := range crew.running {
		if peak, err := PeakMemory(pid); err == nil {
			s.r.WorkerPeak = max(s.r.WorkerPeak, peak)
		}
	}
	return nil
}

// workerCrew is a set of worker processes of this program on a dev stack.
type workerCrew struct {
	dir    string // the stack's
	worker workers.Options
	roles  []workers.Role // of each; none: all
	// programs is the folder of compiled programs; "": the default one.
	programs string
	// pinned gives each worker one core of this machine, in turn.
	pinned bool
	// fault is what the workers started from now on fail at: see package faults.
	fault   string
	started int
	running map[int]*child
}

// child is a process that ends with this one.
type child struct {
	*exec.Cmd
	ended chan struct{} // closed when it has ended
}

// begin starts a child. Its exit status is ignored: most children are killed.
func begin(cmd *exec.Cmd) (*child, error) {
	c := &child{Cmd: cmd, ended: make(chan struct{})}
	if err := dev.StartChild(cmd, func(error) { close(c.ended) }); err != nil {
		return nil, err
	}
	return c, nil
}

// start starts a worker and waits until it serves.
func (w *workerCrew) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	w.started++
	log, err := os.Create(filepath.Join(w.dir, fmt.Sprintf("worker-%d.log", w.started)))
	if err != nil {
		return err
	}
	defer log.Close()
	arguments := []string{"worker", "--dev-dir", w.dir}
	for _, r := range w.roles {
		arguments = append(arguments, "--roles", string(r))
	}
	arguments = append(arguments,
		"--session-heartbeat", w.worker.SessionHeartbeat.String(), "--plugin", w.worker.Device.Plugin, "--xla-flags", w.worker.Device.XLAFlags)
	if w.programs != "" {
		arguments = append(arguments, "--program-cache", w.programs)
	}
	cmd := exec.Command(self, arguments...)
	if w.pinned {
		core := strconv.Itoa((w.started - 1) % runtime.NumCPU())
		cmd = exec.Command("taskset", append([]string{"--cpu-list", core, self}, arguments...)...)
	}
	cmd.Env = append(cmd.Environ(), faults.Env+"="+w.fault)
	cmd.Stdout, cmd.Stderr = log, log
	worker, err := begin(cmd)
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	w.running[cmd.Process.Pid] = worker
	for deadline := time.Now().Add(time.Minute); ; {
		text, err := os.ReadFile(log.Name())
		if err == nil && bytes.Contains(text, []byte("worker serves")) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a worker did not begin to serve:\n%s", text)
		}
		if err := watch.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// kill ends a worker by SIGKILL.
func (w *workerCrew) kill(pid int) error {
	worker, ok := w.running[pid]
	if !ok {
		return fmt.Errorf("process %d is no worker of ours", pid)
	}
	delete(w.running, pid)
	if err := worker.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-worker.ended
	return nil
}

// end kills the remaining workers. They have no state to lose.
func (w *workerCrew) end() {
	for pid := range w.running {
		_ = w.kill(pid)
	}
}
