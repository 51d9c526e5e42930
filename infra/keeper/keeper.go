// Package keeper starts foreign programs, as an environment's, so that nothing of them is left when they or this
// process end, however they end, and so that they cannot read this process's memory and variables.
//
// Between this process and the program stands a keeper: this executable again, which knows itself by its first
// argument before main runs. It adopts what the program starts, also what moves to a session of its own, and kills all
// of it when the program has ended, when it is asked to, or when this process is gone. What a person started with
// other rights (sudo), or through a server of the machine's (docker), is not its child, and it cannot kill it.
package keeper

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

const (
	// name is the keeper's first argument. The rest are the program's path and its arguments.
	name = "reprise-keeper"
	// lifeline is the descriptor whose other end this process has: it ends with this process.
	lifeline = 3
	// patience is how long a keeper tries to end what is left, and half of the time that it has to end itself.
	patience = 3 * time.Second
	// round is the time between two attempts to kill what is left: a killed process's children are adopted after it.
	round = 2 * time.Millisecond
	// notStarted is a keeper's exit status where the program cannot be started, as a shell's.
	notStarted = 126
	// signalled and the signal's number are its exit status where a signal ended the program, as a shell's.
	signalled = 128
)

// init makes this process a keeper if it was started as one. It is here, and not in main, for every program and test
// that links this package starts keepers.
func init() {
	if len(os.Args) > 2 && os.Args[0] == name {
		os.Exit(keep(os.Args[1], os.Args[2:]))
	}
}

// Start starts a command under a keeper, with the variables in command.Env and the standard files that are set, and
// nothing else. The keeper ends when the command has ended and everything that it started is gone; its exit status is
// the command's, or 128 and a signal's number. end ends it all earlier; the keeper then ends as killed. Call
// command.Wait in both cases.
func Start(command *exec.Cmd) (end func(), err error) {
	self, err := Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for a keeper: %w", err)
	}
	defer theirs.Close()
	if command.Err == nil { // else Start says it
		command.Path, command.Args = self, append([]string{name, command.Path}, command.Args...)
	}
	command.ExtraFiles = []*os.File{theirs}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C does not reach it
	if err := command.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	return func() {
		if ours.Close() == nil { // the first time
			// A keeper that was stopped, or whose program has other rights, does not hold up this process.
			time.AfterFunc(2*patience, func() { _ = command.Process.Kill() })
		}
	}, nil
}

// Died reads a keeper's exit status: the signal that ended the program, and false if it ended by itself.
func Died(status int) (syscall.Signal, bool) {
	return syscall.Signal(status - signalled), status > signalled && status < signalled+65
}

// keep is the keeper: it starts the program and returns its exit status.
func keep(path string, argv []string) int {
	syscall.CloseOnExec(lifeline)
	news := make(chan os.Signal, 1)
	signal.Notify(news, syscall.SIGCHLD)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := confine(); err != nil {
		fmt.Fprintf(os.Stderr, "keep %s: %v\n", path, err)
		return notStarted
	}
	program, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: ofProgram(),
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "start %s: %v\n", path, err)
		return notStarted
	}
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		f.Close() // they end with the program, not with its keeper
	}
	gone := make(chan struct{})
	go func() {
		_, _ = os.NewFile(lifeline, "lifeline").Read(make([]byte, 1))
		close(gone)
	}()

	var status syscall.WaitStatus
	ended, asked := false, false
	var deadline <-chan time.Time
	for late := false; !late; {
		left := reap(func(pid int, s syscall.WaitStatus) {
			if pid == program {
				ended, status = true, s
			}
		})
		if !left && adopts {
			break
		}
		var again <-chan time.Time
		if ended || asked {
			// Only this loop reaps: no number that is killed here can be another process's.
			killChildren(program)
			again = time.After(round)
			if deadline == nil {
				deadline = time.After(patience)
			}
		}
		if !left {
			break
		}
		select {
		case <-news:
		case <-again:
		case <-stop:
			asked = true
		case <-gone:
			asked, gone = true, nil
		case <-deadline:
			late = true
		}
	}
	switch {
	case asked && (!ended || status.Signal() == syscall.SIGKILL):
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case status.Signaled():
		return signalled + int(status.Signal())
	}
	return status.ExitStatus()
}

// reap takes the exit statuses that are there, and reports whether children are left.
func reap(each func(int, syscall.WaitStatus)) bool {
	for {
		var s syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &s, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return false // ECHILD
		case pid == 0:
			return true
		default:
			each(pid, s)
		}
	}
}
