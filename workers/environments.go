package workers

import (
	"fmt"
	"runtime"
	"time"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/workers/envturn"
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
	for _, name := range o.EnvTemporal {
		if name == "" || seen[name] {
			return nil, fmt.Errorf("--env-temporal names the environment %q, which has a way already or no name: each name is served in one way", name)
		}
		seen[name] = true
	}
	return out, nil
}

// openEnvironments makes the pools of environments' processes, which start when they are asked,
// and the ways over Temporal. stop ends the processes.
func (p *process) openEnvironments(served []envProcess) (ways map[string]foreign.Way, stop func(), err error) {
	var pools []*stdio.Pool
	stop = func() {
		for _, pool := range pools {
			pool.Close()
		}
	}
	ways = map[string]foreign.Way{}
	for _, e := range served {
		// Callers bound each request by the spec's time; the pool's own is beyond any of those.
		pool, err := stdio.Open(stdio.Config{Command: e.command, Processes: min(runtime.NumCPU(), maxEnvProcesses), Timeout: maxAnswer})
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("--env-process %s: %w", e.name, err)
		}
		pools, ways[e.name] = append(pools, pool), foreign.Always(pool.Call)
	}
	for _, name := range p.EnvTemporal {
		ways[name] = func(turn string, timeout time.Duration) foreign.Call {
			return envturn.Transport{Client: p.Client, Timeout: timeout}.Way(name, turn)
		}
	}
	return ways, stop, nil
}
