package device

import (
	"context"

	"github.com/reprise-rl/reprise/activities/run"
)

// learnPreferences does the next micro-batch of the process reward model's step, and the step if it
// was the last. It is one step over all rows of the batch, before the policy's: then the log-probs
// that the preferences were computed from are those of the parameters that learn.
func (u *update) learnPreferences(ctx context.Context, e *Engine, b *begunUpdate) error {
	if b.prm == nil {
		batches, err := run.Preferences(run.Picked(u.rows, u.preferred), u.policy.Shapes())
		if err != nil {
			return err
		}
		if b.prm, err = u.prm.Gradient(batches, u.prefer); err != nil {
			return err
		}
		if err := b.prm.Shard(u.shards); err != nil {
			return err
		}
	}
	next, m, added, err := add(ctx, b.prm, e.second)
	if err != nil {
		return err
	}
	b.done += added
	if next != nil {
		e.hold(e.state, next)
		b.prm, b.made.prm = nil, &m
	}
	return nil
}
