package device

import (
	"context"
	"fmt"
	"math"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// Restore makes the worker hold a policy version: from memory, or from the newest
// snapshot at or before it and the recorded updates since. The batches are the
// write-ahead log of the weights. Each step's state fingerprint is checked against the
// recorded one. A call stops between two updates, or two micro-batches of one, when MaxSeconds
// are over or at the end of a piece of an update; the next one continues from there.
func (d *Device) Restore(ctx context.Context, in activities.RestoreInput) (_ activities.RestoreResult, err error) {
	defer run.Edge(ctx, &err, "restore version %d of run %s", in.Version.Version, in.Version.Run.ID)
	w, done, err := d.begin(ctx, in.Version.Run)
	if err != nil {
		return activities.RestoreResult{}, err
	}
	defer done(&err)
	return d.restore(ctx, w, in)
}

// restore is Restore for who has the device.
func (d *Device) restore(ctx context.Context, w *work, in activities.RestoreInput) (_ activities.RestoreResult, err error) {
	run := in.Version.Run
	out := activities.RestoreResult{Load: machineLoad()}
	if w.yields == nil { // else nobody hears of it
		out.Damaged, w.engine.passedOver = w.engine.passedOver, nil
	}
	if out.Programs, err = w.lower(run); err != nil {
		return activities.RestoreResult{}, err
	}
	goal, log, err := d.fittingLog(ctx, in, out.Programs)
	if err != nil {
		return activities.RestoreResult{}, err
	}
	others := map[string]*work{} // the runs that this one continues, by spec
	end := w.bound(in.MaxSeconds)
	if !in.Evaluate { // else programs are compiled when they are first used
		if err := w.compile(ctx, run); err != nil {
			return activities.RestoreResult{}, err
		}
		if err := w.selfTest(ctx, run, w.Train.Credit.Second()); err != nil {
			return activities.RestoreResult{}, err
		}
		if err := w.testFrozen(ctx, d.Store, run); err != nil {
			return activities.RestoreResult{}, err
		}
	}
	at, err := w.startingPoint(ctx, d.Store, in, goal, log, &out)
	for err != nil && !in.Whole && d.passOver(log, err) {
		if d.isDamaged(log.snapshot) {
			out.Damaged = append(out.Damaged, log.from)
		}
		if goal, log, err = d.fittingLog(ctx, in, out.Programs); err == nil {
			at, err = w.startingPoint(ctx, d.Store, in, goal, log, &out)
		}
	}
	if err != nil {
		return activities.RestoreResult{}, err
	}
	for first := at; at < len(log.updates) && w.engine.fingerprint != goal; at++ {
		if at > first && end.reached(0) {
			break
		}
		u := log.updates[at]
		by := w
		if u.run.Spec != run.Spec {
			if by, err = d.lend(ctx, w, u, others); err != nil {
				return activities.RestoreResult{}, err
			}
		}
		begun := time.Now()
		r, err := by.apply(ctx, d.Store, u.input(), end)
		if err != nil {
			return activities.RestoreResult{}, fmt.Errorf("apply the update of iteration %d again: %w", u.iteration, err)
		}
		w.measured.RecomputeSeconds += time.Since(begun).Seconds()
		if out.Begun = r.Begun; r.Begun != nil {
			break
		}
		if r.State != u.after {
			d.Engine.forget()
			return activities.RestoreResult{}, fmt.Errorf("version %d is %s when rebuilt, recorded is %s: %w", u.iteration+1, r.State, u.after, activities.ErrStateDiffers)
		}
		w.measured.Recomputed++
	}
	out.State, out.Before = w.engine.fingerprint, in.Version.State
	if in.Version.State == "" {
		out.Before = w.engine.fingerprint // version 0, loaded for the first time
	}
	out.Frozen = w.engine.frozenFingerprint()
	out.Done = out.Resident || goal == "" || w.engine.fingerprint == goal
	out.Reached, out.From = in.Version.Version, log.from
	if at < len(log.updates) {
		out.Reached = log.updates[at].iteration
	}
	out.Telemetry = w.telemetry()
	if activity.IsActivity(ctx) && !out.Resident {
		activity.GetLogger(ctx).Info("version restored", "run", run.ID, "version", out.Reached,
			"seconds", math.Round(out.Telemetry.Seconds*10)/10, "parts", out.Telemetry.RestoreParts())
	}
	return out, nil
}

// lend is the work of another spec on this one's device, another run's or that of an earlier description of the
// environment: an update that was made there is applied again with the programs it was made with.
func (d *Device) lend(ctx context.Context, w *work, u logEntry, others map[string]*work) (*work, error) {
	if by := others[u.run.Spec.Digest]; by != nil {
		return by, nil
	}
	by := &work{engine: w.engine, start: w.start}
	var hashes map[string]string
	var err error
	if by.Context, err = d.contexts.Read(ctx, d.Store, u.run); err == nil {
		hashes, err = by.lower(u.run)
	}
	if err == nil {
		err = activities.SamePrograms(u.programs, hashes)
	}
	if err != nil {
		return nil, fmt.Errorf("iteration %d of run %s, which this one continues from: %w", u.iteration, u.run.ID, err)
	}
	others[u.run.Spec.Digest] = by
	return by, nil
}

// startingPoint makes the engine hold the latest state it can without
// recomputing: the goal itself, a version or a part of an update on the way, or the stored
// one. It gives the index of the first update to apply.
func (w *work) startingPoint(ctx context.Context, s store.Store, in activities.RestoreInput, goal string, log updateLog,
	out *activities.RestoreResult) (int, error) {
	at, err := w.engine.begunOf(in, log)
	if err != nil {
		return 0, err
	}
	if at >= 0 {
		out.Resident = at == len(log.updates)
		return at, nil
	}
	if w.engine.state != nil && w.engine.fingerprint != "" {
		if goal != "" && w.engine.fingerprint == goal {
			out.Resident = true
			return len(log.updates), nil
		}
		for i := len(log.updates) - 1; i >= 0; i-- {
			if log.updates[i].before == w.engine.fingerprint {
				return i, nil
			}
		}
	}
	begin := time.Now()
	if err := w.load(ctx, s, in.Version.Run, log.snapshot); err != nil {
		return 0, fmt.Errorf("version %d: %w", log.from, err)
	}
	if held := w.engine.frozenFingerprint(); log.frozen != "" && held != log.frozen {
		w.engine.forget()
		return 0, fmt.Errorf("the base model below the adapters is %s, recorded is %s: %w", held, log.frozen, activities.ErrStateDiffers)
	}
	want := goal
	if len(log.updates) > 0 {
		want = log.updates[0].before
	}
	if log.snapshot != nil {
		want = log.snapshot.State
	}
	if print := w.engine.fingerprint; want != "" && print != want {
		w.engine.forget()
		return 0, fmt.Errorf("stored version %d is %s, recorded is %s: %w", log.from, print, want, activities.ErrStateDiffers)
	}
	w.measured.LoadSeconds += time.Since(begin).Seconds()
	return 0, nil
}

// load makes the engine hold a stored state: a snapshot, or version 0 with zero moments.
// A critic begins as a copy of version 0 but for the head, a process reward model as a copy. Tensors are read and uploaded one
// at a time.
func (w *work) load(ctx context.Context, s store.Store, run activities.Run, ref *store.SnapshotRef) error {
	p, err := w.engine.programsFor(w.Context, run, w.Shapes(w.Training, 1))
	if err != nil {
		return err
	}
	w.engine.drop() // room for what is loaded
	if ref == nil {
		return w.loadFirst(ctx, s, run, p)
	}
	folder, err := w.openState(ctx, s, run, ref.Files)
	if err != nil {
		return fmt.Errorf("read the snapshot: %w", err)
	}
	policy, err := folder.policy()
	if err != nil {
		return fmt.Errorf("read the snapshot: %w", err)
	}
	state, err := w.loadVersion(p, policy)
	if err != nil {
		return fmt.Errorf("load the snapshot: %w", err)
	}
	w.engine.hold(state, nil)
	if w.Train.Credit.Second() {
		second, err := folder.second(secondConfig(w.Context))
		if err != nil {
			return fmt.Errorf("read the snapshot: %w", err)
		}
		if err := w.loadSecond(run, second); err != nil {
			return err
		}
	}
	return w.engine.computeFingerprint()
}

// loadVersion loads a state with its fingerprint, and notes how long the parts took.
func (w *work) loadVersion(p *model.Programs, src model.Source) (*model.State, error) {
	state, took, err := p.LoadVersion(src)
	w.measured.UploadSeconds += took.Upload.Seconds()
	w.measured.FingerprintSeconds += took.Fingerprint.Seconds()
	return state, err
}

// loadFirst makes the engine hold version 0.
func (w *work) loadFirst(ctx context.Context, s store.Store, run activities.Run, p *model.Programs) error {
	first, err := w.version0(ctx, s, run)
	if err != nil {
		return err
	}
	state, err := w.loadVersion(p, first)
	if err != nil {
		return fmt.Errorf("load version 0: %w", err)
	}
	w.engine.hold(state, nil)
	switch secondOf(w.Train.Credit) {
	case criticNetwork:
		err = w.loadSecond(run, state.NewCritic(w.Train.Credit.Values()))
	case prmNetwork:
		err = w.loadSecond(run, state.NewPRM())
	}
	if err != nil {
		return err
	}
	return w.engine.computeFingerprint()
}

// loadSecond puts a second network beside the policy in memory.
func (w *work) loadSecond(run activities.Run, src model.Source) error {
	p, err := w.engine.secondFor(w.Context, run)
	if err != nil {
		return err
	}
	second, err := w.loadVersion(p, src)
	if err != nil {
		return fmt.Errorf("load the second network: %w", err)
	}
	w.engine.hold(w.engine.state, second)
	return nil
}

// reference makes the engine hold the run's reference: version 0, which branches share, or the version
// in a manifest's snapshot. It has no moments.
func (w *work) reference(ctx context.Context, s store.Store, run activities.Run, at *store.Ref) (*model.State, error) {
	of := ""
	if at != nil {
		of = at.Digest
	}
	if w.engine.reference != nil && w.engine.referenceOf == of {
		return w.engine.reference, nil
	}
	begin := time.Now()
	w.engine.dropReference()
	src, err := w.referenceAt(ctx, s, run, at)
	if err != nil {
		return nil, err
	}
	p, err := w.engine.programsFor(w.Context, run, w.Shapes(w.Training, 1))
	if err != nil {
		return nil, err
	}
	if w.engine.reference, err = p.LoadParams(src); err != nil {
		return nil, fmt.Errorf("load the reference: %w", err)
	}
	w.engine.referenceOf = of
	w.measured.LoadSeconds += time.Since(begin).Seconds()
	return w.engine.reference, nil
}

// referenceAt gives version 0 or, of a manifest, the policy of its snapshot.
func (w *work) referenceAt(ctx context.Context, s store.Store, run activities.Run, at *store.Ref) (model.Source, error) {
	if at == nil {
		return w.version0(ctx, s, run)
	}
	m, err := store.ReadManifest(ctx, s, *at)
	if err != nil {
		return model.Source{}, fmt.Errorf("reference: %w", err)
	}
	if m.Snapshot == nil {
		return model.Source{}, fmt.Errorf("reference: iteration %d of run %s has no snapshot: %w", m.Iteration, m.Run, store.ErrInvalid)
	}
	folder, err := w.openState(ctx, s, run, m.Snapshot.Files)
	if err != nil {
		return model.Source{}, fmt.Errorf("reference: version %d: %w", m.Snapshot.Version, err)
	}
	return folder.policy()
}
