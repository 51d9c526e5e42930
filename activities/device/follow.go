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

// ErrNoRoom says that the weights of a run are not kept ahead of time, since they have no room beside those of others.
var ErrNoRoom = errors.New("there is no room for the run's weights")

// Followed is how far the weights of a run are here, which another worker trains.
type Followed struct {
	// Version is the one in memory, and Committed the newest one that is committed: they are equal unless a run has asked for the
	// device meanwhile.
	Version, Committed int
	// Applied is how many updates were applied for it, and Took how long it took.
	Applied int
	Took    time.Duration
}

// following is the run whose weights are brought up to date, and how that is stopped.
type following struct {
	run  string
	stop context.CancelFunc
}

// followed is a version that following a run has reached.
type followed struct {
	state   string // its fingerprint
	version int
}

// maxBehind is by how many iterations a version is taken up to date by their updates, in place of a newer snapshot: a snapshot has
// three times the bytes of the weights, and an update's batch is small.
const maxBehind = 4

// nearer tells that what is in memory of a run is nearer to what is asked for than a snapshot.
func (e *Engine) nearer(in activities.RestoreInput, s *store.SnapshotRef) bool {
	f := e.followed
	return f.state != "" && f.state == e.fingerprint && e.owner == in.Version.Run && s.State != e.fingerprint &&
		f.version < s.Version && in.Version.Version-f.version <= maxBehind
}

// Follows names the runs that Follow is called for, and tells of which of them the device has weights. What it has of others makes
// room when it is needed. If somebody computes it does nothing, and free is false.
func (e *Engine) Follows(runs []string) (kept map[string]bool, free bool) {
	select {
	case <-e.lease:
	default:
		return nil, false
	}
	defer func() { e.lease <- struct{}{} }()
	e.follows, kept = map[string]bool{}, map[string]bool{}
	for _, id := range runs {
		e.follows[id] = true
		kept[id] = e.owner.ID == id && e.fingerprint != ""
	}
	for of := range e.aside {
		kept[of.ID] = e.follows[of.ID]
	}
	return kept, true
}

// Follow brings the weights of a run that another worker trains up to its newest committed version: from its snapshot, or from
// what is here of the run, by the recorded updates. So the run continues at once if it comes here. It ends at the next micro-batch
// when a run is given the device, and at the next tensor if that is another run; what it has done so far stays for the run itself.
// If somebody computes already it does nothing, and ok is false. bytes bounds the weights of all runs that are followed; without
// room the error is an ErrNoRoom.
func (e *Engine) Follow(ctx context.Context, d *Device, runID string, bytes int64) (out Followed, ok bool, err error) {
	begin := time.Now()
	defer func() { out.Took = time.Since(begin) }()
	in, err := d.newest(ctx, runID)
	if err != nil {
		return out, false, err
	}
	out.Committed = in.Version.Version
	rc, err := d.contexts.Read(ctx, d.Store, in.Version.Run)
	if err != nil {
		return out, false, err
	}
	in.MaxSeconds = rc.Train.Limits.ActivitySeconds
	for {
		r, taken, err := d.ahead(ctx, in, rc, bytes)
		if err != nil || !taken {
			return out, false, err
		}
		out.Version, out.Applied = r.Reached, out.Applied+r.Telemetry.Recomputed
		if r.Done || e.Taken() {
			return out, true, nil
		}
	}
}

// newest asks for the newest committed version of a run.
func (d *Device) newest(ctx context.Context, runID string) (in activities.RestoreInput, err error) {
	head, err := store.Head(ctx, d.Store, runID)
	if err != nil {
		return in, err
	}
	m := head.Manifest
	base, err := run.PutIndex(ctx, d.Store, m.Base)
	if err != nil {
		return in, err
	}
	in.Version = activities.Version{
		Run: activities.Run{ID: runID, Spec: m.Spec, Base: base}, Branch: m.Branch, Version: m.Iteration + 1, State: m.StateAfter,
	}
	in.Head = &head.Ref
	return in, nil
}

// ahead is Restore while nobody asks for the run here.
func (d *Device) ahead(ctx context.Context, in activities.RestoreInput, rc *run.Context, bytes int64) (
	out activities.RestoreResult, taken bool, err error) {
	e := d.Engine
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	e.following.Store(&following{in.Version.Run.ID, stop})
	defer e.following.Store(nil)
	acquire := func(_ context.Context, run activities.Run) (release func(), _ time.Duration, err error) {
		select {
		case <-e.lease:
		default:
			return nil, 0, activities.ErrNotFree
		}
		free := func() { e.lease <- struct{}{} }
		// Whoever gives the device to a run counts that in sessions first, and then stops what it finds in following. Here the order is
		// the other way round, so that one of the two sees the other.
		if e.draining.Load() || e.Taken() {
			free()
			return nil, 0, activities.ErrNotFree
		}
		if err := e.roomAhead(run, rc, bytes); err != nil {
			free()
			return nil, 0, err
		}
		e.turnTo(run, true)
		e.bytes = weightBytes(rc)
		bound := time.Duration(steps.Restore.Bound*in.MaxSeconds) * time.Second
		watched := e.watchdog("following run "+run.ID, bound)
		return func() { watched(); free() }, 0, nil
	}
	w, done, err := d.beginBy(ctx, in.Version.Run, acquire, func() (*run.Context, error) { return rc, nil })
	if errors.Is(err, activities.ErrNotFree) {
		return out, false, nil
	}
	if err != nil {
		return out, false, err
	}
	defer func() {
		if errors.Is(err, failure.ErrOutOfMemory) { // no run has lost anything: the device is as good as before
			e.forget()
			e.trim(0)
			err = fmt.Errorf("%w: %s", ErrNoRoom, cut(err.Error()))
		}
		done(&err)
		if err != nil && ctx.Err() != nil { // somebody else needs the device
			taken, err = false, nil
		}
	}()
	w.yields = func() bool { return e.Taken() || ctx.Err() != nil }
	out, err = d.restore(ctx, w, in)
	e.passedOver = append(e.passedOver, out.Damaged...)
	if out.Done {
		out.Reached = in.Version.Version // the last updates may have changed nothing
	}
	if err == nil && e.fingerprint != "" {
		e.followed = followed{e.fingerprint, out.Reached}
	}
	return out, true, err
}

// roomAhead refuses a run whose weights have no room beside those of the other runs that are followed. Those of runs that are not
// followed any more are no reason: they make room.
func (e *Engine) roomAhead(run activities.Run, rc *run.Context, bytes int64) error {
	if bytes <= 0 {
		bytes = e.memory / 2
	}
	need := weightBytes(rc)
	if bytes <= 0 {
		return nil // nobody knows
	}
	others := int64(0)
	for other, there := range e.aside {
		if other != run && e.follows[other.ID] {
			others += there.bytes
		}
	}
	if e.owner != run && e.fingerprint != "" && e.follows[e.owner.ID] {
		others += e.bytes
	}
	if need+others > bytes {
		return fmt.Errorf("%w: %.1f GiB beside %.1f GiB of other runs, and all may have %.1f GiB", ErrNoRoom, gib(need), gib(others), gib(bytes))
	}
	return nil
}

// weightBytes is an estimate of what the weights of a run need of a device: with moments, and those of networks beside the policy.
func weightBytes(rc *run.Context) int64 {
	m := derived(rc).Memory
	return m.Frozen + m.Weights + m.Moments + m.ComputeCopy + m.Critic + m.Teacher + m.Judge
}

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }
