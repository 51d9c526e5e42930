package device

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/xla/failure"
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

	// The following fields belong to the holder of the lease.
	owner       activities.Run // whose policy is in memory; two of one id may differ in spec and base
	state       *model.State
	second      *model.State // the critic or the process reward model; nil without
	fingerprint string       // fingerprint of both
	reference   *model.State // parameters alone; nil until it is needed
	referenceOf string       // digest of the manifest whose snapshot it is; empty: version 0
	frozen      *frozenBase  // below adapters; nil until it is needed
	programs    map[programsKey]*cachedPrograms
	own         map[programsKey]bool // the programs of the run whose policy is in memory
	uses        int                  // counts the uses of programs
	updates     map[updateKey]activities.UpdateResult
	begun       *begunUpdate // of the state in memory; nil without
	kept        *keptRollout // between the turns of a rollout; nil without
	sampler     *sampler     // of another worker's version; nil without
	unclear     unclear
}

type programsKey struct {
	base   string // digest of the base model: architecture and legal ids
	lora   model.LoRA
	second network
	values int // of the critic for each token
	shapes model.Shapes
}

// updateKey addresses an update: the same parent, batch and settings give the
// same child, so a retried Update answers at once.
type updateKey struct {
	parent, batch, settings string
	branch, iteration       int
}

// cachedPrograms is a set of programs, when it was used last by the engine's count, and
// in which scan. tested tells that it has passed the self-test, sampled that it has passed the part of
// it that samples.
type cachedPrograms struct {
	*model.Programs
	used            int
	scan            int64
	tested, sampled bool
}

// maxPrograms bounds the compiled sets of programs kept across runs: what is freed
// is compiled again when it is used. A run takes one a turn and one for its second network.
const maxPrograms = 16

// maxRecords bounds the memory of updates: a retry asks for the last one only.
const maxRecords = 64

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
		programs: map[programsKey]*cachedPrograms{}, own: map[programsKey]bool{},
		updates: map[updateKey]activities.UpdateResult{},
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
	if e.owner != run {
		e.forget()
		e.owner = run
	}
	free, watched := release, e.watchdog(stepOf(ctx), boundOf(ctx))
	release = func() { watched(); free() }
	if e.Watch != nil {
		released, free := e.Watch(ctx), release
		release = func() { released(); free() }
	}
	return release, nil
}

// forget frees the policy in memory.
func (e *Engine) forget() {
	e.dropSampler()
	e.dropBegun()
	e.dropKept()
	for _, s := range []*model.State{e.state, e.second, e.reference} {
		if s != nil {
			s.Free()
		}
	}
	e.dropFrozen()
	e.state, e.second, e.reference, e.fingerprint, e.owner = nil, nil, nil, "", activities.Run{}
	clear(e.updates)
	clear(e.own)
	e.trim(maxPrograms)
}

// trim frees the least recently used programs until a number is left, except the programs
// of the run whose policy is in memory.
func (e *Engine) trim(most int) {
	for len(e.programs) > max(most, len(e.own)) {
		var oldest programsKey
		first := math.MaxInt
		for key, p := range e.programs {
			if p.used < first && !e.own[key] { // no two are equal
				oldest, first = key, p.used
			}
		}
		e.programs[oldest].Free()
		delete(e.programs, oldest)
	}
}

// drop frees the policy and the second network in memory. The programs, the reference and a frozen base
// model stay.
func (e *Engine) drop() { e.hold(nil, nil) }

// dropAll also frees the reference and a frozen base model.
func (e *Engine) dropAll() {
	e.drop()
	if e.frozen != nil {
		e.dropReference()
	}
	e.dropFrozen()
}

// dropReference gives up the reference.
func (e *Engine) dropReference() {
	if e.reference != nil {
		e.reference.Free()
		e.reference, e.referenceOf = nil, ""
	}
}

// abandon drops the policy and the second network after an error if they are no version any more: an
// update was under way, of which an optimizer step was made or failed while it wrote. It
// tells whether that is so.
func (e *Engine) abandon(err error) bool {
	if e.fingerprint != "" && !errors.Is(err, model.ErrConsumed) {
		return false
	}
	if !errors.Is(err, failure.ErrDeviceFailed) { // else the device may not answer
		e.drop()
	}
	e.fingerprint = ""
	return true
}

