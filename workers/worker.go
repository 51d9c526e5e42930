// Package workers runs the processes of Reprise: host workers, device workers,
// workflow workers, or all in one.
package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/faults"
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
	Store     store.Store
	Logger    *zap.Logger
	Roles     []Role
	// Device is how the device is opened; for RoleDevice.
	Device model.DeviceOptions
	// SessionHeartbeat is how long a device worker may be silent before its
	// session is lost: 5 s in development, 20 s in production.
	SessionHeartbeat time.Duration
	// Grace is how long a terminated worker may finish what it runs.
	Grace time.Duration
	// ContinueAfter makes runs continue as new after so many iterations.
	ContinueAfter int
	// HostSlots bounds the host activities at once; 0 means 8.
	HostSlots int
	// Faults, where set, makes this process fail on purpose; for tests.
	Faults *faults.Plan
	// Ready, where set, is called when all workers poll.
	Ready func(activities.DeviceInfo)
}

// Has tells whether the process takes the role.
func (o Options) Has(r Role) bool {
	for _, have := range o.Roles {
		if have == r {
			return true
		}
	}
	return false
}

// stickyTime is how long a workflow task waits for the worker that has the
// workflow in memory. That one may be dead, and then the wait is part of what a
// kill costs; a live one on a busy machine costs a replay, of milliseconds.
const stickyTime = time.Second

// answerTime is what an activity's answer needs to reach the server.
const answerTime = 300 * time.Millisecond

// Run serves the queues of the roles until ctx ends. Then it takes no new work,
// lets the running device activity finish within Grace, gives the session back
// at once (so that the run goes on elsewhere without waiting for a time-out), and
// returns nil.
func Run(ctx context.Context, o Options) error {
	if o.HostSlots == 0 {
		o.HostSlots = 8
	}
	// Activities live in a context of their own: it ends after the drain, which
	// fails the session in a reply instead of a time-out.
	activityCtx, endActivities := context.WithCancel(context.Background())
	defer endActivities()

	var started []worker.Worker
	stop := func() {
		for i := len(started) - 1; i >= 0; i-- {
			started[i].Stop()
		}
	}
	fatal := make(chan error, 8)
	base := worker.Options{
		BackgroundActivityContext: activityCtx,
		WorkerStopTimeout:         2 * time.Second,
		OnFatalError:              func(err error) { fatal <- err },
	}
	if o.Faults != nil {
		base.Interceptors = []interceptor.WorkerInterceptor{o.Faults.Interceptor()}
		o.Store = o.Faults.Store(o.Store)
	}
	start := func(w worker.Worker, what string) error {
		if err := w.Start(); err != nil {
			stop()
			return fmt.Errorf("start the %s worker: %w", what, err)
		}
		started = append(started, w)
		return nil
	}

	var engine *activities.Engine
	var info activities.DeviceInfo
	if o.Has(RoleDevice) {
		device, err := model.OpenDevice(o.Device)
		if err != nil {
			return fmt.Errorf("open the device: %w", err)
		}
		if engine, err = activities.NewEngine(device); err != nil {
			return err
		}
		info = engine.Info()
		d := &activities.Device{Store: o.Store, Engine: engine}
		register := func(w worker.Worker) { w.RegisterActivity(d) }

		any := base
		any.DisableWorkflowWorker = true
		asked := worker.New(o.Client, activities.AnyDeviceQueue, any)
		asked.RegisterActivityWithOptions(d.Describe, activity.RegisterOptions{Name: "Describe"})
		if err := start(asked, "device discovery"); err != nil {
			return err
		}
		slot := base
		slot.DisableWorkflowWorker = true
		slot.EnableSessionWorker = true
		slot.MaxConcurrentSessionExecutionSize = 1
		// Heartbeats must reach the server well before their time-out.
		slot.MaxHeartbeatThrottleInterval = 2 * time.Second
		slot.DefaultHeartbeatThrottleInterval = 2 * time.Second
		sessions := worker.New(o.Client, activities.DeviceQueue(info.Fingerprint), slot)
		register(sessions)
		if err := start(sessions, "device"); err != nil {
			return err
		}
	}
	if o.Has(RoleHost) {
		opts := base
		opts.DisableWorkflowWorker = true
		opts.MaxConcurrentActivityExecutionSize = o.HostSlots
		w := worker.New(o.Client, activities.HostQueue, opts)
		w.RegisterActivity(&activities.Host{Store: o.Store, Attributes: func(ctx context.Context) bool { return attributesRegistered(ctx, o.Client, o.Namespace) }})
		if err := start(w, "host"); err != nil {
			return err
		}
	}
	if o.Has(RoleWorkflow) {
		opts := base
		opts.DisableRegistrationAliasing = true
		opts.StickyScheduleToStartTimeout = stickyTime
		w := worker.New(o.Client, activities.WorkflowQueue, opts)
		RegisterWorkflows(w, &workflows.Workflows{SessionHeartbeat: o.SessionHeartbeat, ContinueAfter: o.ContinueAfter})
		if err := start(w, "workflow"); err != nil {
			return err
		}
	}
	if len(started) == 0 {
		return errors.New("a worker needs a role: workflow, host or device")
	}
	if o.Ready != nil {
		o.Ready(info)
	}
	o.Logger.Info("worker serves", zap.Any("roles", o.Roles), zap.String("fingerprint", info.Fingerprint))

	var failed error
	select {
	case <-ctx.Done():
	case failed = <-fatal:
		failed = fmt.Errorf("worker: %w", failed)
	}
	if engine != nil {
		o.Logger.Info("stopping: the running step may finish", zap.Duration("grace", o.Grace))
		drain, end := context.WithTimeout(context.Background(), o.Grace)
		if err := engine.Drain(drain); err != nil {
			o.Logger.Warn("the running step did not finish in time; it will run again elsewhere", zap.Error(err))
		}
		end()
		// The step's answer travels by itself: let it arrive before the session
		// ends, or the step would be done again.
		time.Sleep(answerTime)
	}
	endActivities()
	stop()
	o.Logger.Info("stopped")
	return failed
}

// RegisterWorkflows names the workflows as people start them.
func RegisterWorkflows(r interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}, w *workflows.Workflows) {
	r.RegisterWorkflowWithOptions(w.Train, workflow.RegisterOptions{Name: "Train"})
	r.RegisterWorkflowWithOptions(w.Evaluate, workflow.RegisterOptions{Name: "Evaluate"})
}

// ParseRole reads a role's name.
func ParseRole(name string) (Role, error) {
	for _, r := range Roles {
		if string(r) == name {
			return r, nil
		}
	}
	return "", fmt.Errorf("%q is no role: workflow, host or device", name)
}

// attributesRegistered asks the server whether it has all of our search
// attributes. Where it cannot be asked, a run goes on without them.
func attributesRegistered(ctx context.Context, c client.Client, namespace string) bool {
	missing, err := dev.MissingSearchAttributes(ctx, c.OperatorService(), namespace)
	return err == nil && len(missing) == 0
}
