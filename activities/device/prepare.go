package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/xla/failure"
)

// BeginScan begins a scan of the runs that other workers compute. Programs that one
// scan prepares are not freed for one another.
func (e *Engine) BeginScan() { e.scan.Add(1) }

// Prepare compiles the programs of a run that others compute, if the device is
// free now; it says whether there was anything to compile. The policy in memory
// stays, and so do its programs and those that this scan prepared: the least recently
// used of the others make room. If that is not enough, the run compiles when it comes;
// otherwise two scans would compile in turns for ever. A run that has committed nothing
// yet has no base model to compile for.
func (e *Engine) Prepare(ctx context.Context, d *Device, runID string) (compiled bool, err error) {
	newest, err := d.newest(ctx, runID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r := newest.Version.Run
	rc, err := d.contexts.Read(ctx, d.Store, r)
	if err != nil {
		return false, err
	}
	select {
	case <-e.lease:
		defer func() { e.lease <- struct{}{} }()
	default:
		return false, nil // somebody computes
	}
	if e.draining.Load() {
		return false, nil
	}
	if !e.room(rc, r) {
		return false, nil
	}
	bound := steps.Restore.Bound * rc.Train.Limits.ActivitySeconds
	stop := e.watchdog("the compilation ahead for run "+runID, time.Duration(bound)*time.Second)
	defer stop()
	defer func() {
		if errors.Is(err, failure.ErrDeviceFailed) {
			e.end(Failed, err.Error())
		}
	}()
	all, err := e.all(rc, r)
	if err != nil {
		return false, err
	}
	for _, p := range all {
		if err := p.programs.Compile(ctx, nil); err != nil {
			return compiled, fmt.Errorf("compile the programs of run %s, %s: %w", runID, p.name, err)
		}
		compiled = true
	}
	return compiled, nil
}

// room makes room for the missing programs of a run. It is false if none is missing, or
// if the programs of this scan leave no room.
func (e *Engine) room(rc *run.Context, run activities.Run) bool {
	missing := map[programsKey]bool{}
	for _, key := range programKeys(rc, run) {
		if !e.use(key) {
			missing[key] = true
		}
	}
	recent := 0
	for key, p := range e.programs {
		if p.scan == e.scan.Load() || e.owned(key) {
			recent++
		}
	}
	// One that needs more than there is room for may have all of an idle device.
	if len(missing) == 0 || recent > 0 && recent+len(missing) > maxPrograms {
		return false
	}
	e.trim(maxPrograms - len(missing))
	return true
}
