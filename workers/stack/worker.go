package stack

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/judgeservers"
	"github.com/reprise-rl/reprise/workers/toolservers"
)

// DevHeartbeat is the session heartbeat of a development stack: a laptop that compiles or swaps beside it is silent for
// some seconds.
const DevHeartbeat = 15 * time.Second

// AddWorkerFlags adds the flags of a worker; heartbeat is the default of
// --session-heartbeat.
func AddWorkerFlags(f *pflag.FlagSet, o *workers.Options, heartbeat time.Duration) {
	AddFingerprintFlags(f, &o.Device)
	f.DurationVar(&o.SessionHeartbeat, "session-heartbeat", heartbeat, "silence after which a worker's running step begins anew, and its lease is lost unless --lease-heartbeat says otherwise")
	f.DurationVar(&o.LeaseHeartbeat, "lease-heartbeat", 0, "silence after which a device worker's lease is lost (default: 3s for reprise worker without --session-heartbeat, else --session-heartbeat)")
	f.DurationVar(&o.Grace, "grace", 25*time.Second, "how long the running step may finish after SIGTERM, SIGUSR1 or a notice")
	f.StringVar(&o.Notices, "notices", "", "the `cloud` whose notices that this machine ends drain the worker: auto, aws, gcp, azure or none (default: auto for reprise worker, else none)")
	f.IntVar(&o.Follow, "follow", 1, "how many `runs` of its fingerprint a device worker without a run follows: it keeps their newest weights, so that a run that loses its worker continues here at once (0: none)")
	f.Float64Var(&o.FollowGB, "follow-gb", 0, "how many `GiB` of the device the weights of the runs that it follows may take (0: half of its memory)")
	f.IntVar(&o.HostSlots, "host-slots", 8, "host activities at once")
	f.Float64Var(&o.HostRate, "host-rate", 0, "host activities that begin in a second (0: no limit)")
	f.StringArrayVar(&o.EnvProcesses, "env-process", nil, "`NAME=COMMAND` that starts a process of a foreign environment, for the host role; may be repeated")
	f.StringArrayVar(&o.EnvTemporal, "env-temporal", nil, "`NAME` of a foreign environment whose workers poll Temporal's queue reprise-env.NAME, for the host role; may be repeated")
	f.StringArrayVar(&o.EnvOpenEnv, "env-openenv", nil, "`NAME=URL` of an environment of OpenEnv's, as echo=ws://127.0.0.1:8000/ws, for the host role; may be repeated")
	AddToolFlags(f, &o.ToolServers, ", for the host role")
	f.StringArrayVar(&o.Agents.Agents, "agent", nil, "`NAME=COMMAND or NAME=URL` of an agent that plays the episodes of a spec with rollout.agent, for the device role; may be repeated")
	f.StringArrayVar(&o.Agents.Variables, "agent-variable", nil, "`NAME=VARIABLE`: the command of the agent NAME gets an environment variable; may be repeated")
	AddJudgeFlags(f, &o.Judges, "that judges episodes, for the host role")
	f.StringVar(&o.EnvFile, "env-file", "", `JSON file of more foreign environments, {"NAME": "COMMAND"}, read again for each request, so that it may change while the worker runs (reprise dev: envs.json in its folder, which reprise env add writes)`)
	f.IntVar(&o.ContinueAfter, "continue-as-new-after", 0, "iterations before a run continues as new (0: when the server suggests it)")
	f.StringVar(&o.PagesURL, "pages-url", "", "URL at which `reprise pages` serves: the details in the Web UI link to a run's page there (reprise dev sets its own)")
	f.Float64Var(&o.PriceHour, "price-hour", 0, "price of an hour of the device, in your currency: runs sum it by device kind (0: not known)")
	f.StringVar(&o.ModelCache, "model-cache", "", "folder for copies of base models above 8 MiB, of 64 GiB at most (default: reprise/models in the user's cache folder; none: no copies)")
	AddProgramCacheKeyFlag(f, &o.ProgramCacheKey)
	f.StringVar(&o.MetricsListen, "metrics-listen", "", "host:port at which Prometheus reads this worker's metrics (default: none; without a host: 127.0.0.1)")
	f.IntVar(&o.MetricsRuns, "metrics-runs", 1, "how many runs the metrics' labels name: those that committed last (0: none)")
}

