// Package device is the activities of the process that computes. They need the policy: they run
// on the worker that holds it, and compute while they hold the engine's lease.
package device

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/agent"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Device is the activities of the process that computes: they do so while holding the engine's lease.
type Device struct {
	Store  store.Store
	Engine *Engine
	// PriceHour is the price of an hour of the device, which its steps report; 0: not
	// known.
	PriceHour float64
	// Agents are the agents that this worker has; nil is none.
	Agents *agent.Players
	// Models, where not nil, keeps copies of base models' weights on this machine.
	Models *store.LocalFiles

	contexts  run.Contexts
	fileBytes int64 // the most bytes of tensors in a snapshot's file; 0 is model.SnapshotFile
}

// work is what an activity that computes needs.
type work struct {
	*run.Context
	engine   *Engine
	reading  store.Reading // of models and snapshots
	measured activities.Telemetry
	start    time.Time
	built    model.Built // by the device before
	yields   func() bool // where set, tells that somebody else needs the device: see bound
}

// begin takes the lease and reads the run's context. The caller ends it with done, which
// settles the activity's error. What is kept between the turns of a rollout is freed: the rollout
// is over.
func (d *Device) begin(ctx context.Context, of activities.Run) (w *work, done func(*error), err error) {
	if w, done, err = d.beginTurn(ctx, of); err == nil {
		d.Engine.dropKept()
	}
	return w, done, err
}

// beginTurn is begin for a turn of a rollout.
func (d *Device) beginTurn(ctx context.Context, of activities.Run) (w *work, done func(*error), err error) {
	return d.beginWith(ctx, of, func() (*run.Context, error) { return d.contexts.Read(ctx, d.Store, of) })
}

// beginWith takes the lease for a run, whose context read gives.
func (d *Device) beginWith(ctx context.Context, of activities.Run,
	read func() (*run.Context, error)) (w *work, done func(*error), err error) {
	return d.beginBy(ctx, of, d.Engine.acquire, read)
}

// beginBy is beginWith where acquire takes the lease.
func (d *Device) beginBy(
	ctx context.Context, of activities.Run,
	acquire func(context.Context, activities.Run) (release func(), waited time.Duration, err error), read func() (*run.Context, error),
) (w *work, done func(*error), err error) {
	stop := run.Heartbeat(ctx)
	release, waited, err := acquire(ctx, of)
	if err != nil {
		stop()
		return nil, nil, err
	}
	w = &work{engine: d.Engine, reading: store.Reading{Local: d.Models}, start: time.Now(), built: d.Engine.device.Built()}
	w.measured.WaitSeconds, w.measured.PriceHour = waited.Seconds(), d.PriceHour
	done = func(err *error) {
		if activity.IsActivity(ctx) { // else the caller shows where it was
			if p := recover(); p != nil {
				*err = panicked(ctx, p)
			}
		}
		*err = d.Engine.settle(ctx, w.Context, *err)
		release()
		stop()
	}
	if w.Context, err = read(); err == nil {
		err = w.enough()
	}
	if err != nil {
		done(&err)
		return nil, nil, err
	}
	w.needs()
	return w, done, nil
}

// enough refuses a run that is made for a device with more memory.
func (w *work) enough() error {
	if why := spec.TooSmall(w.Train, run.ShapeOf(w.Config), w.engine.device.Count(), w.engine.memory); why != "" {
		return fmt.Errorf("%w: %s; %s", activities.ErrDeviceTooSmall, why, derived(w.Context).MemoryAdvice(w.Train))
	}
	return nil
}

// needs tells what the run needs of Go's heap.
func (w *work) needs() {
	if w.engine.Needs != nil {
		w.engine.Needs(derived(w.Context).HostBytes())
	}
}

// derived are the numbers that follow from a run's spec and its model.
func derived(rc *run.Context) spec.Derived { return spec.Derive(rc.Train, run.ShapeOf(rc.Config)) }

// telemetry returns the attempt's telemetry.
func (w *work) telemetry() activities.Telemetry {
	w.measured.Seconds = time.Since(w.start).Seconds()
	built := w.engine.device.Built().Minus(w.built)
	w.measured.CompiledPrograms, w.measured.CachedPrograms = built.Compiled, built.Loaded
	w.measured.CachedSeconds, w.measured.CacheFaults = built.LoadSeconds, built.CacheFaults
	w.measured.ReadSeconds, w.measured.HashSeconds = w.reading.Seconds()
	return w.measured
}
