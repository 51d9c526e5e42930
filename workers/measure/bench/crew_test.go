package bench

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

// benchHelper makes the test binary begin a child, say its process id, and wait to be
// killed.
const benchHelper = "REPRISE_BENCH_TEST_HELPER"

// A bench that is killed leaves no worker running.
func TestWorkersDieWithTheBench(t *testing.T) {
	if os.Getenv(benchHelper) != "" {
		c, err := begin(exec.Command("sleep", "60"))
		require.NoError(t, err)
		fmt.Println(c.Process.Pid)
		select {}
	}
	program, err := os.Executable()
	require.NoError(t, err)
	bench := exec.Command(program, "-test.run=^TestWorkersDieWithTheBench$")
	bench.Env = append(os.Environ(), benchHelper+"=1")
	output, err := bench.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, bench.Start())
	defer func() { _ = bench.Process.Kill() }()
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(line, &pid)
	require.NoError(t, err, line)
	worker, err := os.FindProcess(pid)
	require.NoError(t, err)
	defer func() { _ = worker.Kill() }()

	require.NoError(t, bench.Process.Kill())
	_ = bench.Wait()
	require.Eventually(t, func() bool {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return true
		}
		stat, err := p.Stat()
		return err != nil || stat.State == "Z"
	}, time.Minute, 10*time.Millisecond)
}

// A killed child is gone when kill returns, even if it ended by itself.
func TestCrewKills(t *testing.T) {
	w := &workerCrew{running: map[int]*child{}}
	for _, seconds := range []string{"60", "0"} {
		c, err := begin(exec.Command("sleep", seconds))
		require.NoError(t, err)
		w.running[c.Process.Pid] = c
		if seconds == "0" {
			<-c.ended
		}
		require.NoError(t, w.kill(c.Process.Pid))
		require.Empty(t, w.running)
		require.ErrorContains(t, w.kill(c.Process.Pid), "no worker of ours")
	}
	_, err := begin(exec.Command("/nowhere/program"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
