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
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/envturn"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/health"
	"github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/telemetry"
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
	// SessionHeartbeat is how long a device worker may be silent before its
	// session is lost: 5 s in development, 20 s in production.
	SessionHeartbeat time.Duration
	// Grace is how long a terminated worker may finish what it runs.
	Grace time.Duration
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
	// EnvFile, if set, is a file of more environments that the host role serves: see ReadEnvFile. It is
	// read again for each request, so that environments can be added while the worker runs.
	EnvFile string
	// MetricsListen, if set, is the host:port at which Prometheus reads this
	// process's metrics: see telemetry.Listen.
	MetricsListen string
	// MetricsRuns is how many runs at once are named in the labels.
	MetricsRuns int
	// ModelCache is the folder in which a device worker keeps copies of base models' weights.
	// Empty is reprise/models in the user's cache folder, "none" keeps none.
	ModelCache string
	// PriceHour is the price of an hour of the device, in the user's own currency; 0: not
	// known.
	PriceHour float64
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
	if o.MetricsRuns < 0 {
		return fmt.Errorf("--metrics-runs is %d: it cannot be negative", o.MetricsRuns)
	}
	if !(o.PriceHour >= 0) || math.IsInf(o.PriceHour, 0) {
		return fmt.Errorf("--price-hour is %g: give the price of an hour of the device, or leave it out", o.PriceHour)
	}
	return nil
}

// Run serves the queues of the roles until ctx ends. Then it takes no new work, lets the
// running device activity finish within Grace, gives the session back at once, and
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
	// which fails the session in a reply instead of a time-out.
	p.deviceCtx, p.endDevice = context.WithCancel(context.Background())
	defer p.endDevice()
	if err := p.startRoles(); err != nil {
		p.stopWorkers()
		return err
	}
	info := activities.DeviceInfo{}
	if p.device != nil {
		info = p.device.Engine.Info()
		p.health.Watch(p.deviceAlive)
		if p.metrics != nil {
			p.metrics.Device(info.Fingerprint, p.opened.Built, p.opened.Busy)
		}
		idle, stop := context.WithCancel(ctx)
		defer stop()
		go standby(idle, p.Client, p.device, o.Logger)
	}
	p.health.Serves()
	if o.Ready != nil {
		o.Ready(info)
	}
	o.Logger.Info("worker serves", zap.Any("roles", o.Roles), zap.String("fingerprint", info.Fingerprint), zap.Int("devices", p.devices()))
	var failed error
	grace := o.Grace
	select {
	case <-ctx.Done():
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
	p.drain(grace)
	p.stopWorkers()
	o.Logger.Info("stopped")
	return failed
}

// devices is the number of devices that the process has.
func (p *process) devices() int {
	if p.opened == nil {
		return 0
	}
	return p.opened.Count()
}

