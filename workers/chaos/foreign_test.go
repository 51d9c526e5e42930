package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/workers/envturn/envserver"
)

// serveProcess and serveTemporal are arguments with which this program is an environment.
const serveProcess, serveTemporal = "serve-process", "serve-temporal"

// servesEnvironment reports whether this program was started as an environment, which it then was.
func servesEnvironment() bool {
	if len(os.Args) < 2 || os.Args[1] != serveProcess && os.Args[1] != serveTemporal {
		return false
	}
	serve := func() error { return standin.Serve(os.Stdin, os.Stdout, os.Args[2], os.Args[3]) }
	if os.Args[1] == serveTemporal {
		serve = func() error { return envserver.Run(os.Stdin, os.Args[2:]) }
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

const foreignRun = "guess"

// foreignSpec plays the stand-in's game, which also judges the episodes.
var foreignSpec = []byte(`{
	"seed": 1, "iterations": 2,
	"policy": {"from": "starter", "starter": {"layers": 2, "hidden_size": 32, "intermediate_size": 96, "heads": 2, "kv_heads": 1},
		"warm_start": {"steps": 40, "rows": 9, "learning_rate": 0.01}},
	"environment": {"name": "foreign", "options": {"name": "guess"}, "timeout_seconds": 20},
	"rewards": [{"name": "foreign", "weight": 0.5, "options": {"name": "guess"}}],
	"rollout": {"groups": 4, "group_size": 4, "turns": 2, "max_new_tokens": 8, "think": false},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 2}, "evaluation": {"every": 0}
}`)

// TestChaosForeign kills the workers of a run in a foreign environment in each phase of Ask and Judge, and the
// environment in the middle of a call: over standard input and output, and over Temporal, the bytes
// are the same.
func TestChaosForeign(t *testing.T) {
	t.Parallel()
	with := func(flags ...string) *lane {
		l := newLane(t, sharedStack(t)).ofMethods()
		l.flags = append(l.flags, flags...)
		return l
	}
	process := func(fault, marker string) string {
		return fmt.Sprintf("guess=%s %s %s %s", os.Args[0], serveProcess, fault, marker)
	}
	undisturbed := with("--env-process", process(standin.None, "none"))
	p := undisturbed.worker(workerOptions{})
	undisturbed.start(foreignRun, foreignSpec)
	undisturbed.completes(foreignRun)
	p.kill()
	want := reach(t, undisturbed.store, foreignRun)

	disturbed := func(l *lane, faults []string, marker string, killed func()) {
		stop := l.keep(faults...)
		l.start(foreignRun, foreignSpec)
		eventually(t, patience, "the environment is in a call", func() error {
			pid, err := os.ReadFile(marker)
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(pid))
			if err != nil {
				return err
			}
			return syscall.Kill(n, syscall.SIGKILL)
		})
		killed()
		l.completes(foreignRun)
		stop()
		l.verifies(foreignRun)
		same(t, want, reach(t, l.store, foreignRun))
	}
	marker := filepath.Join(t.TempDir(), "process")
	disturbed(with("--env-process", process(standin.Stuck, marker)), []string{"Ask/begin/1", "Ask/written/1", "Ask/written/2", "Step/begin/1", "Judge/begin/1", "Judge/written/1"}, marker, func() {})

	marker = filepath.Join(t.TempDir(), "temporal")
	l := with("--env-temporal", "guess")
	serve := func() {
		command := exec.Command(os.Args[0], serveTemporal, l.stack.TemporalAddress(), l.namespace, "guess", standin.Stuck, marker)
		_, err := command.StdinPipe() // open until the test ends
		require.NoError(t, err)
		require.NoError(t, command.Start())
		t.Cleanup(func() {
			_ = command.Process.Kill() // it may have ended
			_ = command.Wait()
		})
	}
	serve()
	disturbed(l, []string{"Ask/written/1", "Ask/begin/2", "Judge/written/1"}, marker, serve)
}
