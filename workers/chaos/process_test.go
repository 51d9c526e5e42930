package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/faults"
	labcrew "github.com/reprise-rl/reprise/workers/lab/crew"
)

// environment is the environment of every program that a test starts: as it was before a
// device that is opened in this process sets XLA's flags.
var environment = os.Environ()

// niceness is the niceness of worker processes.
const niceness = 10

// process is a worker process.
type process struct {
	name  string
	log   string
	pid   int
	ended chan struct{}
	err   error // how it ended
}

// workerOptions are what differs between the worker processes of a lane.
type workerOptions struct {
	fault     string // REPRISE_FAULT
	diverge   string // REPRISE_FAULT_DIVERGE
	build     string // REPRISE_FAULT_BUILD
	trace     bool
	flags     []string
	env       []string
	heartbeat string // 5s by default
	// oneProcess has the worker compute in the process that it is, as one does that is to die of a fault.
	oneProcess bool
}

// worker starts a worker process of the lane; it is killed when the test ends.
func (l *lane) worker(o workerOptions) *process {
	l.t.Helper()
	if o.heartbeat == "" {
		o.heartbeat = "5s"
	}
	l.workers++
	p := &process{
		name:  fmt.Sprintf("worker %d %s%s%s", l.workers, o.fault, o.diverge, o.build),
		log:   l.logOf(l.workers),
		ended: make(chan struct{}),
	}
	arguments := append([]string{"worker", "--dev-dir", l.stack.Dir(), "--namespace", l.namespace,
		"--s3-prefix", l.prefix, "--session-heartbeat", o.heartbeat, "--notices", "none", "--log-format", "text"}, slices.Concat(l.flags, o.flags)...)
	if o.oneProcess || faults.Ends(o.fault) || o.diverge != "" || o.build != "" {
		arguments = append(arguments, "--one-process")
	}
	if n := len(l.devices); n > 0 {
		arguments = append(arguments, "--virtual-devices", strconv.Itoa(l.devices[(l.workers-1)%n]))
	}
	cmd := exec.Command(program, arguments...)
	cmd.Env = append(slices.Clone(environment), faults.Env+"="+o.fault, faults.EnvDiverge+"="+o.diverge, faults.EnvBuild+"="+o.build)
	if o.trace {
		cmd.Env = append(cmd.Env, faults.EnvTrace+"=1")
	}
	cmd.Env = append(cmd.Env, o.env...)
	log, err := os.Create(p.log)
	require.NoError(l.t, err)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		// The death signal comes when the thread that forked ends: keep it.
		runtime.LockOSThread()
		defer log.Close()
		// Workers compile on every processor. They yield to the servers, which must
		// answer all of them in time; otherwise workers would be taken for dead. The
		// thread ends with this function, and the child has its priority.
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness); err != nil {
			started <- fmt.Errorf("set the priority of a worker: %w", err)
			return
		}
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		p.err = cmd.Wait()
		close(p.ended)
	}()
	require.NoError(l.t, <-started)
	l.processes = append(l.processes, p)
	l.t.Cleanup(func() { p.kill() })
	return p
}

// logOf is the log of a worker, from 1.
func (l *lane) logOf(worker int) string {
	return filepath.Join(l.logs, fmt.Sprintf("worker-%d.log", worker))
}

// kill ends the process as by kill -9 and returns when it is gone.
func (p *process) kill() {
	if p.alive() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	<-p.ended
}

// computes is the process that computes for a worker; 0 where the worker does itself, or while none is there.
func (p *process) computes() int {
	pid, err := labcrew.Computes(p.pid)
	if err != nil {
		return 0
	}
	return pid
}

// terminate sends SIGTERM and waits until the process has ended by itself.
func (p *process) terminate(t testing.TB, within time.Duration) {
	t.Helper()
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGTERM))
	p.stops(t, within)
}

// stops waits until a process that was told to stop has ended by itself.
func (p *process) stops(t testing.TB, within time.Duration) {
	t.Helper()
	select {
	case <-p.ended:
		require.NoError(t, p.err, "%s should end well when it is told to stop", p.name)
	case <-time.After(within):
		require.Fail(t, p.name+" did not end when it was told to stop", "within %s; its log:\n%s", within, p.tail())
	}
}

// dies waits until a fault has killed the process.
func (p *process) dies(t testing.TB) {
	t.Helper()
	select {
	case <-p.ended:
		require.True(t, p.killed(), "%s: %v\n%s", p.name, p.err, p.tail())
	case <-time.After(patience):
		require.Fail(t, p.name+" was not killed", "within %s; its log:\n%s", patience, p.tail())
	}
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// killed says whether it was ended by SIGKILL.
func (p *process) killed() bool {
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// text is all it has logged.
func (p *process) text() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// tail is the end of its log.
func (p *process) tail() string {
	lines := strings.Split(strings.TrimSpace(p.text()), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

// says waits for a text in its log.
func (p *process) says(t testing.TB, what string, within time.Duration) {
	t.Helper()
	eventually(t, within, p.name+" says "+what, func() error {
		b, err := os.ReadFile(p.log)
		if err != nil || bytes.Contains(b, []byte(what)) {
			return err
		}
		if !p.alive() {
			return fmt.Errorf("it has ended: %v\n%s", p.err, p.tail())
		}
		return fmt.Errorf("its log ends with\n%s", p.tail())
	})
}

// keep keeps a worker in the lane until stop: each process has the next of the
// faults, and when it has died of it the next process starts. The last has none.
// stop fails the test where a fault never struck.
func (l *lane) keep(list ...string) (stop func()) {
	l.t.Helper()
	return l.keepWith(workerOptions{}, list...)
}

// keepWith keeps workers that have options besides their faults.
func (l *lane) keepWith(options workerOptions, list ...string) (stop func()) {
	l.t.Helper()
	quit, done := make(chan struct{}), make(chan struct{})
	l.t.Cleanup(func() { <-done }) // the last of the lane's: the workers are dead by then
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			o := options
			if i < len(list) {
				o.fault = list[i]
			}
			p := l.worker(o)
			select {
			case <-p.ended:
				if l.t.Context().Err() != nil {
					return // the test has failed, and ends what it started
				}
				if !p.killed() {
					l.t.Errorf("%s ended by itself: %v\n%s", p.name, p.err, p.tail())
					return
				}
			case <-quit:
				if i < len(list) {
					l.t.Errorf("these faults never struck: %v", list[i:])
				}
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// eventually polls until check answers nil, and fails with its last answer.
func eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			require.Fail(t, what+": not within "+within.String(), "%v", err)
		}
		time.Sleep(250 * time.Millisecond)
	}
}