// hold replaces the policy and the second network in memory, which is nil if there is none. Until
// fingerprint is called they are not a version.
func (e *Engine) hold(policy, second *model.State) {
	e.dropSampler()
	e.dropBegun()
	e.dropKept()
	if e.state != nil && e.state != policy {
		e.state.Free()
	}
	if e.second != nil && e.second != second {
		e.second.Free()
	}
	e.state, e.second, e.fingerprint = policy, second, ""
}

// computeFingerprint computes the fingerprint of the state in memory and stores it.
func (e *Engine) computeFingerprint() error {
	fingerprint, err := model.PairFingerprint(e.state, e.second)
	if err != nil {
		return fmt.Errorf("state fingerprint: %w", err)
	}
	e.fingerprint = fingerprint
	return nil
}

// resident checks that the policy version is the one in memory, for work on it. That needs
// the memory of an update that was begun on it, and of what was published of the version before.
func (e *Engine) resident(v activities.Version) error {
	if e.state == nil || e.fingerprint != v.State {
		held := "nothing"
		if e.state != nil {
			held = e.fingerprint
		}
		return fmt.Errorf("version %d of run %s has state %s, in memory is %s: %w", v.Version, v.Run.ID, v.State, held, activities.ErrNotResident)
	}
	e.dropBegun()
	e.dropSampler()
	return nil
}

// programsFor gives the programs of some shapes of a run, compiled when first used.
func (e *Engine) programsFor(rc *run.Context, run activities.Run, shapes model.Shapes) (*model.Programs, error) {
	return e.prepared(policyKey(rc, run, shapes), rc, run)
}

func policyKey(rc *run.Context, run activities.Run, shapes model.Shapes) programsKey {
	return programsKey{base: run.Base.Digest, lora: rc.Config.LoRA, shapes: shapes}
}

func (e *Engine) prepared(key programsKey, rc *run.Context, run activities.Run) (*model.Programs, error) {
	if e.owner.ID == run.ID {
		e.own[key] = true
	}
	if e.use(key) {
		return e.programs[key].Programs, nil
	}
	c, legal := rc.Config, rc.Legal
	if key.second == criticNetwork { // a process reward model has the policy's programs
		c, legal = secondConfig(rc), nil
	}
	p, err := e.device.Programs(c, legal, key.shapes)
	if err != nil {
		return nil, fmt.Errorf("programs of run %s: %w", run.ID, err)
	}
	e.programs[key] = &cachedPrograms{Programs: p}
	e.use(key)
	return p, nil
}

// use notes that programs are used; false if they are not there.
func (e *Engine) use(key programsKey) bool {
	p, ok := e.programs[key]
	if ok {
		e.uses++
		p.used, p.scan = e.uses, e.scan.Load()
	}
	return ok
}

// named are a set of programs and the name it has in a manifest.
type named struct {
	name     string
	programs *model.Programs
}

// programs are the keys of a run's programs, as all gives them.
func programKeys(rc *run.Context, run activities.Run) []programsKey {
	var keys []programsKey
	for turn := 1; turn <= rc.Train.Rollout.Turns; turn++ {
		keys = append(keys, policyKey(rc, run, rc.Shapes(rc.Training, turn)))
	}
	if rc.Train.Credit.Second() {
		keys = append(keys, secondKey(rc, run))
	}
	return keys
}

// all are the programs of a run's iterations: the programs of each turn, of which the
// first also update, and the second network's.
func (e *Engine) all(rc *run.Context, run activities.Run) ([]named, error) {
	var out []named
	for i, key := range programKeys(rc, run) {
		p, err := e.prepared(key, rc, run)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("turn-%d", i+1)
		if key.second != noNetwork {
			name = string(key.second)
		}
		out = append(out, named{name, p})
	}
	return out, nil
}

// remember notes an update, so that a retry of the same one need not run.
func (e *Engine) remember(k updateKey, r activities.UpdateResult) {
	if len(e.updates) >= maxRecords {
		clear(e.updates)
	}
	e.updates[k] = r
}
