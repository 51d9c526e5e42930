package keeper

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/leftover"
)

// TestMain is also the programs that the tests start: the first argument says which.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "worker": // starts a program under a keeper, and waits to be killed
			command := exec.Command(os.Args[0], "stray", os.Args[2], "stay")
			if _, err := Start(command); err != nil {
				panic(err)
			}
			select {}
		case "stray": // leaves a sleeping process in a session of its own, whose number it writes, and stays or ends
			stray(os.Args[2])
			if os.Args[3] == "stay" {
				select {}
			}
			os.Exit(7)
		case "spy":
			spy(os.Args[2])
			return
		}
	}
	os.Exit(m.Run())
}

// stray starts a process as a daemon is started: its parent ends, and it has a session of its own.
func stray(file string) {
	command := exec.Command("sh", "-c", `sleep 600 & echo $! > "$0.new"; mv "$0.new" "$0"`, file)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Run(); err != nil {
		panic(err)
	}
}

// alive reports whether a process is there.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// strayOf waits for the number of a stray process, which lives.
func strayOf(t *testing.T, file string) int {
	t.Helper()
	pid := 0
	require.Eventually(t, func() bool {
		content, err := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(content)))
		return err == nil && pid > 1
	}, 20*time.Second, time.Millisecond)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

// needAdoption skips where a keeper does not know what left its program's group.
func needAdoption(t *testing.T) {
	t.Helper()
	if !adopts {
		t.Skip("SKIPPED: " + runtime.GOOS + " has no adoption of children")
	}
}

// Nothing is left of a program when its keeper is asked to end, ends with its program or is told to stop, nor when the
// process that started the keeper is killed: not even a daemon.
func TestNothingIsLeft(t *testing.T) {
	needAdoption(t)
	for name, test := range map[string]func(t *testing.T, file string) (pid int){
		"asked": func(t *testing.T, file string) int {
			command := exec.Command(os.Args[0], "stray", file, "stay")
			end, err := Start(command)
			require.NoError(t, err)
			pid := strayOf(t, file)
			require.True(t, alive(pid))
			end()
			end()
			require.Error(t, command.Wait())
			require.Equal(t, -1, command.ProcessState.ExitCode(), "as killed")
			return pid
		},
		"the program ended": func(t *testing.T, file string) int {
			command := exec.Command(os.Args[0], "stray", file, "end")
			end, err := Start(command)
			require.NoError(t, err)
			defer end()
			require.Error(t, command.Wait())
			require.Equal(t, 7, command.ProcessState.ExitCode(), "the program's own")
			return strayOf(t, file)
		},
		"the keeper was told to stop": func(t *testing.T, file string) int {
			command := exec.Command(os.Args[0], "stray", file, "stay")
			end, err := Start(command)
			require.NoError(t, err)
			defer end()
			pid := strayOf(t, file)
			require.True(t, alive(pid))
			require.NoError(t, command.Process.Signal(syscall.SIGTERM))
			require.Error(t, command.Wait())
			return pid
		},
		"the worker was killed": func(t *testing.T, file string) int {
			worker := exec.Command(os.Args[0], "worker", file)
			require.NoError(t, worker.Start())
			pid := strayOf(t, file)
			require.True(t, alive(pid))
			require.NoError(t, worker.Process.Kill())
			require.Error(t, worker.Wait())
			return pid
		},
	} {
		t.Run(name, func(t *testing.T) {
			leftover.Check(t)
			pid := test(t, filepath.Join(t.TempDir(), "stray"))
			require.Eventually(t, func() bool { return !alive(pid) }, 20*time.Second, time.Millisecond)
		})
	}
}

// A program whose keeper is killed dies with it.
func TestKilledKeeper(t *testing.T) {
	needAdoption(t)
	command := exec.Command("sh", "-c", "echo $$; exec sleep 600")
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	end, err := Start(command)
	require.NoError(t, err)
	defer end()
	line := make([]byte, 20)
	n, err := out.Read(line)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	require.NoError(t, err)
	require.True(t, alive(pid))
	require.NoError(t, command.Process.Kill())
	_, err = io.Copy(io.Discard, out) // until the program's end of it is closed
	require.NoError(t, err)
	require.Error(t, command.Wait())
	require.Eventually(t, func() bool { return !alive(pid) }, 20*time.Second, time.Millisecond)
}

// A keeper's exit status is its program's, and what the program reads and writes is not its keeper's.
func TestExitStatus(t *testing.T) {
	for script, want := range map[string]int{
		"cat; exit 0":             0,
		"cat; exit 3":             3,
		"cat; kill -SEGV $$":      128 + int(syscall.SIGSEGV),
		"cat; kill -KILL $$":      128 + int(syscall.SIGKILL),
		"exec >&-; cat >&2":       0,
		"exec ./no-such-program/": 126,
	} {
		command := exec.Command("sh", "-c", script)
		if want == 126 {
			command = exec.Command(t.TempDir()) // a folder
			command.Err = nil
		}
		var out, said bytes.Buffer
		command.Stdin, command.Stdout, command.Stderr = strings.NewReader("hello"), &out, &said
		end, err := Start(command)
		require.NoError(t, err)
		err = command.Wait()
		end()
		require.Equal(t, want, command.ProcessState.ExitCode(), "%s: %v %s", script, err, said.String())
		signal, died := Died(want)
		require.Equal(t, want > 128, died)
		switch {
		case want == 126:
			require.Contains(t, said.String(), "permission denied")
		case strings.HasPrefix(script, "cat"):
			require.Equal(t, "hello", out.String())
		}
		if died {
			require.Contains(t, script, map[syscall.Signal]string{syscall.SIGSEGV: "SEGV", syscall.SIGKILL: "KILL"}[signal])
		}
	}
	_, err := Start(exec.Command("no-such-program-at-all"))
	require.True(t, errors.Is(err, exec.ErrNotFound), "%v", err)
}

// A program gets the variables it is given, and no descriptor but the standard ones.
func TestClean(t *testing.T) {
	needAdoption(t) // /proc/self/fd
	t.Setenv("KEY", "do-not-tell")
	leak, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer leak.Close()
	number, err := syscall.Dup(int(leak.Fd())) // as a library opens it: not closed in what is started
	require.NoError(t, err)
	defer syscall.Close(number)
	command := exec.Command("sh", "-c", "env; ls /proc/self/fd | tr '\\n' ' '")
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "OWN=1"}
	var out bytes.Buffer
	command.Stdout = &out
	end, err := Start(command)
	require.NoError(t, err)
	defer end()
	require.NoError(t, command.Wait())
	require.Contains(t, out.String(), "OWN=1")
	require.NotContains(t, out.String(), "do-not-tell")
	require.True(t, strings.HasSuffix(out.String(), "\n0 1 2 3 "), "%q: 3 is the folder that ls reads", out.String())
}
