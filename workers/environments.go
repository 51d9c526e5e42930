package workers

import (
	"fmt"
	"runtime"
	"time"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/stdio"
)

// maxEnvProcesses is the most processes of one foreign environment.
const maxEnvProcesses = 8

// maxAnswer is longer than any time that a spec gives an environment.
const maxAnswer = 2 * time.Hour

// envProcess is a foreign environment that is a process.
type envProcess struct {
	name    string
	command []string
}

// environments reads the foreign environments that the worker serves.
func (o Options) environments() ([]envProcess, error) {
	var out []envProcess
	seen := map[string]bool{}
	for _, value := range o.EnvProcesses {
		name, command, err := stdio.Named(value)
		if err != nil {
			return nil, fmt.Errorf("--env-process: %w", err)
		}
		if seen[name] {
			return nil, fmt.Errorf("--env-process names the environment %q twice: each name has one command", name)
		}
		seen[name] = true
		out = append(out, envProcess{name, command})
	}
	return out, nil
}

// openEnvironments makes the pools of environments' processes, which start when they are asked.
// stop ends them.
func openEnvironments(served []envProcess) (calls map[string]foreign.Call, stop func(), err error) {
	var pools []*stdio.Pool
	stop = func() {
		for _, p := range pools {
			p.Close()
		}
	}
	calls = map[string]foreign.Call{}
	for _, e := range served {
		// Callers bound each request by the spec's time; the pool's own is beyond any of those.
		pool, err := stdio.Open(stdio.Config{Command: e.command, Processes: min(runtime.NumCPU(), maxEnvProcesses), Timeout: maxAnswer})
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("--env-process %s: %w", e.name, err)
		}
		pools, calls[e.name] = append(pools, pool), pool.Call
	}
	return calls, stop, nil
}
