package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

// beside is a rollout that other workers make for the next iteration while the session does what is left of this one.
type beside struct {
	running bool
	ended   bool // no more of it is given to other workers: the session does what is left
	helped  bool // another worker has done a block
	offered time.Time
	blocks  *blocks // of the running turn
}

// nextRound stands for the next iteration's rollout, as the rounds of this one's have numbers.
const nextRound = -1

// callsNow chooses what the session does next. Other workers and hosts do the calls that need no version in memory, while
// any of them are free and the session has other calls. If nobody else is at work when the update is due, the session
// does those calls before it: then the version is still in memory, and nothing that was published has to be read.
func (t *train) callsNow(ctx workflow.Context, s *session, it *iteration.Iteration, o *beside,
	calls []iteration.Call) ([]iteration.Call, error) {
	own, others := apart(calls)
	if len(others) == 0 {
		return own, nil
	}
	if !o.running && !o.ended {
		t.budget(it, nextRound)
		o.running = true
		workflow.Go(ctx, func(ctx workflow.Context) {
			t.rollOutBeside(ctx, s, it, o)
			o.running, o.ended = false, true
		})
	}
	if len(own) > 0 && own[0].Name == steps.Update.Name && it.Updating == nil {
		wait := max(0, o.offered.Add(2*helperWait).Sub(workflow.Now(ctx)))
		if _, err := workflow.AwaitWithTimeout(ctx, wait, func() bool { return !o.running || o.helped || t.Paused || t.adopts() }); err != nil {
			return nil, err
		}
		if !o.running {
			own = nil
		}
	}
	if len(own) > 0 {
		return own, nil
	}
	if err := o.end(ctx); err != nil {
		return nil, err
	}
	calls, err := it.Ready()
	if err != nil {
		return nil, err
	}
	if _, others = apart(calls); len(others) > 0 {
		return others, nil
	}
	return calls, nil // they have ended meanwhile
}

// apart are the calls that are the session's, and those that others may do.
func apart(calls []iteration.Call) (own, others []iteration.Call) {
	for _, c := range calls {
		if c.Beside {
			others = append(others, c)
		} else {
			own = append(own, c)
		}
	}
	return own, others
}

// rollOutBeside has other workers and hosts make the rollout, until it is done or nobody is free.
func (t *train) rollOutBeside(ctx workflow.Context, s *session, it *iteration.Iteration, o *beside) {
	for !o.ended && !t.Paused && !t.adopts() {
		calls, err := it.Ready()
		if err != nil {
			return
		}
		_, others := apart(calls)
		if len(others) == 0 {
			return
		}
		if c := others[0]; c.Name != steps.Block.Name {
			c.Phase = "" // the status shows what the session does
			if err := t.do(ctx, s, it, c); err != nil {
				return // the session tries it again, and tells what is wrong
			}
			continue
		}
		o.blocks, o.offered = &blocks{left: others, done: func() { o.helped = true }}, workflow.Now(ctx)
		t.offer(ctx, it, o.blocks, len(others))
		if err := workflow.Await(ctx, func() bool { return o.blocks.running == 0 }); err != nil || len(o.blocks.left) > 0 {
			return
		}
	}
}

// end gives others no more of the rollout, and waits for what they have begun.
func (o *beside) end(ctx workflow.Context) error {
	o.ended = true
	if o.blocks != nil {
		o.blocks.closed = true
	}
	return workflow.Await(ctx, func() bool { return !o.running })
}
