package bench

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/lab/crew"
	"github.com/reprise-rl/reprise/workers/lab/medians"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Helped compares rollouts that two workers sample with the same rollouts by one. Each worker has
// one core.
type Helped struct {
	Rows  int `json:"rows"`
	Turns int `json:"turns"`
	// Rollouts is the number of rollouts that each median is over.
	Rollouts int `json:"rollouts"`
	// One and Two are the median seconds of a rollout, from its first sample to its selection.
	One float64 `json:"one_seconds"`
	Two float64 `json:"two_seconds"`
	// Ratio is Two over One, ProcessorRatio the same of the processor time of both workers, which
	// includes the updates.
	Ratio          float64 `json:"ratio"`
	ProcessorRatio float64 `json:"processor_ratio"`
	// Blocks is how many blocks were sampled with two workers, Elsewhere how many of them on the
	// other worker.
	Blocks    int `json:"blocks"`
	Elsewhere int `json:"blocks_elsewhere"`
	// Iteration and Lagging are the median seconds of an iteration by two workers, from one commit to the
	// next: without a lag, and with one, where the next rollout is made beside the update. LagRatio is
	// Lagging over Iteration.
	Iteration float64 `json:"iteration_seconds"`
	Lagging   float64 `json:"lagging_iteration_seconds"`
	LagRatio  float64 `json:"lag_ratio"`
}

// The goals of a second worker: its share of the time, and of the processor time.
const (
	helpedGoal          = 0.7
	helpedProcessorGoal = 1.1
)

// The rollout that two workers share: five turns of a small policy on lakes, in four blocks.
const (
	helpedPreset = "frozenlake-learn"
	helpedTurns  = 5
	helpedGroups = 16
	helpedBlock  = 64 // rows of a block
)

// helpedSide is a way to sample: by one worker or two, with a lag or without.
type helpedSide struct {
	workers int
	lag     bool
}

var helpedSides = []helpedSide{{1, false}, {2, false}, {2, true}}

func (s helpedSide) String() string {
	if s.lag {
		return fmt.Sprintf("workers %d, lag", s.workers)
	}
	return fmt.Sprintf("workers %d", s.workers)
}

// helpedSpec is the spec of a side.
func helpedSpec(iterations int, side helpedSide) ([]byte, error) {
	rollout := map[string]any{"groups": helpedGroups, "group_size": 16, "turns": helpedTurns, "pass_rows": helpedBlock / 4, "block_rows": helpedBlock}
	if side.workers > 1 {
		rollout["workers"] = side.workers
	}
	update := map[string]any{}
	if side.lag {
		rollout["lag"], update["mismatch"] = 1, map[string]any{"regime": spec.Decoupled}
	}
	return presets.With(helpedPreset, map[string]any{
		"update":     update,
		"iterations": iterations, "snapshot": map[string]any{"every": iterations}, "evaluation": map[string]any{"every": 0},
		"selection": map[string]any{"keep": 0.125}, "rollout": rollout,
		"policy": map[string]any{
			"warm_start": map[string]any{"steps": 20},
		},
	})
}

// helpers measures, on a dev stack with one host worker in this process and two device workers of
// one core each, what the second one saves a rollout.
func (s *benchmark) helpers(ctx context.Context) error {
	return stack.WithServers(ctx, s.servers, func(on stack.Servers) error {
		processes := &crew.Crew{Dir: on.Dir(), Worker: s.Worker, Roles: []workers.Role{workers.RoleDevice}, Pinned: true}
		defer processes.End()
		for range 2 {
			if err := processes.Start(ctx); err != nil {
				return err
			}
		}
		host := workers.Options{
			Client: on.Client, Namespace: on.Namespace(), Codec: on.Codec, Store: on.Bucket, Logger: zap.NewNop(),
			Roles: []workers.Role{workers.RoleWorkflow, workers.RoleHost}, SessionHeartbeat: s.Worker.SessionHeartbeat,
			HostSlots: s.Worker.HostSlots,
		}
		return beside(ctx, func(ctx context.Context, ready func()) error {
			host.Ready = func(activities.DeviceInfo) { ready() }
			return workers.Run(ctx, host)
		}, func(ctx context.Context) error {
			got, err := measureHelped(ctx, Durable{Client: on.Client, Store: on.Bucket}, processes, s.Rounds, s.say)
			s.r.Helped = &got
			return err
		})
	})
}

