package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/envs/agent"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/lease"
	"github.com/reprise-rl/reprise/workers/runs"
)

// startDevice makes this process a device worker: it computes itself and gives leases of its device; or another process computes
// for it; or it is that process.
func (p *process) startDevice(ctx context.Context) (info activities.DeviceInfo, err error) {
	if p.Parent != nil {
		return p.computeForParent(ctx)
	}
	id := uuid.NewString()
	p.holder = lease.New(id, activities.HolderQueue(id), p.Client.RecordActivityHeartbeat)
	p.holder.Line = func(ctx context.Context, fingerprint string) []string {
		return runs.Line(ctx, p.Client, p.Namespace, fingerprint)
	}
	if p.Child != nil {
		if info, err = p.startChild(ctx); err != nil {
			return info, err
		}
		p.health.Watch(p.childAlive)
		return info, p.startHolder(info)
	}
	queue, given, err := p.compute(ctx, p.holder.Outside, nil)
	if err != nil {
		return info, err
	}
	p.holder.Given = given
	info = p.device.Engine.Info()
	if err := p.startHolder(info); err != nil {
		return info, err
	}
	p.holder.Computes(queue, info)
	return info, nil
}

// startHolder serves the line of a device, the question what it is, and the leases that it gives.
func (p *process) startHolder(info activities.DeviceInfo) error {
	o := p.base()
	o.DisableWorkflowWorker = true
	o.WorkerStopTimeout = deviceStop
	asked := worker.New(p.Client, activities.AnyDeviceQueue, o)
	register(asked, p.holder.Question())
	holding := worker.New(p.Client, p.holder.Queue(), o)
	register(holding, p.holder.Steps())
	o, err := slotted(o, p.holder.Slot)
	if err != nil {
		return err
	}
	line := worker.New(p.Client, activities.LeaseQueue(info.Fingerprint), o)
	register(line, p.holder.InLine())
	for _, w := range []worker.Worker{asked, holding, line} {
		if err := p.start(w); err != nil {
			return err
		}
	}
	return nil
}

// slotted gives a worker of activities one slot.
func slotted(o worker.Options, slot worker.SlotSupplier) (worker.Options, error) {
	fixed, err := worker.NewFixedSizeSlotSupplier(1)
	if err != nil {
		return o, err
	}
	o.Tuner, err = worker.NewCompositeTuner(worker.CompositeTunerOptions{
		ActivitySlotSupplier: slot, WorkflowSlotSupplier: fixed, LocalActivitySlotSupplier: fixed, NexusSlotSupplier: fixed,
		SessionActivitySlotSupplier: fixed,
	})
	o.MaxConcurrentActivityTaskPollers = 1
	return o, err
}

