package dev

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxLog is the length, in bytes, at which a log is set aside when its server starts.
const maxLog = 16 << 20

// child is a server process: started, stopped, killed, and started again.
type child struct {
	name        string
	path        string
	arguments   []string
	environment []string
	log         string

	mu       sync.Mutex
	died     func(error) // called when the process ends by itself
	pid      int
	ended    chan struct{} // closed when the process is gone; nil before the first start
	endedBy  error         // why it ended, once ended is closed
	expected bool          // we ended it
	from     int64         // where this process's part of the log begins
}

// StartChild starts a process that does not outlive this one, however that ends, in a
// process group of its own: Ctrl-C does not reach it. ended receives how it ended.
func StartChild(command *exec.Cmd, ended func(error)) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the thread that forked ends,
		// not the process: so that thread is kept until the child is gone.
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			ended(command.Wait())
		}
	}()
	return <-started
}

// start runs the program with its output appended to the log.
func (c *child) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if info, err := os.Stat(c.log); err == nil && info.Size() > maxLog {
		if err := os.Rename(c.log, c.log+".1"); err != nil {
			return fmt.Errorf("set the log of %s aside: %w", c.name, err)
		}
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	if c.from, err = log.Seek(0, io.SeekEnd); err != nil {
		log.Close()
		return fmt.Errorf("find the end of the log of %s: %w", c.name, err)
	}

	command := exec.Command(c.path, c.arguments...)
	command.Env = c.environment
	command.Stdout, command.Stderr = log, log
	defer log.Close() // the process has it too
	ended := make(chan struct{})
	err = StartChild(command, func(err error) {
		c.mu.Lock()
		c.endedBy = err
		died := c.died
		if c.expected {
			died = nil
		}
		c.mu.Unlock()
		close(ended)
		if died != nil {
			died(c.failure())
		}
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	c.pid, c.ended, c.endedBy, c.expected = command.Process.Pid, ended, nil, false
	return nil
}

// watch reports an unexpected end to died from now on.
func (c *child) watch(died func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.died = died
}

// restart starts the process; it first stops it if it still runs.
func (c *child) restart() error {
	if err := c.stop(grace); err != nil {
		return err
	}
	return c.start()
}

// gone says whether the process has ended.
func (c *child) gone() bool {
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	if ended == nil {
		return true
	}
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// kill ends the process at once and returns when it is gone.
func (c *child) kill() error { return c.end(syscall.SIGKILL, 0) }

// stop asks the process to end, and kills it after the grace period.
func (c *child) stop(grace time.Duration) error { return c.end(syscall.SIGTERM, grace) }

// signal sends a signal to the process group.
func (c *child) signal(signal syscall.Signal) error {
	c.mu.Lock()
	pid := c.pid
	c.mu.Unlock()
	if err := syscall.Kill(-pid, signal); err != nil {
		return fmt.Errorf("signal %s: %w", c.name, err)
	}
	return nil
}

// stopped waits until the process is stopped, or has ended. A signal that was sent has not stopped all threads yet.
func (c *child) stopped() error {
	c.mu.Lock()
	pid := c.pid
	c.mu.Unlock()
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("waitid "+c.name, err)
		}
	}
}

func (c *child) end(signal syscall.Signal, grace time.Duration) error {
	c.mu.Lock()
	pid, ended := c.pid, c.ended
	c.expected = true
	c.mu.Unlock()
	if c.gone() {
		return nil
	}
	// The whole group, so that a server's own children end too.
	if err := syscall.Kill(-pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", c.name, err)
	}
	if signal != syscall.SIGKILL {
		select {
		case <-ended:
			return nil
		case <-time.After(grace):
		}
		if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill %s: %w", c.name, err)
		}
	}
	<-ended
	return nil
}

// failure says how the process ended, with the last lines it logged.
func (c *child) failure() error {
	c.mu.Lock()
	by := c.endedBy
	c.mu.Unlock()
	how := "ended by itself"
	if by != nil {
		how = by.Error()
	}
	return fmt.Errorf("%s ended: %s; the end of %s: %s", c.name, how, c.log, c.logTail())
}

// logTail returns the last lines this process logged, as one line.
func (c *child) logTail() string {
	const most = 2048
	file, err := os.Open(c.log)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	c.mu.Lock()
	from := c.from
	c.mu.Unlock()
	content, err := io.ReadAll(io.NewSectionReader(file, max(from, info.Size()-most), most))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-6):], " | ")
}

// portTaken says whether the process ended because a port it wanted was taken
// in the moment between our looking and its listening.
func (c *child) portTaken() bool {
	return c.gone() && strings.Contains(c.logTail(), "address already in use")
}
