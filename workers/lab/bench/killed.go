package bench

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/lab/crew"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workers/watch"
	"github.com/reprise-rl/reprise/workflows"
)

// Killed is a durable run whose worker was killed, beside the same training without a kill.
type Killed struct {
	Recovery
	// State and Uninterrupted are the state fingerprints at the ends: equal, or something is
	// wrong.
	State, Uninterrupted string
	// Activities are the seconds of the durable run's activities that ended, in their order, by their
	// names.
	Activities map[string][]float64
}

// MeasureKilled runs a spec on a dev stack of its own with two workers, kills the one at work in
// the update of iteration at, from 0, by SIGKILL, and trains the same without a stack in this
// process.
func MeasureKilled(ctx context.Context, worker workers.Options, text []byte, at int, progress io.Writer) (Killed, error) {
	var out Killed
	const run = "killed"
	if err := stack.WithServers(ctx, dev.Options{Ephemeral: true, Stdout: progress}, func(on stack.Servers) (err error) {
		processes := &crew.Crew{Dir: on.Dir(), Worker: worker}
		defer processes.End()
		// The first worker has the run's session. It waits in the update until it is killed, so that
		// an update of a tiny policy is not over before it is seen.
		processes.Fault = faults.Fault{Kind: fmt.Sprintf("Update#%d", at), Phase: "stall", After: patience, Nth: 1}.String()
		if err := processes.Start(ctx); err != nil {
			return err
		}
		if _, err := stack.StartTrain(ctx, on.Client, run, text); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := watch.Until(waiting, on.Client, run, 20*time.Millisecond,
			func(s workflows.Status) bool { return s.Iteration >= at }); err != nil {
			return fmt.Errorf("wait for iteration %d of run %s: %w", at, run, err)
		}
		processes.Fault = ""
		if err := processes.Start(ctx); err != nil {
			return err
		}
		if out.Recovery, err = MeasureRecovery(ctx, on.Client, run, at, "Update", processes.Kill); err != nil {
			return err
		}
		var result workflows.TrainResult
		if err := on.Client.GetWorkflow(ctx, run, "").Get(ctx, &result); err != nil {
			return fmt.Errorf("run %s after the kill: %w", run, err)
		}
		out.State, out.Activities = result.State, map[string][]float64{}
		events, err := readHistory(ctx, on.Client, run)
		for _, a := range takenIn(events) {
			out.Activities[a.name] = append(out.Activities[a.name], a.done.Sub(a.started).Seconds())
		}
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
