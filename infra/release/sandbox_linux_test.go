package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideEnv names the folder that a copy of this test program makes its root.
const insideEnv = "REPRISE_TEST_ROOT"

// nobodyEnv says that the command runs as user 65532 on a read-only root, as in the image. It names the folders that it can write.
const nobodyEnv = "REPRISE_TEST_WRITABLE"

// nobody is the image's user.
const nobody = 65532

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

// imaged is a command in a folder as a container has it: as the user nobody, on a read-only root, with writable folders in memory.
// Only root can start one.
func imaged(root string, writable []string, environment []string, command ...string) (*exec.Cmd, error) {
	cmd, err := sandboxed(root, append([]string{nobodyEnv + "=" + strings.Join(writable, ":")}, environment...), command...)
	if err != nil {
		return nil, err
	}
	every := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: nobody + 1}}
	cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings, cmd.SysProcAttr.GidMappingsEnableSetgroups = every, every, true
	return cmd, nil
}

// enter makes root the root and runs a command in its place; it returns why it could not.
func enter(root string, command []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to itself: %w", err)
	}
	writable, asNobody := os.LookupEnv(nobodyEnv)
	if asNobody {
		if err := readOnly(root, strings.Split(writable, ":")); err != nil {
			return err
		}
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
	home := "/root"
	if asNobody {
		home = "/tmp"
		if err := become(nobody); err != nil {
			return fmt.Errorf("become user %d: %w", nobody, err)
		}
	}
	if err := os.Chdir(home); err != nil {
		return err
	}
	environment := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, insideEnv+"=") || strings.HasPrefix(pair, nobodyEnv+"=")
	})
	return unix.Exec(command[0], command, environment)
}

// readOnly makes a folder a read-only mount. The writable folders inside it are in memory and belong to the user nobody.
func readOnly(root string, writable []string) error {
	if err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount the root on itself: %w", err)
	}
	for _, folder := range writable {
		options := fmt.Sprintf("mode=0700,uid=%d,gid=%d", nobody, nobody)
		if err := unix.Mount("tmpfs", filepath.Join(root, folder), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err != nil {
			return fmt.Errorf("mount %s in memory: %w", folder, err)
		}
	}
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return nil
}

// become gives up root for a user and the group of the same number, in all threads.
func become(id int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setgid(id); err != nil {
		return err
	}
	return syscall.Setuid(id)
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