// process is a worker process while it runs.
type process struct {
	Options
	metrics   *telemetry.Metrics // nil if nobody listens
	health    *health.State
	traced    []interceptor.WorkerInterceptor // none if nobody collects spans
	started   []worker.Worker
	fatal     chan error
	endings   chan *device.Ending
	decider   worker.Worker  // serves workflow tasks; nil without the role
	device    *device.Device // nil without the role
	opened    *model.Device  // what device computes on
	deviceCtx context.Context
	endDevice context.CancelFunc
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

// startRoles starts the workers of the process's roles.
func (p *process) startRoles() error {
	if p.Has(RoleDevice) {
		if err := p.startDevice(); err != nil {
			return fmt.Errorf("start the device worker: %w", err)
		}
	}
	if p.Has(RoleHost) || p.Has(RoleWorkflow) {
		if err := p.startRuns(); err != nil {
			return fmt.Errorf("start the worker of runs: %w", err)
		}
	}
	return nil
}

// startDevice opens the device, answers what it is, and takes one session.
func (p *process) startDevice() error {
	options := p.Device
	options.Warn = func(problem string) { p.Logger.Warn(problem) }
	if p.Faults != nil {
		options.Other = p.Faults.Build()
	}
	opened, err := model.OpenDevice(options)
	if err != nil {
		return fmt.Errorf("open the device: %w", err)
	}
	engine, err := device.NewEngine(opened)
	if err != nil {
		return err
	}
	engine.Ends = func(end *device.Ending) {
		select {
		case p.endings <- end:
		default: // the process ends already
		}
	}
	if limit := newMemoryLimit(); limit != nil {
		engine.Needs = limit.needs
	}
	if p.Faults != nil {
		engine.Watch, engine.Differ, opened.Before = p.Faults.Took, p.Faults.Differs, p.Faults.Executes
	}
	p.opened = opened
	p.device = &device.Device{Store: p.Store, Engine: engine, PriceHour: p.PriceHour, Models: modelCache(p.ModelCache)}
	o := p.base()
	o.DisableWorkflowWorker = true
	o.BackgroundActivityContext = p.deviceCtx
	o.WorkerStopTimeout = deviceStop
	asked := worker.New(p.Client, activities.AnyDeviceQueue, o)
	asked.RegisterActivityWithOptions(p.device.Describe, activity.RegisterOptions{Name: steps.Describe.Name})
	if err := p.start(asked); err != nil {
		return err
	}
	// Heartbeats must reach the server well before their time-out.
	o.MaxHeartbeatThrottleInterval = 2 * time.Second
	o.DefaultHeartbeatThrottleInterval = 2 * time.Second
	free := newSpare()
	if err := p.startHelper(o, free, engine.Info().Fingerprint); err != nil {
		return err
	}
	o.EnableSessionWorker = true
	o.MaxConcurrentSessionExecutionSize = 1
	o.Interceptors = append(slices.Clone(o.Interceptors), &sessionInterceptor{opened: bothUntil(engine.SessionOpened, free.take)})
	sessions := worker.New(p.Client, activities.DeviceQueue(engine.Info().Fingerprint), o)
	register(sessions, p.device.Steps())
	return p.start(sessions)
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
	h := host.Host{Store: p.Store, Attributes: attributes, WriteReport: writeReport, Environments: environments, More: more,
		Flags: activities.Flags{ContinueAfter: p.ContinueAfter, SessionHeartbeat: p.SessionHeartbeat}}
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
	o.LocalActivityWorkerOnly = len(of) == 0  // else it takes activities that it does not have
	o.DisableEagerActivities = p.HostRate > 0 // the rate does not bound them
	w := worker.New(p.Client, activities.WorkflowQueue, o)
	register(w, of)
	if decides {
		RegisterWorkflows(w, &workflows.Workflows{
			SessionHeartbeat: p.SessionHeartbeat, ContinueAfter: p.ContinueAfter, PagesURL: p.PagesURL,
			Converter: p.Codec.DataConverter(),
		})
		p.decider = w
	}
	return p.start(w)
}

// drain lets the running device activity finish and gives the session back.
func (p *process) drain(grace time.Duration) {
	if p.device == nil {
		return
	}
	p.Logger.Info("stopping: the running step may finish", zap.Duration("grace", grace))
	ctx, end := context.WithTimeout(context.Background(), grace)
	defer end()
	if err := p.device.Engine.Drain(ctx); err != nil {
		p.Logger.Warn("the running step did not finish in time; it will run again elsewhere", zap.Error(err))
	}
	// The step's result travels separately: it must arrive before the session ends, or
	// the step would be repeated.
	time.Sleep(answerTime)
	// The session's end is a workflow task. It must not come to this process: a
	// worker that stops may take a task and drop it, and then the run would wait
	// for a time-out of 10 s.
	if p.decider != nil {
		stopped := make(chan struct{})
		go func() {
			p.decider.Stop() // of workflow tasks first, then of the steps of a host
			close(stopped)
		}()
		select {
		case <-stopped:
		case <-time.After(deciderStop):
		}
	}
	p.endDevice()
}

func (p *process) stopWorkers() {
	for i := len(p.started) - 1; i >= 0; i-- {
		p.started[i].Stop()
	}
}

// RegisterWorkflows names the workflows as people start them.
func RegisterWorkflows(r interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}, w *workflows.Workflows) {
	r.RegisterWorkflowWithOptions(w.Train, workflow.RegisterOptions{Name: "Train"})
	r.RegisterWorkflowWithOptions(w.Evaluate, workflow.RegisterOptions{Name: "Evaluate"})
	r.RegisterWorkflowWithOptions(w.Sweep, workflow.RegisterOptions{Name: "Sweep"})
	r.RegisterWorkflowWithOptions(w.EnvTurn, workflow.RegisterOptions{Name: workflows.EnvTurnName})
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
