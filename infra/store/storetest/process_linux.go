package storetest

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends the server when the test process dies without cleaning up.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// attributes says whether the folder's file system has the extended attributes
// that versitygw keeps an object's metadata in.
func attributes(dir string) bool {
	return syscall.Setxattr(dir, "user.reprise", []byte("1"), 0) == nil
}
