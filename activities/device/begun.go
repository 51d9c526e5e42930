package device

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
)

// updateKey addresses an update: the same parent, batch and settings give the
// same child, so a retried Update answers at once.
type updateKey struct {
	parent, batch, settings string
	branch, iteration       int
}

// keyOf addresses an update by its inputs.
func keyOf(in activities.UpdateInput) (updateKey, error) {
	digest, err := run.DigestOf(in.Settings)
	return updateKey{
		parent: in.Policy.State, batch: in.Batch.Digest, settings: digest, branch: in.Policy.Branch, iteration: in.Policy.Version,
	}, err
}

// begunUpdate is an update between two of its pieces: how far it is, and what the pieces have
// left. The state that its optimizer steps have made so far is the engine's, which holds no
// version from the first of them to the end of the update.
type begunUpdate struct {
	key      updateKey
	done, of int            // micro-batches, as activities.BegunUpdate counts them
	exact    *run.Exactness // of the update's beginning; nil before it is known, and in runs that score all rows
	// scored are the log-probs of the stale rows that were scored again, before the first step.
	scored [][]float32
	step   int  // the optimizer step that is on the way
	valued bool // the critic, which is the first, has made that step
	// policy, critic and prm are the sums of the step's micro-batches, nil while there are none.
	policy, prm *model.Gradient[model.UpdateMetrics]
	critic      *model.Gradient[model.CriticMetrics]
	made        stepped // the steps before
	// broken: a micro-batch has failed, so that no piece can follow.
	broken bool
}

func (b *begunUpdate) free() {
	if b.policy != nil {
		b.policy.Free()
	}
	if b.prm != nil {
		b.prm.Free()
	}
	if b.critic != nil {
		b.critic.Free()
	}
}

// told is how far the update is, as histories keep it.
func (b *begunUpdate) told(in activities.UpdateInput) *activities.BegunUpdate {
	out := &activities.BegunUpdate{Done: b.done, Of: b.of}
	if in.Begun != nil {
		out.Lost = in.Begun.Lost
	}
	return out
}

// maxRecords bounds the memory of updates: a retry asks for the last one only.
const maxRecords = 64

// remember notes an update, so that a retry of the same one need not run.
func (e *Engine) remember(k updateKey, r activities.UpdateResult) {
	if len(e.updates) >= maxRecords {
		clear(e.updates)
	}
	e.updates[k] = r
}

// dropBegun gives up the update that was begun, if there is one.
func (h *held) dropBegun() {
	if h.begun != nil {
		h.begun.free()
		h.begun = nil
	}
}

// doneBefore is how many micro-batches the pieces before have done.
func doneBefore(in activities.UpdateInput) int {
	if in.Begun == nil {
		return 0
	}
	return in.Begun.Done
}

// remembered gives what the memory answers to a piece that is done, or to an update.
func (e *Engine) remembered(key updateKey, in activities.UpdateInput) (r activities.UpdateResult, ok bool) {
	if r, ok := e.updates[key]; ok && e.fingerprint == r.State {
		return r, true
	}
	if b := e.begun; b != nil && b.key == key && b.done > doneBefore(in) {
		return activities.UpdateResult{Begun: b.told(in)}, true
	}
	return r, false
}

// takeBegun takes an update out of the memory, to continue it. A first piece begins on the
// version in memory. A piece that does not follow on what is there is an ErrNotResident.
func (e *Engine) takeBegun(key updateKey, in activities.UpdateInput) (*begunUpdate, error) {
	done := doneBefore(in)
	if b := e.begun; b != nil && b.key == key && b.done >= done {
		e.begun = nil
		return b, nil
	}
	if done > 0 {
		return nil, fmt.Errorf("%d micro-batches of the update of version %d of run %s are done, and not in memory: %w",
			done, in.Policy.Version, in.Policy.Run.ID, activities.ErrNotResident)
	}
	if err := e.resident(in.Policy); err != nil {
		return nil, err
	}
	return &begunUpdate{key: key}, nil
}

// leave puts an update back for the next piece, if one can follow. After an error from which
// none can follow the memory holds the version before the update or, if an optimizer step was
// made or failed while it wrote, none: then the error is an ErrNotResident.
func (e *Engine) leave(b *begunUpdate, err error) error {
	switch {
	case err == nil && b.done == b.of:
		return nil
	case !b.broken:
		if b.done > 0 {
			e.begun = b
		}
		return err
	}
	b.free()
	if e.abandon(err) {
		err = fmt.Errorf("%w: %w", activities.ErrNotResident, err)
	}
	return err
}
