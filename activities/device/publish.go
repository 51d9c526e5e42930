package device

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
)

// Publish stores what the sampler's programs read of the resident version, beside the tables of
// the iteration that it samples. No manifest names it: it is an orphan once the iteration is
// committed.
func (d *Device) Publish(ctx context.Context, in activities.PublishInput) (_ activities.PublishResult, err error) {
	defer run.Edge(ctx, &err, "publish version %d of run %s", in.Policy.Version, in.Policy.Run.ID)
	w, done, err := d.begin(ctx, in.Policy.Run)
	if err != nil {
		return activities.PublishResult{}, err
	}
	defer done(&err)
	if err := d.Engine.resident(in.Policy); err != nil {
		return activities.PublishResult{}, err
	}
	p, err := w.engine.programsFor(w.Context, in.Policy.Run, w.Shapes(w.Training, 1))
	if err != nil {
		return activities.PublishResult{}, err
	}
	out := activities.PublishResult{Published: activities.Published{Frozen: w.engine.frozenFingerprint()}}
	if out.Published.Sampler, err = p.Sampler.Fingerprint(w.engine.state); err != nil {
		return activities.PublishResult{}, err
	}
	files, err := p.Sampler.Files(w.engine.state, cmp.Or(d.fileBytes, model.SnapshotFile))
	if err != nil {
		return activities.PublishResult{}, err
	}
	prefix := store.IterationDir(in.Policy.Run.ID, in.Policy.Branch, in.Policy.Version) + "/sampler."
	folder, err := store.PutFolder(ctx, d.Store, prefix, store.InOrder(run.Streamed(files)))
	if err != nil {
		return activities.PublishResult{}, fmt.Errorf("store the sampler of version %d: %w", in.Policy.Version, err)
	}
	out.Published.Files, out.Telemetry = folder.Files, w.telemetry()
	return out, nil
}

// sampler gives the policy of a block for a run whose session is elsewhere: what was published, or
// the version itself where this worker still has it.
func (w *work) sampler(ctx context.Context, s store.Store, in activities.BlockInput) (*model.State, error) {
	e, of := w.engine, in.Policy.Run
	if e.state != nil && e.fingerprint != "" && e.fingerprint == in.Policy.State {
		return e.state, nil
	}
	if e.sampler != nil && e.sampler.fingerprint == in.Published.Sampler {
		return e.sampler.policy, nil
	}
	known := e.sampler != nil // its programs were checked before it was loaded
	if e.dropSampler(); !e.follows[of.ID] {
		e.drop()
	}
	if !known {
		if err := w.samplerPrograms(ctx, of, in.Programs); err != nil {
			return nil, err
		}
	}
	return w.loadSampler(ctx, s, in)
}

// beside gives the policy of a block by a version that an update has replaced in memory.
func (w *work) beside(ctx context.Context, s store.Store, in activities.BlockInput) (*model.State, error) {
	e := w.engine
	if e.sampler != nil && e.sampler.fingerprint == in.Published.Sampler {
		return e.sampler.policy, nil
	}
	e.dropSampler()
	return w.loadSampler(ctx, s, in)
}

// loadSampler loads what was published.
func (w *work) loadSampler(ctx context.Context, s store.Store, in activities.BlockInput) (*model.State, error) {
	e, of, begin := w.engine, in.Policy.Run, time.Now()
	p, err := e.programsFor(w.Context, of, w.Shapes(w.Training, 1))
	if err != nil {
		return nil, err
	}
	folder, err := w.openState(ctx, s, of, in.Published.Files)
	if err != nil {
		return nil, fmt.Errorf("read what was published: %w", err)
	}
	if held := e.frozenFingerprint(); held != in.Published.Frozen {
		e.dropAll()
		return nil, fmt.Errorf("the base model below the adapters is %s, published is %s: %w", held, in.Published.Frozen, activities.ErrStateDiffers)
	}
	policy, err := p.Sampler.Load(folder.folder.First().Over(folder.base))
	if err != nil {
		return nil, fmt.Errorf("load what was published: %w", err)
	}
	fingerprint, err := p.Sampler.Fingerprint(policy)
	if err == nil && fingerprint != in.Published.Sampler {
		err = fmt.Errorf("what was published is %s when loaded, recorded is %s: %w", fingerprint, in.Published.Sampler, activities.ErrStateDiffers)
	}
	if err != nil {
		policy.Free()
		return nil, err
	}
	e.sampler = &sampler{fingerprint, policy}
	w.measured.LoadSeconds += time.Since(begin).Seconds()
	return policy, nil
}

// samplerPrograms checks that this worker lowers the run's programs, and that its device samples
// the same twice.
func (w *work) samplerPrograms(ctx context.Context, of activities.Run, recorded string) error {
	hashes, err := w.lower(of)
	if err != nil {
		return err
	}
	if present := activities.DigestOfPrograms(hashes); recorded != "" && present != recorded {
		return fmt.Errorf("the programs of this build have the digest %s, the run's %s: %w", present, recorded, activities.ErrProgramsDiffer)
	}
	shapes := w.Shapes(w.Training, 1)
	p, err := w.engine.programsFor(w.Context, of, shapes)
	if err != nil {
		return err
	}
	tested := w.engine.programs[policyKey(w.Context, of, shapes)]
	if tested.tested || tested.sampled || w.engine.trusted {
		return nil
	}
	w.engine.dropAll() // the probes have a base model of their own
	prompts := w.selfTestPrompts(shapes, draw.Address{Purpose: "self-test"}.Rand())
	if err := w.repeatsGeneration(ctx, p, prompts); err != nil {
		return err
	}
	if err := w.generationsAgree(ctx, p.Sampler, prompts); err != nil {
		return err
	}
	tested.sampled = true
	return nil
}
