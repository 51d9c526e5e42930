package crew

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
)

// crewHelper makes the test binary begin a child, say its process id, and wait to be
// killed.
const crewHelper = "REPRISE_CREW_TEST_HELPER"

// A program that is killed leaves no worker running.
func TestWorkersDieWithTheirParent(t *testing.T) {
	if os.Getenv(crewHelper) != "" {
		c, err := begin(exec.Command("sleep", "60"))
		require.NoError(t, err)
		fmt.Println(c.Process.Pid)
		select {}
	}
	program, err := os.Executable()
	require.NoError(t, err)
	parent := exec.Command(program, "-test.run=^TestWorkersDieWithTheirParent$")
	parent.Env = append(os.Environ(), crewHelper+"=1")
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	defer func() { _ = parent.Process.Kill() }()
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(line, &pid)
	require.NoError(t, err, line)
	worker, err := os.FindProcess(pid)
	require.NoError(t, err)
	defer func() { _ = worker.Kill() }()

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return true
		}
		stat, err := p.Stat()
		return err != nil || stat.State == "Z"
	}, time.Minute, 10*time.Millisecond)
}

// A killed child is gone when Kill returns, even if it ended by itself.
func TestCrewKills(t *testing.T) {
	w := &Crew{running: map[int]*child{}}
	for _, seconds := range []string{"60", "0"} {
		c, err := begin(exec.Command("sleep", seconds))
		require.NoError(t, err)
		w.running[c.Process.Pid] = c
		if seconds == "0" {
			<-c.ended
		}
		require.NoError(t, w.Kill(c.Process.Pid))
		require.Empty(t, w.running)
		require.ErrorContains(t, w.Kill(c.Process.Pid), "no worker of ours")
	}
	_, err := begin(exec.Command("/nowhere/program"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
