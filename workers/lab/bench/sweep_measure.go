package bench

import (
	"context"
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// warmTrials is the number of trials of the sweep that warms up.
const warmTrials = 2

// MeasureSweep runs a sweep over seeds of a spec, one trial at a time, and the same specs
// as plain runs one after the other, rounds times each in alternating order. A short sweep
// before that makes the starter and warms up the worker, which the caller runs and which
// has one device. say receives progress.
func MeasureSweep(ctx context.Context, c client.Client, text []byte, trials, rounds int, say func(string)) (Sweep, error) {
	warm, err := newSweepBench(c, text, warmTrials)
	if err != nil {
		return Sweep{}, err
	}
	if _, err := warm.turn(ctx, "warm", false); err != nil {
		return Sweep{}, fmt.Errorf("warm up: %w", err)
	}
	b, err := newSweepBench(c, text, trials)
	if err != nil {
		return Sweep{}, err
	}
	var turns []SweepTurn
	var inSweep, alone []float64
	var last sweepTimes
	for round := range rounds {
		if last, err = b.turn(ctx, fmt.Sprintf("turn-%d", round), round%2 == 1); err != nil {
			return Sweep{}, err
		}
		t := last.turn()
		turns, inSweep, alone = append(turns, t), append(inSweep, own(last.trials)...), append(alone, own(last.alone)...)
		say(fmt.Sprintf("turn %d of %d: the sweep %.2f s, its trials %.2f s, by hand %.2f s", round+1, rounds, t.Wall, t.Own, t.Alone))
	}
	out := sweepOf(trials, b.trials[0].Iterations, turns, inSweep, alone)
	out.Events, out.Bytes = last.events, last.bytes
	return out, nil
}

// sweepBench is a sweep's document with its trials as runs to start by hand.
type sweepBench struct {
	client   client.Client
	document json.RawMessage
	trials   []sweep.Trial
}

func newSweepBench(c client.Client, text []byte, trials int) (sweepBench, error) {
	document, err := json.Marshal(map[string]any{"base": json.RawMessage(text), "seeds": trials, "parallel": 1})
	if err != nil {
		return sweepBench{}, fmt.Errorf("encode a sweep: %w", err)
	}
	_, expanded, err := sweep.Decode(document, sweeps.KnownSweep())
	return sweepBench{client: c, document: document, trials: expanded}, err
}

// turn runs the sweep and the runs by hand, in the order that aloneFirst gives. It fails
// if they end with different bits.
func (b sweepBench) turn(ctx context.Context, name string, aloneFirst bool) (out sweepTimes, err error) {
	var inSweep, alone []string
	steps := []func() error{
		func() (err error) { inSweep, err = b.sweep(ctx, name, &out); return err },
		func() (err error) { alone, err = b.alone(ctx, name, &out); return err },
	}
	if aloneFirst {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return out, err
		}
	}
	for i, state := range inSweep {
		if state != alone[i] {
			return out, fmt.Errorf("trial %s: state %s, by hand %s: %w", b.trials[i].Label, state, alone[i], ErrBitsDiffer)
		}
	}
	return out, nil
}

// sweep runs the sweep and returns the final states of its trials.
func (b sweepBench) sweep(ctx context.Context, id string, out *sweepTimes) (states []string, err error) {
	out.processor, err = during(func() error { return b.run(ctx, id, "Sweep", b.document) })
	if err != nil {
		return nil, err
	}
	if out.sweep, out.events, out.bytes, err = describe(ctx, b.client, id); err != nil {
		return nil, err
	}
	for _, t := range b.trials {
		state, when, err := b.ended(ctx, sweep.ID(id, t.Label))
		if err != nil {
			return nil, err
		}
		states, out.trials = append(states, state), append(out.trials, when)
	}
	return states, nil
}

// alone runs the trials' specs by hand and returns their final states.
func (b sweepBench) alone(ctx context.Context, name string, out *sweepTimes) (states []string, err error) {
	id := func(t sweep.Trial) string { return name + "-alone/" + t.Label }
	out.aloneProcessor, err = during(func() error {
		for _, t := range b.trials {
			if err := b.run(ctx, id(t), "Train", t.Spec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Queried after all runs have ended, so that nothing delays the next start.
	for _, t := range b.trials {
		state, when, err := b.ended(ctx, id(t))
		if err != nil {
			return nil, err
		}
		states, out.alone = append(states, state), append(out.alone, when)
	}
	return states, nil
}

// during is the processor time of worker and servers while f ran, zero if unknown.
func during(f func() error) (Processor, error) {
	before, unknown := processors()
	if err := f(); err != nil {
		return Processor{}, err
	}
	after, err := processors()
	if unknown != nil || err != nil {
		return Processor{}, nil
	}
	return after.minus(before), nil
}

// run starts a workflow and waits for its end.
func (b sweepBench) run(ctx context.Context, id, workflow string, input json.RawMessage) error {
	w, err := b.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: activities.WorkflowQueue}, workflow, input)
	if err != nil {
		return fmt.Errorf("start %s: %w", id, err)
	}
	if err := w.Get(ctx, nil); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

// ended is a run's final state and span.
func (b sweepBench) ended(ctx context.Context, id string) (state string, when span, err error) {
	var r workflows.TrainResult
	if err := b.client.GetWorkflow(ctx, id, "").Get(ctx, &r); err != nil {
		return "", when, fmt.Errorf("run %s: %w", id, err)
	}
	when, _, _, err = describe(ctx, b.client, id)
	return r.State, when, err
}

// describe is the span of a workflow that has ended and its history's length and size.
func describe(ctx context.Context, c client.Client, id string) (when span, events, bytes int64, err error) {
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return when, 0, 0, fmt.Errorf("describe %s: %w", id, err)
	}
	i := d.WorkflowExecutionInfo
	if i.CloseTime == nil || i.FirstRunId != i.Execution.RunId {
		return when, 0, 0, fmt.Errorf("%s is open, or continued as new: its times are not those of all of it", id)
	}
	return span{begin: i.StartTime.AsTime(), end: i.CloseTime.AsTime()}, i.HistoryLength, i.HistorySizeBytes, nil
}
