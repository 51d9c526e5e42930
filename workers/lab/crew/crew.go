// Package crew keeps worker processes of this program on a dev stack, and kills them: for what
// measures or shows how runs go through the loss of a worker.
package crew

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/watch"
)

// Crew is a set of worker processes of this program on a dev stack.
type Crew struct {
	// Dir is the folder of the dev stack, which gets the workers' logs.
	Dir string
	// Worker has the options of each worker that its flags take: the session's heartbeat and the device.
	Worker workers.Options
	// Roles are those of each worker; none is all.
	Roles []workers.Role
	// Programs is the folder of compiled programs; "" is the default one.
	Programs string
	// Pinned gives each worker one core of this machine, in turn.
	Pinned bool
	// Fault is what the workers started from now on fail at: see package faults.
	Fault   string
	started int
	running map[int]*child
}

// PIDs are the process ids of the running workers, ascending.
func (w *Crew) PIDs() []int { return slices.Sorted(maps.Keys(w.running)) }

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

// Start starts a worker and waits until it serves.
func (w *Crew) Start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	w.started++
	log, err := os.Create(filepath.Join(w.Dir, fmt.Sprintf("worker-%d.log", w.started)))
	if err != nil {
		return err
	}
	defer log.Close()
	arguments := []string{"worker", "--dev-dir", w.Dir, "--log-format", "text"}
	for _, r := range w.Roles {
		arguments = append(arguments, "--roles", string(r))
	}
	arguments = append(arguments,
		"--session-heartbeat", w.Worker.SessionHeartbeat.String(), "--plugin", w.Worker.Device.Plugin, "--xla-flags", w.Worker.Device.XLAFlags)
	if faults.Ends(w.Fault) {
		arguments = append(arguments, "--one-process")
	}
	if w.Programs != "" {
		arguments = append(arguments, "--program-cache", w.Programs)
	}
	cmd := exec.Command(self, arguments...)
	if w.Pinned {
		core := strconv.Itoa((w.started - 1) % runtime.NumCPU())
		cmd = exec.Command("taskset", append([]string{"--cpu-list", core, self}, arguments...)...)
	}
	cmd.Env = append(cmd.Environ(), faults.Env+"="+w.Fault)
	cmd.Stdout, cmd.Stderr = log, log
	worker, err := begin(cmd)
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	if w.running == nil {
		w.running = map[int]*child{}
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

// Computes is the process that computes for a worker, by process ids: a child of its own.
func Computes(worker int) (int, error) {
	var children []byte
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", worker))
	if err != nil {
		return 0, fmt.Errorf("find the process that computes for worker %d: %w", worker, err)
	}
	for _, file := range threads {
		more, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		children = append(append(children, ' '), more...)
	}
	for _, field := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(field); err == nil {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no process computes for worker %d", worker)
}

// Of is the worker whose own process, or the one that computes for it, has the id.
func (w *Crew) Of(pid int) (int, error) {
	for worker := range w.running {
		if worker == pid {
			return worker, nil
		}
		if computes, err := Computes(worker); err == nil && computes == pid {
			return worker, nil
		}
	}
	return 0, fmt.Errorf("process %d is no worker of ours", pid)
}

// Kill ends a worker, and with it what computes for it, by SIGKILL. The process id is that of either.
func (w *Crew) Kill(pid int) error {
	pid, err := w.Of(pid)
	if err != nil {
		return err
	}
	worker := w.running[pid]
	delete(w.running, pid)
	if err := worker.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-worker.ended
	return nil
}

// Freeze stops a worker, and what computes for it, by SIGSTOP. It is still one of the crew, and Kill ends it.
func (w *Crew) Freeze(worker int) error {
	computes, err := Computes(worker)
	if err != nil {
		return err
	}
	// The worker first: it would say that the other has ended, or is silent.
	for _, pid := range []int{worker, computes} {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("freeze process %d: %w", pid, err)
		}
	}
	return nil
}

// End kills the remaining workers. They have no state to lose.
func (w *Crew) End() {
	for pid := range w.running {
		_ = w.Kill(pid)
	}
}

// Processor is the processor time of the workers so far, in seconds. Linux only.
func (w *Crew) Processor() (float64, error) {
	total := 0.0
	for pid := range w.running { // a sum of two, in any order
		p, err := procfs.NewProc(pid)
		if err != nil {
			return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
		}
		stat, err := p.Stat()
		if err != nil {
			return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
		}
		total += stat.CPUTime()
	}
	return total, nil
}

// Ended returns a channel that is closed when a worker has ended.
func (w *Crew) Ended(pid int) (<-chan struct{}, error) {
	worker, ok := w.running[pid]
	if !ok {
		return nil, fmt.Errorf("process %d is no worker of ours", pid)
	}
	return worker.ended, nil
}
