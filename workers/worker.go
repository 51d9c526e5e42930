// Package workers runs the processes of Reprise: host workers, device workers,
// workflow workers, or all in one.
package workers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/envs/agent"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/notices"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/envturn"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/health"
	"github.com/reprise-rl/reprise/workers/judgeservers"
	"github.com/reprise-rl/reprise/workers/lease"
	"github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/telemetry"
	"github.com/reprise-rl/reprise/workers/toolservers"
	"github.com/reprise-rl/reprise/workflows"
)

// Role is a part that a process can take.
type Role string

// The roles. A laptop's process takes all of them.
const (
	RoleWorkflow Role = "workflow" // decides: workflow tasks
	RoleHost     Role = "host"     // steps that need no device
	RoleDevice   Role = "device"   // the device: one session at a time
)

// Roles are all roles, in the order they are documented.
var Roles = []Role{RoleWorkflow, RoleHost, RoleDevice}

// Options describe a worker process.
type Options struct {
	Client    client.Client
	Namespace string // the client's
	// Codec is the client's; nil leaves payloads plain.
	Codec  *codec.Codec
	Store  store.Store
	Logger *zap.Logger
	Roles  []Role
	// Device is how the device is opened; for RoleDevice.
	Device model.DeviceOptions
	// SessionHeartbeat is how long a worker may be silent before its running step begins anew.
	SessionHeartbeat time.Duration
	// LeaseHeartbeat is how long it may be silent before its lease is lost; 0 is SessionHeartbeat. What sends these heartbeats
	// computes nothing, unless it is one process with what does.
	LeaseHeartbeat time.Duration
	// Grace is how long a terminated worker may finish what it runs.
	Grace time.Duration
	// Notices says whose notices that the machine ends are watched: one of notices.Choices; empty is none. A notice
	// drains the worker, within Grace and before the machine ends.
	Notices string
	// PagesURL is where the pages of runs are served, for the links in the Web UI; "" for none.
	PagesURL string
	// ContinueAfter makes runs continue as new after so many iterations.
	ContinueAfter int
	// HostSlots bounds the host activities at once; 0 means 8.
	HostSlots int
	// HostRate bounds the host activities that begin in a second; 0 means no bound.
	HostRate float64
	// EnvProcesses are the foreign environments that the host role serves, each NAME=COMMAND.
	EnvProcesses []string
	// EnvTemporal are the names of the foreign environments that the host role serves through
	// their own workers, which poll Temporal's queues reprise-env.NAME.
	EnvTemporal []string
	// EnvOpenEnv are the environments of OpenEnv's that the host role serves, each NAME=URL.
	EnvOpenEnv []string
	// ToolServers are the servers of tools that the host role asks.
	ToolServers toolservers.Flags
	// Agents are the agents that the device role has.
	Agents agent.Flags
	// Judges are the servers of language models that the host role asks to judge episodes.
	Judges judgeservers.Flags
	// EnvFile, if set, is a file of more environments that the host role serves: see ReadEnvFile. It is
	// read again for each request, so that environments can be added while the worker runs.
	EnvFile string
	// Deployment and Build name the Worker Deployment Version of the process's decisions and of its steps of a host: see
	// versioning. Both are empty in a process that is unversioned.
	Deployment, Build string
	// MetricsListen, if set, is the host:port at which Prometheus reads this
	// process's metrics: see telemetry.Listen.
	MetricsListen string
	// MetricsRuns is how many runs at once are named in the labels.
	MetricsRuns int
	// ModelCache is the folder in which a device worker keeps copies of base models' weights.
	// Empty is reprise/models in the user's cache folder, "none" keeps none.
	ModelCache string
	// ProgramCacheKey is the file of the key by which a device worker shares compiled programs through the bucket: see
	// programcache.LoadSigningKey. Empty leaves the bucket's alone.
	ProgramCacheKey string
	// PriceHour is the price of an hour of the device, in the user's own currency; 0: not
	// known.
	PriceHour float64
	// Follow is the number of runs whose newest weights an idle device worker keeps, and FollowGB how many GiB those may take; 0 is
	// half of the device's memory. See device.Engine.Follow.
	Follow   int
	FollowGB float64
	// Child, where set, is how a process of its own is started that computes for this one, which then opens no device.
	Child *ChildOptions
	// Parent, where set, is this process's connection to the one that started it: it computes for that one.
	Parent *Parent
	// Around are called around every activity and workflow; for the bench.
	Around []interceptor.WorkerInterceptor
	// Faults, if set, makes this process fail on purpose; for tests.
	Faults *faults.Plan
	// Ready, if set, is called when all workers poll.
	Ready func(activities.DeviceInfo)
}