// compute opens the device and serves the steps that compute on it: on the queue that it returns, for the run that has the lease;
// single blocks of other runs, while nobody has one; and sessions of the SDK's, if outside has room for one. given notes that a
// run has the device. stepped, where set, is told of each step that begins or has ended.
func (p *process) compute(ctx context.Context, outside func() (end func(), ok bool), stepped func(step string, running bool)) (
	queue string, given func(run string) (back func()), err error) {
	options := p.Device
	options.Warn = func(problem string) { p.Logger.Warn(problem) }
	if p.Faults != nil {
		options.Other = p.Faults.Build()
	}
	if options.Shared, err = p.sharedPrograms(); err != nil {
		return "", nil, err
	}
	opened, err := model.OpenDevice(options)
	if err != nil {
		return "", nil, fmt.Errorf("open the device: %w", err)
	}
	engine, err := device.NewEngine(opened)
	if err != nil {
		return "", nil, err
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
	programs, err := p.Agents.Programs()
	if err != nil {
		return "", nil, err
	}
	p.device = &device.Device{
		Store: p.Store, Engine: engine, PriceHour: p.PriceHour, Models: modelCache(p.ModelCache), Agents: agent.New(programs),
	}
	o := p.base()
	o.DisableWorkflowWorker = true
	o.BackgroundActivityContext = p.deviceCtx
	o.WorkerStopTimeout = deviceStop
	// Heartbeats must reach the server well before their time-out.
	o.MaxHeartbeatThrottleInterval = 2 * time.Second
	o.DefaultHeartbeatThrottleInterval = 2 * time.Second
	fingerprint := engine.Info().Fingerprint
	free := newSpare()
	if err := p.startHelper(o, free, fingerprint); err != nil {
		return "", nil, err
	}
	given = func(run string) func() {
		closed, back := engine.SessionOpened(run), free.take()
		return func() { back(); closed() }
	}
	if err := p.serveSessions(o, fingerprint, outside, given); err != nil {
		return "", nil, err
	}
	if stepped != nil {
		o.Interceptors = append(o.Interceptors, &around{do: func(ctx context.Context, next func() (any, error)) (any, error) {
			info := activity.GetInfo(ctx)
			step := fmt.Sprintf("%s, activity %s", info.ActivityType.Name, info.ActivityID)
			stepped(step, true)
			defer stepped(step, false)
			return next()
		}})
	}
	queue = activities.ComputingQueue(uuid.NewString())
	w := worker.New(p.Client, queue, o)
	register(w, p.device.Steps())
	if err := p.start(w); err != nil {
		return "", nil, err
	}
	if p.metrics != nil {
		p.metrics.Device(fingerprint, opened.Built, opened.Busy)
	}
	p.health.Watch(p.deviceAlive)
	go (&standby{client: p.Client, device: p.device, log: p.Logger, runs: p.Follow, bytes: int64(p.FollowGB * (1 << 30))}).keep(ctx)
	return queue, given, nil
}

// errLeased says that a run has a lease of the device.
var errLeased = errors.New("the device has a lease: another run has it")

// serveSessions serves the SDK's sessions of runs that earlier builds began, one at a time.
func (p *process) serveSessions(o worker.Options, fingerprint string, outside func() (end func(), ok bool),
	given func(run string) func()) error {
	o.EnableSessionWorker = true
	o.MaxConcurrentSessionExecutionSize = 1
	// The SDK holds a session by an activity of its own, which runs as long as the session lasts. One that is refused is asked for again.
	o.Interceptors = append(o.Interceptors, &around{do: func(ctx context.Context, next func() (any, error)) (any, error) {
		if activity.GetInfo(ctx).ActivityType.Name != steps.SessionOpens {
			return next()
		}
		end, ok := outside()
		if !ok {
			return nil, errLeased
		}
		defer end()
		defer given(activity.GetInfo(ctx).WorkflowExecution.ID)()
		return next()
	}})
	w := worker.New(p.Client, activities.DeviceQueue(fingerprint), o)
	register(w, p.device.Steps())
	return p.start(w)
}

// around does something around each activity of a worker: next is the activity.
type around struct {
	interceptor.WorkerInterceptorBase
	do func(ctx context.Context, next func() (any, error)) (any, error)
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (i *around) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &aroundActivity{do: i.do}
	a.Next = next
	return a
}

type aroundActivity struct {
	interceptor.ActivityInboundInterceptorBase
	do func(ctx context.Context, next func() (any, error)) (any, error)
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *aroundActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	return a.do(ctx, func() (any, error) { return a.Next.ExecuteActivity(ctx, in) })
}

// drain lets the running device activity finish and ends the lease; how is what its end is called.
func (p *process) drain(grace time.Duration, how activities.HoldResult) {
	switch {
	case p.child != nil:
		p.Logger.Info("stopping: the running step may finish", zap.Duration("grace", grace))
		p.holder.Stop()
		p.child.drain(grace)
	case p.device != nil:
		p.Logger.Info("stopping: the running step may finish", zap.Duration("grace", grace))
		if p.holder != nil {
			p.holder.Stop()
		}
		ctx, end := context.WithTimeout(context.Background(), grace)
		defer end()
		if err := p.device.Engine.Drain(ctx); err != nil {
			p.Logger.Warn("the running step did not finish in time; it will run again elsewhere", zap.Error(err))
		}
		// The step's result travels separately: it must arrive before the lease ends, or
		// the step would be repeated.
		time.Sleep(answerTime)
	default:
		return
	}
	// The lease's end is a workflow task. It must not come to this process: a
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
	if p.holder != nil {
		p.holder.Ends(how)
	}
	if p.Parent != nil {
		p.Parent.ends(how)
	}
	p.endDevice()
}

// leaseEnd is how a lease ends when its worker does: failed, or told to, and why.
func leaseEnd(failed error, why string) activities.HoldResult {
	if end, ok := errors.AsType[*device.Ending](failed); ok {
		return activities.HoldResult{End: activities.LeaseLost, Reason: end.Error(), ExitCode: ExitCode(end)}
	}
	return activities.HoldResult{End: activities.LeaseDrained, Reason: why}
}
