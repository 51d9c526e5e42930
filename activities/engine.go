package activities

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// Engine is a device worker's memory: one device, one lease, one policy.
//
// A PJRT execution cannot be interrupted, and a freed session slot is not yet a
// free device: so whoever computes holds the lease, and work of another run waits
// for it while heartbeating. The policy stays in memory under its state
// fingerprint; losing a session does not lose it.
type Engine struct {
	// Watch, where set, is told when an activity has taken the device, and by
	// what it gives when the activity has given it back; for tests.
	Watch func(ctx context.Context) (released func())

	device *model.Device
	info   DeviceInfo

	lease    chan struct{} // holds one token while the device is free
	draining atomic.Bool

	// What follows belongs to the holder of the lease.
	owner    string // run whose policy is in memory
	state    *model.State
	print    string // the state's fingerprint
	programs map[programsKey]*model.Programs
	updates  map[updateKey]UpdateResult
}

type programsKey struct {
	base   string // digest of the base model: architecture and legal ids
	shapes model.Shapes
}

// updateKey addresses an update: the same parent, batch and settings give the
// same child, so a retried Update answers at once.
type updateKey struct {
	parent, batch, settings string
	branch, iteration       int
}

// maxPrograms bounds the compiled sets of programs kept across runs.
const maxPrograms = 16

// maxRecords bounds the memory of updates: a retry asks for the last one only.
const maxRecords = 64

// NewEngine makes the memory of a device worker around its open device.
func NewEngine(device *model.Device) (*Engine, error) {
	print := device.Fingerprint()
	fields, err := canonical(print)
	if err != nil {
		return nil, fmt.Errorf("describe device: %w", err)
	}
	e := &Engine{
		device:   device,
		info:     DeviceInfo{Fingerprint: print.ID(), Fields: fields},
		lease:    make(chan struct{}, 1),
		programs: map[programsKey]*model.Programs{},
		updates:  map[updateKey]UpdateResult{},
	}
	e.lease <- struct{}{}
	return e, nil
}

// Info is what the engine's device is.
func (e *Engine) Info() DeviceInfo { return e.info }

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
func (e *Engine) acquire(ctx context.Context, run string) (release func(), waited time.Duration, err error) {
	if e.draining.Load() {
		return nil, 0, ErrDraining
	}
	start := time.Now()
	select {
	case <-e.lease:
	case <-ctx.Done():
		return nil, time.Since(start), fmt.Errorf("wait for the device: %w", ctx.Err())
	}
	release = func() { e.lease <- struct{}{} }
	if e.draining.Load() {
		release()
		return nil, time.Since(start), ErrDraining
	}
	if err := ctx.Err(); err != nil {
		release()
		return nil, time.Since(start), err
	}
	if e.owner != run {
		e.forget()
		e.owner = run
	}
	if e.Watch != nil {
		released, free := e.Watch(ctx), release
		release = func() { released(); free() }
	}
	return release, time.Since(start), nil
}

// forget frees the policy in memory.
func (e *Engine) forget() {
	if e.state != nil {
		e.state.Free()
	}
	e.state, e.print, e.owner = nil, "", ""
	clear(e.updates)
	if len(e.programs) > maxPrograms {
		for _, p := range e.programs {
			p.Free()
		}
		clear(e.programs)
	}
}

// hold puts a state into memory in place of the one before.
func (e *Engine) hold(s *model.State, print string) {
	if e.state != nil && e.state != s {
		e.state.Free()
	}
	e.state, e.print = s, print
}

// resident checks that the policy version is the one in memory.
func (e *Engine) resident(v Version) error {
	if e.state == nil || e.print != v.State {
		held := "nothing"
		if e.state != nil {
			held = e.print
		}
		return fmt.Errorf("version %d of run %s has state %s, in memory is %s: %w", v.Version, v.Run.ID, v.State, held, ErrNotResident)
	}
	return nil
}

// programsFor gives the programs of some shapes of a run, compiled when first used.
func (e *Engine) programsFor(k *kit, run Run, shapes model.Shapes) (*model.Programs, error) {
	key := programsKey{base: run.Base.Digest, shapes: shapes}
	if p, ok := e.programs[key]; ok {
		return p, nil
	}
	p, err := e.device.Programs(k.config, k.legal, key.shapes)
	if err != nil {
		return nil, fmt.Errorf("programs of run %s: %w", run.ID, err)
	}
	e.programs[key] = p
	return p, nil
}

// remember notes an update, so that a retry of the same one need not run.
func (e *Engine) remember(k updateKey, r UpdateResult) {
	if len(e.updates) >= maxRecords {
		clear(e.updates)
	}
	e.updates[k] = r
}

// heartbeat beats for the activity once a second until stop is called: whatever
// the activity does meanwhile, silence means that its process is gone. The first
// beat comes after a second: each costs the server a write, and most activities
// are shorter.
func heartbeat(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// modelFiles reads a model's files, each verified.
func modelFiles(ctx context.Context, s store.Store, files map[string]store.Ref) (map[string][]byte, error) {
	out := make(map[string][]byte, len(files))
	for _, name := range sortedKeys(files) {
		b, err := store.GetArtifact(ctx, s, files[name])
		if err != nil {
			return nil, fmt.Errorf("model file %s: %w", name, err)
		}
		out[name] = b
	}
	return out, nil
}

// mergeHashes collects the hashes of the lowered programs of all turns.
func mergeHashes(into map[string]string, turn int, p *model.Programs) error {
	hashes, err := p.Hashes()
	if err != nil {
		return fmt.Errorf("hash the programs of turn %d: %w", turn, err)
	}
	for name, hash := range hashes {
		into[fmt.Sprintf("turn-%d.%s", turn, name)] = hash
	}
	return nil
}
