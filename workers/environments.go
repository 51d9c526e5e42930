package workers

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/openenv"
	"github.com/reprise-rl/reprise/envs/foreign/stdio"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/envturn"
	"github.com/reprise-rl/reprise/workers/judgeservers"
	"github.com/reprise-rl/reprise/workers/toolservers"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// maxEnvProcesses is the most processes of one foreign environment.
const maxEnvProcesses = 8

// maxAnswer is longer than any time that a spec gives an environment.
const maxAnswer = 2 * time.Hour

// served is a foreign environment that is a process, or one of OpenEnv's.
type served struct {
	name    string
	command []string        // of a process
	client  *openenv.Client // of OpenEnv's
}

// environments reads the foreign environments that the worker serves, besides those over Temporal.
func (o Options) environments() ([]served, error) {
	var out []served
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
		out = append(out, served{name: name, command: command})
	}
	for _, value := range o.EnvOpenEnv {
		name, address, err := openenv.Named(value)
		if err != nil {
			return nil, fmt.Errorf("--env-openenv: %w", err)
		}
		if seen[name] {
			return nil, fmt.Errorf("--env-openenv names the environment %q, which has a way already: each name is served in one way", name)
		}
		seen[name] = true
		// Callers bound each request by the spec's time; the client's own is beyond any of those.
		client, err := openenv.New(openenv.Config{URL: address, Timeout: maxAnswer})
		if err != nil {
			return nil, fmt.Errorf("--env-openenv %s: %w", name, err)
		}
		out = append(out, served{name: name, client: client})
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
// and the ways over Temporal and to OpenEnv. stop ends the processes.
func (o Options) openEnvironments(
	all []served, overTemporal func(name string) foreign.Way,
) (ways map[string]foreign.Way, stop func(), err error) {
	var pools []*stdio.Pool
	stop = func() {
		for _, pool := range pools {
			pool.Close()
		}
		for _, e := range all {
			if e.client != nil {
				e.client.Close()
			}
		}
	}
	ways = map[string]foreign.Way{}
	for _, e := range all {
		if e.client != nil {
			ways[e.name] = foreign.Always(e.client.Call)
			continue
		}
		pool, err := openPool(e.command)
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("--env-process %s: %w", e.name, err)
		}
		pools, ways[e.name] = append(pools, pool), foreign.Always(pool.Call)
	}
	for _, name := range o.EnvTemporal {
		ways[name] = overTemporal(name)
	}
	return ways, stop, nil
}

// openPool makes the processes of a command, which start when they are asked. Callers bound each request
// by the spec's time; the pool's own is beyond any of those.
func openPool(command []string) (*stdio.Pool, error) {
	return stdio.Open(stdio.Config{Command: command, Processes: min(runtime.NumCPU(), maxEnvProcesses), Timeout: maxAnswer})
}

// Describer asks the foreign environments of EnvProcesses and EnvOpenEnv for their descriptions. describe puts them into a
// spec, as the start of a run does; stop ends the processes. The error of a spec that names none of them says so.
func (o Options) Describer() (describe func(context.Context, spec.Train) (spec.Train, error), stop func(), err error) {
	all, err := o.environments()
	if err != nil {
		return nil, nil, err
	}
	ways, stopEnvironments, err := o.openEnvironments(all, nil)
	if err != nil {
		return nil, nil, err
	}
	answering, err := toolservers.Open(o.ToolServers)
	if err != nil {
		stopEnvironments()
		return nil, nil, err
	}
	stop = func() { stopEnvironments(); answering.Close() }
	h := host.Host{Environments: ways, Tools: answering.Askers()}
	return func(ctx context.Context, t spec.Train) (spec.Train, error) {
		named, err := run.Foreign(t)
		if err != nil {
			return t, err
		}
		for _, e := range all {
			if !slices.Contains(named, e.name) {
				return t, fmt.Errorf("a flag names the environment %q: the spec names %s", e.name, cmp.Or(strings.Join(named, ", "), "no foreign environment"))
			}
		}
		return h.Describe(ctx, t)
	}, stop, nil
}

// AskAgain asks the foreign environments of a committed iteration again about everything that they
// answered, and gives what they answer otherwise now, and how many answers were compared: of its
// rollout and its evaluations. The environments are those of EnvProcesses, EnvOpenEnv and
// EnvTemporal, the last over Client. Nothing is written.
func AskAgain(ctx context.Context, s store.Store, o Options, runID string, number int) (drifts []host.Drift, compared int, err error) {
	served, err := o.environments()
	if err != nil {
		return nil, 0, err
	}
	version := number + 1
	h := &host.Host{Store: s}
	loaded, err := h.Find(ctx, activities.FindInput{Run: runID, Version: &version})
	if err != nil {
		return nil, 0, err
	}
	m, err := store.ReadManifest(ctx, s, loaded.Head.Manifest)
	if err != nil {
		return nil, 0, err
	}
	over := envturn.Transport{Client: o.Client, Queue: "reprise-env-again." + rand.Text()}
	if len(o.EnvTemporal) > 0 { // the workflows run here, so that no other worker has to
		stop, err := over.Serve()
		if err != nil {
			return nil, 0, err
		}
		defer stop()
	}
	ways, stop, err := o.openEnvironments(served, func(name string) foreign.Way {
		return func(_ string, timeout time.Duration) foreign.Call {
			t := over
			t.Timeout = timeout
			return t.Fresh(name)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	defer stop()
	h.Environments = ways
	answering, err := toolservers.Open(o.ToolServers)
	if err != nil {
		return nil, 0, err
	}
	defer answering.Close()
	h.Tools = answering.Askers()
	judges, err := judgeservers.Open(o.Judges)
	if err != nil {
		return nil, 0, err
	}
	defer judges.Close()
	h.Judges = judges.Judges()
	return h.Drifts(ctx, loaded.Run, m)
}
