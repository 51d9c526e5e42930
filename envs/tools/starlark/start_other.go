//go:build !linux

package starlark

import (
	"os/exec"
	"syscall"
)

// start starts a child in a process group of its own. ended is called when the child is gone and was waited for. If this
// process is killed, the child ends when its input does, or by its own deadline.
func start(command *exec.Cmd, ended func()) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return err
	}
	go func() {
		_ = command.Wait() // how it ended is in command.ProcessState
		ended()
	}()
	return nil
}

func keepsNetwork(error) bool { return false }
