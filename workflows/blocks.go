package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

const (
	// helperWait is how long a block waits for a worker that is free. One that is polls already.
	helperWait = 500 * time.Millisecond
	// helperTries is how many blocks in a turn may fail on other workers before they are given no
	// more of it.
	helperTries = 3
)

// helpers are how many other workers a rollout may still have. Each of them is one that was not
// free when a block was offered; the next rollout asks again.
type helpers struct {
	of    *iteration.State
	round int
	left  int
}

// blocks are those of a turn that no worker has yet, in their order.
type blocks struct {
	left    []iteration.Call
	running int // on other workers
	failed  int // on other workers
	// closed: nobody takes one any more. done, where not nil, is called when another worker has done one.
	closed bool
	done   func()
}

// take gives the next block; false where none is left.
func (b *blocks) take() (c iteration.Call, ok bool) {
	if len(b.left) == 0 || b.closed {
		return c, false
	}
	c, b.left = b.left[0], b.left[1:]
	return c, true
}

// deal runs the blocks of a turn, of which calls are those that are left. The session takes one
// after the other, and so does each worker that is free. A block that another worker did not take,
// or has lost, is given back, and the next that is free takes it: in the end the session.
func (t *train) deal(ctx workflow.Context, s *session, it *iteration.Iteration, calls []iteration.Call) error {
	b := &blocks{}
	for _, c := range calls {
		if c.Name == steps.Block.Name {
			b.left = append(b.left, c)
		}
	}
	round := it.Round
	if calls[0].Beside {
		round = nextRound
	}
	t.budget(it, round)
	t.offer(ctx, it, b, len(b.left)-1) // the session takes one itself
	var err error
	for err == nil && !t.Paused && !t.adopts() {
		if c, ok := b.take(); ok {
			err = t.do(ctx, s, it, c)
			continue
		}
		if b.running == 0 {
			return nil
		}
		err = workflow.Await(ctx, func() bool { return len(b.left) > 0 || b.running == 0 || t.Paused || t.adopts() })
	}
	b.left = nil
	// What other workers have begun counts, whatever becomes of the session.
	if waited := workflow.Await(ctx, func() bool { return b.running == 0 }); err == nil {
		err = waited
	}
	return err
}

// budget begins a rollout's helpers, unless they are those of this one.
func (t *train) budget(it *iteration.Iteration, round int) {
	if t.helpers.of != it.State || t.helpers.round != round {
		t.helpers = helpers{it.State, round, t.plan.Workers - 1}
	}
}

// offer offers blocks to other workers, at most so many at once.
func (t *train) offer(ctx workflow.Context, it *iteration.Iteration, b *blocks, most int) {
	for range min(t.helpers.left, most) {
		b.running++
		workflow.Go(ctx, func(ctx workflow.Context) {
			t.help(ctx, it, b)
			b.running--
		})
	}
}

// help has another worker do blocks until none is left, or none is free.
func (t *train) help(ctx workflow.Context, it *iteration.Iteration, b *blocks) {
	for b.failed < helperTries {
		c, ok := b.take()
		if !ok {
			return
		}
		o := options(c.Helping(), c.Summary+" · another worker", t.plan.ActivitySeconds, t.SessionHeartbeat)
		o.TaskQueue, o.ScheduleToStartTimeout = activities.HelperQueue(t.Fingerprint), helperWait
		result := c.NewResult()
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), c.Name, c.Input).Get(ctx, result)
		if err == nil {
			it.Apply(c, result)
			t.helped(result)
			if b.done != nil {
				b.done()
			}
			continue
		}
		b.left = append([]iteration.Call{c}, b.left...)
		var late *temporal.TimeoutError
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &late) && late.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
			t.helpers.left = max(0, t.helpers.left-1)
			return
		}
		b.failed++
		workflow.GetLogger(ctx).Warn("another worker did not do a block", "block", c.Key) // the history says why
	}
}

// helped counts what a block cost on another worker.
func (t *train) helped(result any) {
	took, _ := activities.TelemetryOf(result)
	c := activities.Cost{
		Kind: t.deviceKind(), Held: took.Seconds + took.WaitSeconds, Useful: took.Seconds, Waiting: took.WaitSeconds,
		Money: (took.Seconds + took.WaitSeconds) / time.Hour.Seconds() * took.PriceHour,
	}
	if took.PriceHour == 0 {
		c.Unpriced = c.Held
	}
	t.Costs.add(c)
}