// AddToolFlags adds the flags that name servers of tools; note ends the usage of --mcp.
func AddToolFlags(f *pflag.FlagSet, o *toolservers.Flags, note string) {
	f.StringArrayVar(&o.MCP, "mcp", nil, "`NAME=COMMAND or NAME=URL` of an MCP server, as time=mcp-server-time, whose tools a spec may allow"+note+"; may be repeated")
	f.StringArrayVar(&o.Headers, "mcp-header", nil, "`NAME=HEADER=VARIABLE`: requests to the MCP server NAME have a header with the value of an environment variable; may be repeated")
	f.StringArrayVar(&o.Variables, "mcp-variable", nil, "`NAME=VARIABLE`: the command of the MCP server NAME gets an environment variable; may be repeated")
}

// AddJudgeFlags adds the flags that name servers of language models; does ends the usage of --judge.
func AddJudgeFlags(f *pflag.FlagSet, o *judgeservers.Flags, does string) {
	f.StringArrayVar(&o.Judges, "judge", nil, "`NAME=URL` of a server of the chat-completions protocol, as grader=http://127.0.0.1:8000/v1, "+does+"; may be repeated")
	f.StringArrayVar(&o.Variables, "judge-variable", nil, "`NAME=VARIABLE`: requests to the judge NAME have the key that an environment variable has; may be repeated")
}

// AddProgramCacheKeyFlag adds the flag of the key by which workers share programs.
func AddProgramCacheKeyFlag(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "program-cache-key", "", "`FILE` with an Ed25519 key in PEM, by which device workers share compiled programs through the bucket: who has the private key writes and reads them, who has the public one reads (default: the bucket's are not looked at)")
}

// AddFingerprintFlags adds the flags of a device on which runs are started: its
// fingerprint becomes theirs.
func AddFingerprintFlags(f *pflag.FlagSet, o *model.DeviceOptions) {
	AddDeviceFlags(f, o, "; they are part of the fingerprint")
	f.Lookup("plugin").Usage += " (default: the pinned CPU plugin)"
}

// AddDeviceFlags adds the flags that open a device; note ends the usage of --xla-flags.
func AddDeviceFlags(f *pflag.FlagSet, o *model.DeviceOptions, note string) {
	f.StringVar(&o.Plugin, "plugin", "", "PJRT plugin (.so), or cuda13 or cuda12: the one that make plugin has put there, or that a Python has [REPRISE_PJRT_PLUGIN]")
	f.IntSliceVar(&o.Devices, "devices", nil, "numbers of the plugin's `devices` to compute on, as 0,1: results do not depend on how many there are (default 0)")
	f.IntVar(&o.VirtualDevices, "virtual-devices", 0, "CPU: make it `N` devices, of which each has all cores, and use them all unless --devices names some")
	f.StringVar(&o.ProgramCache, "program-cache", programcache.Default, "folder that keeps compiled programs for the next start, none for no folder [REPRISE_PROGRAM_CACHE]; default is reprise/programs in your cache folder")
	f.Float64Var(&o.Memory.Fraction, "memory-fraction", 0, "CUDA: the share of the device's memory that may be taken [REPRISE_MEMORY_FRACTION] (default 0.95)")
	f.StringVar(&o.Memory.Preallocate, "preallocate", "", "CUDA: true takes that share at once, so that no other process gets it [REPRISE_PREALLOCATE] (default false)")
	f.StringVar(&o.Memory.Allocator, "allocator", "", "CUDA: "+strings.Join(model.Allocators, ", ")+" [REPRISE_ALLOCATOR]")
	f.StringVar(&o.XLAFlags, "xla-flags", "", "additional XLA flags"+note)
}
