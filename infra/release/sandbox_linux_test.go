package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideEnv names the folder that a copy of this test program makes its root.
const insideEnv = "REPRISE_TEST_ROOT"

// In a process that sandboxed started, TestMain becomes the command instead of running tests.
func TestMain(m *testing.M) {
	if root := os.Getenv(insideEnv); root != "" {
		fmt.Fprintln(os.Stderr, "sandbox:", enter(root, os.Args[1:]))
		os.Exit(125)
	}
	os.Exit(m.Run())
}

// sandboxed is a command that has a folder as its root, processes and a loopback interface of its own, and no other network.
func sandboxed(root string, environment []string, command ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, command...)
	cmd.Env = append([]string{insideEnv + "=" + root}, environment...)
	ids := func(host int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: host, Size: 1}}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL, UidMappings: ids(os.Getuid()), GidMappings: ids(os.Getgid()),
	}
	return cmd, nil
}

// enter makes root the root and runs a command in its place; it returns why it could not.
func enter(root string, command []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to itself: %w", err)
	}
	if err := unix.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, device := range []string{"null", "zero", "random", "urandom"} {
		if err := unix.Mount("/dev/"+device, filepath.Join(root, "dev", device), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount /dev/%s: %w", device, err)
		}
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bring up the loopback interface: %w", err)
	}
	if err := unix.Chroot(root); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := os.Chdir("/root"); err != nil {
		return err
	}
	environment := os.Environ()
	for i, pair := range environment {
		if strings.HasPrefix(pair, insideEnv+"=") {
			environment = append(environment[:i], environment[i+1:]...)
			break
		}
	}
	return unix.Exec(command[0], command, environment)
}

func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo)
}
