package starlark

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
)

// networked says that this machine did not permit a child without a network.
var networked atomic.Bool

// start starts a child in a process group of its own, which ends with this process however that ends, and without a
// network where the kernel permits that. ended is called when the child is gone and was waited for.
func start(command *exec.Cmd, ended func()) error {
	started := make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the thread that forked ends, not the process: so that thread is kept
		// until the child is gone.
		runtime.LockOSThread()
		attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET}
		if os.Geteuid() != 0 {
			attributes.Cloneflags |= syscall.CLONE_NEWUSER // in which it may leave the network
		}
		if networked.Load() {
			attributes.Cloneflags = 0
		}
		command.SysProcAttr = attributes
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // how it ended is in command.ProcessState
			ended()
		}
	}()
	return <-started
}

// keepsNetwork reports whether a child did not start since it may not leave the network. From now on children keep it.
func keepsNetwork(err error) bool {
	for _, refusal := range []error{syscall.EPERM, syscall.EINVAL, syscall.ENOSPC, syscall.ENOSYS} {
		if errors.Is(err, refusal) {
			networked.Store(true)
			return true
		}
	}
	return false
}
