package chaos

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/workers/envturn/envserver"
)

// serveProcess and serveTemporal are arguments with which this program is an environment.
const serveProcess, serveTemporal, serveOpenEnv = "serve-process", "serve-temporal", "serve-openenv"

// servesEnvironment reports whether this program was started as an environment, which it then was.
func servesEnvironment() bool {
	if len(os.Args) < 2 {
		return false
	}
	var serve func() error
	switch os.Args[1] {
	case serveProcess:
		serve = func() error { return standin.Serve(os.Stdin, os.Stdout, os.Args[2], os.Args[3]) }
	case serveTemporal:
		serve = func() error { return envserver.Run(os.Stdin, os.Args[2:]) }
	case serveOpenEnv:
		serve = func() error {
			return http.ListenAndServe(os.Args[2], &standin.OpenEnv{Fault: os.Args[3], Marker: os.Args[4], Capacity: 3})
		}
	case serveTools:
		serve = func() error { return toolServer(os.Args[2], os.Args[3], os.Args[4]) }
	case serveAgent:
		serve = func() error { return playAgent(os.Args[2], os.Args[3]) }
	case serveJudge:
		serve = func() error { return judgeProcess(os.Args[2], os.Args[3], os.Args[4]) }
	default:
		return false
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
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 96, "heads": 2, "kv_heads": 1},
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
	beside(t)
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
		t.Helper()
		disturb(t, l, foreignSpec, faults, marker, killed)
		same(t, want, reach(t, l.store, foreignRun))
	}
	marker := filepath.Join(t.TempDir(), "process")
	disturbed(with("--env-process", process(standin.Stuck, marker)), []string{"Ask/begin/1", "Ask/written/1", "Ask/written/2", "Step/begin/1", "Judge/begin/1", "Judge/written/1"}, marker, func() {})

	marker = filepath.Join(t.TempDir(), "temporal")
	// The calls over Temporal are workflows, and work under a version too. That is current before a worker has polled.
	l := with("--env-temporal", "guess", "--deployment", deployment, "--build", "1")
	_, err := l.cli("worker", "deployment", "set-current-version", "--deployment-name", deployment, "--build-id", "1", "--allow-no-pollers", "--yes")
	require.NoError(t, err)
	serve := func() {
		serves(t, serveTemporal, l.stack.TemporalAddress(), l.namespace, "guess", standin.Stuck, marker)
	}
	serve()
	disturbed(l, []string{"Ask/written/1", "Ask/begin/2", "Judge/written/1"}, marker, serve)
}

// openEnvSpec plays the stand-in's game over OpenEnv's WebSocket.
var openEnvSpec = fmt.Appendf(nil, `{
	"seed": 1, "iterations": 2,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 96, "heads": 2, "kv_heads": 1},
		"warm_start": {"steps": 40, "rows": 9, "learning_rate": 0.01}},
	"environment": {"name": "foreign", "options": {"name": "guess", "options": %s}, "timeout_seconds": 20},
	"rollout": {"groups": 4, "group_size": 4, "turns": 2, "max_new_tokens": 8, "think": false},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 2}, "evaluation": {"every": 0}
}`, standin.OpenEnvOptions)

// TestChaosOpenEnv kills a server of OpenEnv's in the middle of an episode, and the workers in each phase of Ask:
// the bytes are the same.
func TestChaosOpenEnv(t *testing.T) {
	beside(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	marker := filepath.Join(t.TempDir(), "process")
	lane := func() *lane {
		l := newLane(t, sharedStack(t)).ofMethods()
		l.flags = append(l.flags, "--env-openenv", "guess=ws://"+address+"/ws")
		return l
	}
	stopped := serves(t, serveOpenEnv, address, standin.None, marker)
	undisturbed := lane()
	p := undisturbed.worker(workerOptions{})
	undisturbed.start(foreignRun, openEnvSpec)
	undisturbed.completes(foreignRun)
	p.kill()
	stopped()

	serve := func() { serves(t, serveOpenEnv, address, standin.Stuck, marker) }
	serve()
	l := lane()
	disturb(t, l, openEnvSpec, []string{"Ask/begin/1", "Ask/written/1", "Ask/begin/2"}, marker, serve)
	same(t, reach(t, undisturbed.store, foreignRun), reach(t, l.store, foreignRun))
}

// disturb runs a spec with workers that end on purpose, and kills the environment whose process number is in the
// marker file.
func disturb(t *testing.T, l *lane, spec []byte, faults []string, marker string, killed func()) {
	t.Helper()
	stop := l.keep(faults...)
	l.start(foreignRun, spec)
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
}

// serves starts this program as an environment, which ends with the test, or before.
func serves(t *testing.T, arguments ...string) (stop func()) {
	t.Helper()
	command := exec.Command(os.Args[0], arguments...)
	_, err := command.StdinPipe() // open until the test ends
	require.NoError(t, err)
	require.NoError(t, command.Start())
	stop = sync.OnceFunc(func() {
		_ = command.Process.Kill() // it may have ended
		_ = command.Wait()
	})
	t.Cleanup(stop)
	return stop
}
