package bench

import (
	"context"
	"fmt"
	"io"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows"
)

// Killed is a durable run whose worker was killed, beside the same training without a kill.
type Killed struct {
	Recovery
	// State and Uninterrupted are the state fingerprints at the ends: equal, or something is
	// wrong.
	State, Uninterrupted string
	// Activities are the activities of the durable run, each name with the seconds of those that
	// ended, in their order.
	Activities map[string][]float64
}

// MeasureKilled runs a spec on a dev stack of its own with two workers, kills the one at work in
// the update of iteration at by SIGKILL, and trains the same without a stack in this process.
func MeasureKilled(ctx context.Context, worker workers.Options, text []byte, at int, progress io.Writer) (Killed, error) {
	var out Killed
	const run = "killed"
	if err := stack.WithServers(ctx, dev.Options{Ephemeral: true, Stdout: progress}, func(on stack.Servers) (err error) {
		crew := &workerCrew{dir: on.Dir(), worker: worker, running: map[int]*child{}}
		defer crew.end()
		for range 2 {
			if err := crew.start(ctx); err != nil {
				return err
			}
		}
		if out.Recovery, err = MeasureRecovery(ctx, on.Client, run, text, at, "Update", crew.kill); err != nil {
			return err
		}
		var result workflows.TrainResult
		if err := on.Client.GetWorkflow(ctx, run, "").Get(ctx, &result); err != nil {
			return fmt.Errorf("run %s after the kill: %w", run, err)
		}
		out.State = result.State
		out.Activities, err = activitySeconds(ctx, on.Client, run)
		return err
	}); err != nil {
		return out, err
	}
	opened, err := model.OpenDevice(worker.Device)
	if err != nil {
		return out, err
	}
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	if err != nil {
		return out, err
	}
	trained, err := train.New(engine, store.NewMemory()).Train(ctx, run, text)
	out.Uninterrupted = trained.State
	return out, err
}

// activitySeconds are the seconds from the beginning to the end of a run's activities that ended.
func activitySeconds(ctx context.Context, c client.Client, run string) (map[string][]float64, error) {
	events, err := readHistory(ctx, c, run)
	if err != nil {
		return nil, err
	}
	out := map[string][]float64{}
	names, began := map[int64]string{}, map[int64]time.Time{}
	for _, e := range events {
		at := e.GetEventTime().AsTime()
		switch e.GetEventType() {
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			names[e.GetEventId()] = e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
		case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			began[e.GetActivityTaskStartedEventAttributes().GetScheduledEventId()] = at
		case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			id := e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()
			out[names[id]] = append(out[names[id]], at.Sub(began[id]).Seconds())
		}
	}
	return out, nil
}