// helpedIterations are those of a run, of which the first is not counted, nor the last one's end: with a lag it
// makes no rollout.
const helpedIterations = 4

func measureHelped(ctx context.Context, durable Durable, processes *crew.Crew, rounds int, say func(string)) (Helped, error) {
	out := Helped{Rows: helpedGroups * 16, Turns: helpedTurns}
	seconds, processor, iterations := make([][]float64, len(helpedSides)), make([][]float64, len(helpedSides)), make([][]float64,
		len(helpedSides))
	states := map[bool]string{} // with a lag and without
	// The round before the first warms both workers up.
	for round := range rounds + 1 {
		for side, of := range helpedSides {
			text, err := helpedSpec(helpedIterations, of)
			if err != nil {
				return out, err
			}
			before, err := processes.Processor()
			if err != nil {
				return out, err
			}
			id := fmt.Sprintf("bench-helped-%d-%d", round, side+1)
			got, err := durable.Train(ctx, id, text)
			if err != nil {
				return out, err
			}
			after, err := processes.Processor()
			if err != nil {
				return out, err
			}
			if before, ok := states[of.lag]; ok && got.State != before {
				return out, fmt.Errorf("run %s: state %s, before it was %s: %w", id, got.State, before, ErrBitsDiffer)
			}
			states[of.lag] = got.State
			events, err := readHistory(ctx, durable.Client, id)
			if err != nil {
				return out, err
			}
			if round == 0 {
				continue
			}
			each := commits(events)
			each = each[:len(each)-1]
			iterations[side] = append(iterations[side], each...)
			said := fmt.Sprintf("round %d of %d, %s: median %.2f s an iteration", round, rounds, of, medians.Of(each))
			if !of.lag { // its rollouts have other work beside them
				took, blocks, elsewhere := rollouts(events)
				seconds[side] = append(seconds[side], took[1:]...)
				processor[side] = append(processor[side], after-before)
				out.Blocks, out.Elsewhere = out.Blocks+blocks, out.Elsewhere+elsewhere
				said += fmt.Sprintf(", %.2f s a rollout", medians.Of(took[1:]))
			}
			say(said)
		}
	}
	out.Rollouts = len(seconds[0])
	out.One, out.Two = medians.Of(seconds[0]), medians.Of(seconds[1])
	out.Ratio, out.ProcessorRatio = out.Two/out.One, medians.Of(processor[1])/medians.Of(processor[0])
	out.Iteration, out.Lagging = medians.Of(iterations[1]), medians.Of(iterations[2])
	out.LagRatio = out.Lagging / out.Iteration
	return out, nil
}

// commits are the seconds between the commits of a history, measured when each has ended.
func commits(events []*history.HistoryEvent) []float64 {
	var seconds []float64
	var last time.Time
	commit := map[int64]bool{} // by scheduling
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == steps.Commit.Name {
			commit[e.GetEventId()] = true
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && commit[a.GetScheduledEventId()] {
			at := e.GetEventTime().AsTime()
			if !last.IsZero() {
				seconds = append(seconds, at.Sub(last).Seconds())
			}
			last = at
		}
	}
	return seconds
}

// rollouts are the seconds of a history's rollouts, from the first activity that samples, or that
// publishes what samples, to the selection. It counts the blocks, and those on other workers, whose
// activities have one try.
func rollouts(events []*history.HistoryEvent) (seconds []float64, blocks, elsewhere int) {
	var begun time.Time
	helping := map[int64]bool{} // by scheduling, the blocks: whether another worker has it
	for _, e := range events {
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
			if helps, ok := helping[a.GetScheduledEventId()]; ok {
				if blocks++; helps {
					elsewhere++
				}
			}
		}
		a := e.GetActivityTaskScheduledEventAttributes()
		if e.GetEventType() != enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			continue
		}
		switch a.GetActivityType().GetName() {
		case steps.Publish.Name, steps.Generate.Name:
			if begun.IsZero() {
				begun = e.GetEventTime().AsTime()
			}
		case steps.Block.Name:
			helping[e.GetEventId()] = a.GetRetryPolicy().GetMaximumAttempts() == 1
		case steps.Select.Name:
			seconds = append(seconds, e.GetEventTime().AsTime().Sub(begun).Seconds())
			begun = time.Time{}
		}
	}
	return seconds, blocks, elsewhere
}
