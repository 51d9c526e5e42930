package device

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
)

// Engine is a device worker's memory: one device, one lease, one policy, with its second network
// and its reference if the run has them.
//
// A PJRT execution cannot be interrupted, and a freed session slot is not yet a free
// device. So an activity that computes holds the lease; work of another run waits for the
// lease and sends heartbeats meanwhile. The policy stays in memory under its state
// fingerprint; losing a session does not lose it.
type Engine struct {
	// Watch, if it is set, is called when an activity has taken the device; the function
	// it returns is called when the activity has given the device back. For tests.
	Watch func(ctx context.Context) (released func())
	// Differ, where set, tells whether a self-test is to find a difference; for tests.
	Differ func(ctx context.Context) bool
	// Needs, where set, is told before a run's step how much of Go's heap the run's steps
	// need, by estimate.
	Needs func(bytes int64)
	// Ends, where set, is told that the process has to end, and why: see Ending.
	Ends func(*Ending)

	device  *model.Device
	trusted bool // no self-test is made; for tests of anything else
	info    activities.DeviceInfo
	memory  int64 // of the device, in bytes; 0: not known

	lease    chan struct{} // holds one token while the device is free
	draining atomic.Bool
	sessions atomic.Int32 // that are open on this worker
	scan     atomic.Int64 // counts the scans of what others compute
	ended    atomic.Pointer[Ending]
	still    atomic.Pointer[standstill] // nil while the device makes progress

	following atomic.Pointer[following] // the run whose weights are brought up to date now

	// The following fields belong to the holder of the lease.
	held                             // of the run that has computed last, or is followed
	aside    map[activities.Run]held // of other runs that are followed: see Follow
	follows  map[string]bool         // the ids of the runs that are followed: see Follow
	programs map[programsKey]*cachedPrograms
	uses     int            // counts the uses of programs
	damaged  map[string]int // folders of snapshots, and how often one could not be read
	unclear  unclear
}

// NewEngine makes the memory of a device worker around its open device.
func NewEngine(device *model.Device) (*Engine, error) {
	fingerprint := device.Fingerprint()
	fields, err := run.Canonical(fingerprint)
	if err != nil {
		return nil, fmt.Errorf("describe device: %w", err)
	}
	e := &Engine{
		device:   device,
		info:     activities.DeviceInfo{Fingerprint: fingerprint.ID(), Fields: fields},
		memory:   device.Memory(),
		lease:    make(chan struct{}, 1),
		programs: map[programsKey]*cachedPrograms{},
		held:     newHeld(),
		aside:    map[activities.Run]held{},
	}
	e.lease <- struct{}{}
	return e, nil
}

// Info describes the engine's device.
func (e *Engine) Info() activities.DeviceInfo { return e.info }

// Drain refuses new work from now on and waits until the running activity has
// given the device back, or ctx ends.
func (e *Engine) Drain(ctx context.Context) error {
	e.draining.Store(true)
	select {
	case <-e.lease:
		e.lease <- struct{}{}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acquire takes the device for a run. Another run's policy is freed first.
func (e *Engine) acquire(ctx context.Context, run activities.Run) (release func(), waited time.Duration, err error) {
	if e.draining.Load() {
		return nil, 0, activities.ErrDraining
	}
	start := time.Now()
	select {
	case <-e.lease:
	case <-ctx.Done():
		return nil, time.Since(start), fmt.Errorf("wait for the device: %w", ctx.Err())
	}
	release, err = e.leased(ctx, run)
	return release, time.Since(start), err
}

// leased is acquire for a caller that has just taken the lease. After an error it has given it
// back.
func (e *Engine) leased(ctx context.Context, run activities.Run) (release func(), err error) {
	release = func() { e.lease <- struct{}{} }
	if e.draining.Load() {
		release()
		return nil, activities.ErrDraining
	}
	if err := ctx.Err(); err != nil {
		release()
		return nil, err
	}
	e.turnTo(run, false)
	free, watched := release, e.watchdog(stepOf(ctx), boundOf(ctx))
	release = func() { watched(); free() }
	if e.Watch != nil {
		released, free := e.Watch(ctx), release
		release = func() { released(); free() }
	}
	return release, nil
}
