package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/workflows/iteration"
)

// commit makes an iteration count, and moves the run to the next one. The device does not wait for
// the manifest: the first samples of the next iteration run beside the commit. That iteration has
// begun with them, so its settings are fixed; a command that comes meanwhile counts from the one
// after. If the commit fails, the run ends without it, and its samples are orphans.
func (t *train) commit(ctx workflow.Context, s *session, it *iteration.Iteration, c iteration.Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.committing = true // too late to make this the last iteration
	samples := t.sampleAhead(ctx, s, it)
	err := t.doWaited(ctx, s, it, c)
	t.committing = false
	if err != nil {
		if corrected(err) != nil || t.damaged(err) != "" {
			// The commit is made again, and the samples with it.
			_ = samples.wait(ctx, t)
			t.ahead = nil
		}
		return err
	}
	t.committed(ctx, it)
	back := t.RollTo != nil
	if err := samples.wait(ctx, t); err != nil || samples == nil || back {
		return err
	}
	// The next iteration runs: before a pause the environment's answer completes its samples, and it
	// is committed before the run goes back.
	if t.Paused || t.RollTo != nil {
		return t.iterate(ctx, s)
	}
	return nil
}

// doWaited is do for a commit: a cancelled run waits for it, for a while, so that what it leaves is
// known.
func (t *train) doWaited(ctx workflow.Context, s *session, it *iteration.Iteration, c iteration.Call) error {
	apart, stop := workflow.NewDisconnectedContext(ctx)
	ended := false
	defer func() { ended = true }()
	workflow.Go(apart, func(own workflow.Context) {
		_ = workflow.Await(own, func() bool { return ended || ctx.Err() != nil })
		if !ended {
			_, _ = workflow.AwaitWithTimeout(own, commitWait, func() bool { return ended })
			stop()
		}
	})
	return t.do(apart, s, it, c)
}

// ahead are the first samples of an iteration, which run beside the commit of the one before.
type ahead struct {
	phase string
	ended bool
	err   error
}

// sampleAhead begins the next iteration, if it can run beside the commit; nil if not.
func (t *train) sampleAhead(ctx workflow.Context, s *session, it *iteration.Iteration) *ahead {
	if t.Paused || t.Adopt != nil || t.RollTo != nil || it.Number+1 >= t.end() || t.dueToContinueAfter(ctx, 1) {
		return nil
	}
	settings := t.plan.SettingsAt(t.Settings, it.Number+1)
	next := it.Ahead(settings)
	if next == nil {
		return nil
	}
	calls, err := next.Ready()
	if err != nil {
		return nil
	}
	first := calls[0]
	t.Settings, t.ahead = settings, next.State
	a := &ahead{phase: first.Phase}
	workflow.Go(ctx, func(ctx workflow.Context) {
		a.err = t.do(ctx, s, next, first)
		a.ended = true
	})
	return a
}

// wait returns when the samples have ended, with their error.
func (a *ahead) wait(ctx workflow.Context, t *train) error {
	if a == nil {
		return nil
	}
	if !a.ended {
		t.show(ctx, a.phase)
	}
	if err := workflow.Await(ctx, func() bool { return a.ended }); err != nil {
		return err
	}
	return a.err
}
