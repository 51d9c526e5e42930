package keeper

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// planted is the key that a spy looks for. It is put together, so that the program's text does not have it.
func planted() string { return strings.Join([]string{"planted", "key"}, "-") }

// spy is the worker if it is told so: it hides or does not, and starts the spy under a keeper. The spy prints the
// variables that it finds in other processes, and whether it can open the worker's memory.
func spy(as string) {
	if as != "look" {
		if as == "hidden" {
			if err := Hide(); err != nil {
				panic(err)
			}
		}
		command := exec.Command(os.Args[0], "spy", "look", strconv.Itoa(os.Getpid()))
		command.Env = []string{"PATH=/usr/bin:/bin"}
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		end, err := Start(command)
		if err != nil {
			panic(err)
		}
		defer end()
		if err := command.Wait(); err != nil {
			panic(err)
		}
		return
	}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		content, err := os.ReadFile(file)
		if err == nil && bytes.Contains(content, []byte(planted())) {
			fmt.Println("found in", file)
		}
	}
	for _, file := range []string{"mem", "environ", "maps", "fd/0"} {
		if f, err := os.Open(filepath.Join("/proc", os.Args[3], file)); err == nil {
			_, _ = io.CopyN(io.Discard, f, 1)
			fmt.Println("open", file)
		}
	}
}

// A program that this process starts can read neither the variables that this process was started with nor its memory,
// where it hides: as root and as another user. Where it does not hide, it can.
func TestKeysAreHidden(t *testing.T) {
	folder := t.TempDir()
	for f := folder; f != os.TempDir() && f != "/"; f = filepath.Dir(f) {
		require.NoError(t, os.Chmod(f, 0o755)) // for another user
	}
	program := filepath.Join(folder, "spy")
	content, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, content, 0o755)) //nolint:gosec // it is executed
	users := map[string]*syscall.Credential{"this user": nil}
	if os.Getuid() == 0 {
		users["another user"] = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for user, credential := range users {
		for _, as := range []string{"hidden", "open"} {
			t.Run(user+" "+as, func(t *testing.T) {
				worker := exec.Command(program, "spy", as)
				worker.Env = []string{"PATH=/usr/bin:/bin", "AWS_SECRET_ACCESS_KEY=" + planted()}
				worker.Dir = folder
				worker.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
				out, err := worker.CombinedOutput()
				require.NoError(t, err, "%s", out)
				found := strings.Contains(string(out), fmt.Sprintf("found in /proc/%d/environ", worker.Process.Pid))
				switch {
				case as == "hidden":
					require.Empty(t, string(out))
				case credential != nil || os.Getuid() != 0: // the witness: this spy reads what does not hide
					require.True(t, found, "%s", out)
				}
			})
		}
	}
}