// Has reports whether the process takes the role.
func (o Options) Has(r Role) bool { return slices.Contains(o.Roles, r) }

// stickyTime is how long a workflow task waits for the worker that has the
// workflow in memory. That one may be dead, and then the wait is part of what a
// kill costs; a live one on a busy machine costs a replay, of milliseconds.
const stickyTime = time.Second

// cacheBytes is how much of the artifacts that it wrote or read a process keeps: the
// artifacts of a few iterations of a small run, no weights of a large model.
const cacheBytes = 64 << 20

// deviceStop is how long a device worker waits for activities that its drain has
// ended already.
const deviceStop = 2 * time.Second

// deciderStop is how long a session that is given back waits until this process decides nothing
// more: longer than a decision takes, but not for a step of a host.
const deciderStop = 2 * time.Second

// answerTime is the time that an activity's result needs to reach the server.
const answerTime = 300 * time.Millisecond

// Check finds what no worker could be made of.
func (o Options) Check() error {
	if len(o.Roles) == 0 {
		return errors.New("a worker needs a role: workflow, host or device")
	}
	if o.HostSlots < 0 || o.HostRate < 0 {
		return fmt.Errorf("--host-slots is %d and --host-rate %g: neither can be negative", o.HostSlots, o.HostRate)
	}
	if _, err := o.environments(); err != nil {
		return err
	}
	if err := o.ToolServers.Check(); o.Has(RoleHost) && err != nil {
		return err
	}
	if _, err := o.Agents.Programs(); err != nil {
		return err
	}
	if err := o.Judges.Check(); o.Has(RoleHost) && err != nil {
		return err
	}
	if _, err := o.programCacheKey(); err != nil {
		return err
	}
	if err := notices.Check(o.Notices); err != nil {
		return fmt.Errorf("--notices: %w", err)
	}
	if o.Follow < 0 || !(o.FollowGB >= 0) || math.IsInf(o.FollowGB, 0) {
		return fmt.Errorf("--follow is %d and --follow-gb %g: neither can be negative", o.Follow, o.FollowGB)
	}
	if err := o.checkVersion(); err != nil {
		return err
	}
	if o.MetricsRuns < 0 {
		return fmt.Errorf("--metrics-runs is %d: it cannot be negative", o.MetricsRuns)
	}
	if !(o.PriceHour >= 0) || math.IsInf(o.PriceHour, 0) {
		return fmt.Errorf("--price-hour is %g: give the price of an hour of the device, or leave it out", o.PriceHour)
	}
	return nil
}

