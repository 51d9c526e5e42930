package device

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
)

// Block samples one block of a turn's rows by the version in memory, and stores their table: the
// bytes are those that any other worker stores. If the run has another version in memory, which an update
// made since the rollout began, it reads what was published beside it.
func (d *Device) Block(ctx context.Context, in activities.BlockInput) (_ activities.BlockResult, err error) {
	defer run.Edge(ctx, &err, "block %d of turn %d of run %s", in.Block+1, in.Turn, in.Policy.Run.ID)
	w, done, err := d.beginTurn(ctx, in.Policy.Run)
	if err != nil {
		return activities.BlockResult{}, err
	}
	defer done(&err)
	e := w.engine
	policy := e.state
	if e.state == nil || e.fingerprint == "" || e.fingerprint == in.Policy.State {
		if err := e.resident(in.Policy); err != nil {
			return activities.BlockResult{}, err
		}
	} else if policy, err = w.beside(ctx, d.Store, in); err != nil {
		return activities.BlockResult{}, err
	}
	e.dropKept()
	return w.block(ctx, d.Store, policy, in)
}

// help is Block for a run whose session is on another worker: it loads what that one published,
// unless it is in memory. It answers at once with an ErrNotFree if a run has a session here, or
// somebody computes.
func (d *Device) help(ctx context.Context, in activities.BlockInput) (_ activities.BlockResult, err error) {
	defer run.Edge(ctx, &err, "help with block %d of turn %d of run %s", in.Block+1, in.Turn, in.Policy.Run.ID)
	of := in.Policy.Run
	w, done, err := d.beginBy(ctx, of, d.Engine.acquireFree, func() (*run.Context, error) { return d.contexts.Read(ctx, d.Store, of) })
	if err != nil {
		return activities.BlockResult{}, err
	}
	defer done(&err)
	policy, err := w.sampler(ctx, d.Store, in)
	if err != nil {
		return activities.BlockResult{}, err
	}
	return w.block(ctx, d.Store, policy, in)
}

// acquireFree is acquire for a block of a run that has no session here. It waits for nobody.
func (e *Engine) acquireFree(ctx context.Context, run activities.Run) (release func(), waited time.Duration, err error) {
	if e.Taken() {
		return nil, 0, fmt.Errorf("a run has a session here: %w", activities.ErrNotFree)
	}
	select {
	case <-e.lease:
	default:
		return nil, 0, fmt.Errorf("somebody computes here: %w", activities.ErrNotFree)
	}
	release, err = e.leased(ctx, run)
	return release, 0, err
}

// SessionOpened notes that a run has this device, until closed is called. What is done for another run ahead of time ends.
func (e *Engine) SessionOpened(run string) (closed func()) {
	e.sessions.Add(1)
	if f := e.following.Load(); f != nil && f.run != run {
		f.stop()
	}
	return func() { e.sessions.Add(-1) }
}

// Taken tells that a run has this device.
func (e *Engine) Taken() bool { return e.sessions.Load() > 0 }

// block samples a block's rows by a policy.
func (w *work) block(ctx context.Context, s store.Store, policy *model.State, in activities.BlockInput) (activities.BlockResult, error) {
	generate := in.Generate()
	task, err := w.Task(in.Rollout)
	if err != nil {
		return activities.BlockResult{}, err
	}
	rows, contexts, _, err := contexts(ctx, w.Context, s, task, generate)
	if err != nil {
		return activities.BlockResult{}, err
	}
	b, err := pieceOf(len(rows), w.Train.Rollout.BlockRows, in.Block)
	if err != nil {
		return activities.BlockResult{}, err
	}
	rows, contexts = rows[b.from:b.to], contexts[b.from:b.to]
	if err := w.sample(ctx, policy, task, generate, rows, contexts, nil); err != nil {
		return activities.BlockResult{}, err
	}
	name := run.TurnName(in.Rollout, in.Turn, fmt.Sprintf("generate.block-%d", in.Block+1))
	ref, err := tables.Put(ctx, s, run.Dir(in.Policy.Run, in.Policy.Branch, in.Rollout), name, rows)
	if err != nil {
		return activities.BlockResult{}, err
	}
	return activities.BlockResult{Table: ref, Telemetry: w.telemetry()}, nil
}