// Run serves the queues of the roles until ctx ends, or a notice comes that the machine ends. Then it takes no new work, lets the
// running device activity finish within Grace, ends the lease at once, and
// returns nil. So the run continues elsewhere without waiting for a time-out. If the device
// can no longer be used in this process, Run does the same and returns a *device.Ending: see
// ExitCode.
func Run(ctx context.Context, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.HostSlots == 0 {
		o.HostSlots = 8
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	notice, err := notices.Watch(watching, notices.Options{Cloud: o.Notices, Log: o.Logger})
	if err != nil {
		return fmt.Errorf("watch the machine's notices: %w", err)
	}
	if len(notice) > 0 {
		o.Logger.Warn("a notice: " + (<-notice).String() + ": nothing is started on this machine")
		return nil
	}
	fatal := make(chan error, 8)
	if err := o.claim(ctx, o.Store, claimAgain, fatal); err != nil {
		return err
	}
	if o.Faults != nil {
		o.Store = o.Faults.Store(o.Store)
	}
	cache := store.NewCache(o.Store, cacheBytes)
	o.Store = cache
	p := &process{Options: o, fatal: fatal, endings: make(chan *device.Ending, 8), health: health.New()}
	cache.Rewritten = func(ref store.Ref, damage error) {
		o.Logger.Warn("an object was damaged in the bucket; no manifest names it, so it is written again",
			zap.String("key", ref.Key), zap.Error(damage))
		if p.metrics != nil {
			p.metrics.Rewritten()
		}
	}
	defer func() { // after the workers have stopped, so that no answer is cut off
		if p.device != nil {
			p.device.Agents.Close()
		}
		if p.closeEnvironments != nil {
			p.closeEnvironments()
		}
	}()
	if o.MetricsListen != "" {
		stop, err := p.serveMetrics(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	stopTracing, err := p.trace(ctx)
	if err != nil {
		return err
	}
	defer stopTracing()
	// Device activities live in a context of their own: it ends after the drain,
	// which fails a session of the SDK's in a reply instead of a time-out.
	p.deviceCtx, p.endDevice = context.WithCancel(context.Background())
	defer p.endDevice()
	info, err := p.startRoles(ctx)
	if err != nil {
		p.endChild()
		p.stopWorkers()
		return err
	}
	p.health.Serves()
	if o.Ready != nil {
		o.Ready(info)
	}
	o.Logger.Info("worker serves", zap.Any("roles", o.Roles), zap.String("fingerprint", info.Fingerprint), zap.Int("devices", p.devices()))
	var failed error
	grace, why := o.Grace, "the worker was told to stop"
	select {
	case <-ctx.Done():
	case n := <-notice:
		why = "a notice: " + n.String()
		o.Logger.Warn(why + ": stopping")
		grace = n.Grace(o.Grace, time.Now())
	case failed = <-p.fatal:
		failed = fmt.Errorf("worker: %w", failed)
	case end := <-p.endings:
		failed = fmt.Errorf("worker: %w", end)
		o.Logger.Error("the device cannot be used in this process any more", zap.String("cause", string(end.Cause)),
			zap.String("reason", end.Reason), zap.Int("exit", ExitCode(end)))
		if end.Cause == device.Stuck {
			grace = 0 // its step will not finish
		}
	}
	p.health.Stops()
	p.drain(grace, leaseEnd(failed, why))
	p.stopWorkers()
	p.endChild()
	o.Logger.Info("stopped")
	return failed
}

// devices is the number of devices that the worker has.
func (p *process) devices() int {
	switch {
	case p.child != nil:
		return p.child.count()
	case p.opened != nil:
		return p.opened.Count()
	}
	return 0
}

// process is a worker process while it runs.
type process struct {
	Options
	metrics *telemetry.Metrics // nil if nobody listens
	health  *health.State
	// traced sends spans; empty without a collector.
	traced []interceptor.WorkerInterceptor
	// metricsURL is where they are read.
	metricsURL string
	started    []worker.Worker
	fatal      chan error
	endings    chan *device.Ending
	decider    worker.Worker  // serves workflow tasks; nil without the role
	device     *device.Device // nil where this process does not compute
	opened     *model.Device  // what device computes on
	holder     *lease.Holder  // nil where this process gives no leases
	child      *child         // nil where no other process computes for this one
	deviceCtx  context.Context
	endDevice  context.CancelFunc
	// closeEnvironments ends the processes of foreign environments; nil without the host role.
	closeEnvironments func()
}

// base are the options all of the process's workers share.
func (p *process) base() worker.Options {
	o := worker.Options{WorkerStopTimeout: p.Grace, OnFatalError: func(err error) { p.fatal <- err }}
	o.Interceptors = slices.Concat(p.Around, p.traced)
	if p.metrics != nil {
		o.Interceptors = append(o.Interceptors, p.metrics.Interceptor())
	}
	if p.Faults != nil {
		o.Interceptors = append(o.Interceptors, p.Faults.Interceptor())
	}
	return o
}

func (p *process) start(w worker.Worker) error {
	if err := w.Start(); err != nil {
		return err
	}
	p.started = append(p.started, w)
	return nil
}

// startRoles starts the workers of the process's roles. The device is that of this process, or of its child.
func (p *process) startRoles(ctx context.Context) (info activities.DeviceInfo, err error) {
	if p.Has(RoleDevice) {
		if info, err = p.startDevice(ctx); err != nil {
			return info, fmt.Errorf("start the device worker: %w", err)
		}
	}
	if p.Has(RoleHost) || p.Has(RoleWorkflow) {
		if err := p.startRuns(); err != nil {
			return info, fmt.Errorf("start the worker of runs: %w", err)
		}
	}
	return info, nil
}

// register names activities as the table of steps does.
func register(w worker.Worker, of []steps.Binding) {
	for _, b := range of {
		w.RegisterActivityWithOptions(b.Func, activity.RegisterOptions{Name: b.Name})
	}
}

// hostSteps are the steps that need no device; none without the role.
func (p *process) hostSteps() ([]steps.Binding, error) {
	if !p.Has(RoleHost) {
		return nil, nil
	}
	attributes := func(ctx context.Context) bool { return attributesRegistered(ctx, p.Client, p.Namespace) }
	served, err := p.environments()
	if err != nil {
		return nil, err
	}
	environments, closePools, err := p.openEnvironments(served, func(name string) foreign.Way {
		return func(turn string, timeout time.Duration) foreign.Call {
			return envturn.Transport{Client: p.Client, Timeout: timeout}.Way(name, turn)
		}
	})
	if err != nil {
		return nil, err
	}
	p.closeEnvironments = closePools
	var more func(string) (foreign.Way, bool, error)
	if p.EnvFile != "" {
		file := newEnvFile(p.EnvFile)
		more = file.find
		p.closeEnvironments = func() { closePools(); file.close() }
	}
	answering, err := toolservers.Open(p.ToolServers)
	if err != nil {
		return nil, err
	}
	judges, err := judgeservers.Open(p.Judges)
	if err != nil {
		answering.Close()
		return nil, err
	}
	closeEnvironments := p.closeEnvironments
	p.closeEnvironments = func() { closeEnvironments(); answering.Close(); judges.Close() }
	h := host.Host{Store: p.Store, Attributes: attributes, WriteReport: writeReport, Environments: environments, More: more,
		Tools: answering.Askers(), Judges: judges.Judges(),
		Flags: activities.Flags{ContinueAfter: p.ContinueAfter, SessionHeartbeat: p.SessionHeartbeat, LeaseHeartbeat: p.LeaseHeartbeat}}
	trials := sweeps.Sweeps{Store: p.Store, Attributes: attributes, Look: func(ctx context.Context, id string) (activities.Found, error) {
		return look(ctx, p.Client, id)
	}, WriteReport: writeSweepReport}
	return slices.Concat(h.Steps(), trials.Steps()), nil
}

// startRuns serves the queue of runs: workflow tasks, the steps of a host, or both.
func (p *process) startRuns() error {
	decides := p.Has(RoleWorkflow)
	of, err := p.hostSteps()
	if err != nil {
		return err
	}
	o := p.base()
	o.MaxConcurrentActivityExecutionSize, o.WorkerActivitiesPerSecond = p.HostSlots, p.HostRate
	if len(of) > 0 {
		earlier := o
		earlier.DisableWorkflowWorker = true
		w := worker.New(p.Client, activities.EarlierHostQueue, earlier)
		register(w, of)
		if err := p.start(w); err != nil {
			return err
		}
	}
	o.DisableWorkflowWorker = !decides
	o.DisableRegistrationAliasing = true
	o.StickyScheduleToStartTimeout = stickyTime
	o.DeploymentOptions = p.versioning()
	o.LocalActivityWorkerOnly = len(of) == 0  // else it takes activities that it does not have
	o.DisableEagerActivities = p.HostRate > 0 // the rate does not bound them
	w := worker.New(p.Client, activities.WorkflowQueue, o)
	register(w, of)
	if decides {
		RegisterWorkflows(w, &workflows.Workflows{
			SessionHeartbeat: p.SessionHeartbeat, LeaseHeartbeat: p.LeaseHeartbeat, ContinueAfter: p.ContinueAfter, PagesURL: p.PagesURL,
			Converter: p.Codec.DataConverter(),
		})
		p.decider = w
	}
	return p.start(w)
}

func (p *process) stopWorkers() {
	for i := len(p.started) - 1; i >= 0; i-- {
		p.started[i].Stop()
	}
}

// attributesRegistered asks the server whether it has all of our search
// attributes. If the server does not answer, a run continues without them.
func attributesRegistered(ctx context.Context, c client.Client, namespace string) bool {
	missing, err := dev.MissingSearchAttributes(ctx, c.OperatorService(), namespace)
	return err == nil && len(missing) == 0
}

// writeSweepReport is how the ReportSweep activity makes a sweep's page: it links to
// the trials' pages that are in the bucket.
func writeSweepReport(ctx context.Context, s store.Store, id string, sink func(name string, body []byte) error) error {
	sweep, err := report.LoadSweep(ctx, s, id)
	if err != nil {
		return err
	}
	if err := sweep.LinkStored(ctx, s); err != nil {
		return err
	}
	_, err = report.WriteSweep(ctx, sweep, sink)
	return err
}

// writeReport is how the Report activity makes a run's page.
func writeReport(ctx context.Context, s store.Store, run string, sink func(name string, body []byte) error) error {
	_, err := report.Write(ctx, s, run, sink)
	return err
}

// ParseRole reads a role's name.
func ParseRole(name string) (Role, error) {
	if r := Role(name); slices.Contains(Roles, r) {
		return r, nil
	}
	return "", fmt.Errorf("%q is no role: workflow, host or device", name)
}
