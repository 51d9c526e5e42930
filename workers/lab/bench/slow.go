package bench

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/lab/crew"
	"github.com/reprise-rl/reprise/workers/lab/medians"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
	"github.com/reprise-rl/reprise/workflows"
)

// SlowBucket compares a run's iterations with those of the same run while another run,
// whose reads of the bucket are slow, has its host activities on the same worker.
type SlowBucket struct {
	// Delay is how many seconds each read of the other run's artifacts takes longer.
	Delay float64 `json:"delay_seconds"`
	// Iterations is the number of iterations that each median is over.
	Iterations int `json:"iterations"`
	// Alone and Beside are the median seconds of an iteration: without the other run, and
	// beside it.
	Alone  float64 `json:"alone_seconds"`
	Beside float64 `json:"beside_seconds"`
	// Ratio is Beside over Alone.
	Ratio float64 `json:"ratio"`
	// Reads is how many reads of the other run were delayed meanwhile.
	Reads int64 `json:"delayed_reads"`
}

const (
	// slowRun begins the ids of the runs whose reads are slow; they never end by themselves.
	slowRun        = "bench-slow-bucket"
	slowIterations = 100_000
	slowDelay      = 2 * time.Second
	// SlowGoal is the largest ratio that a slow bucket of another run may cause.
	SlowGoal = 1.1
)

// slowStore delays the reads of one run's artifacts.
type slowStore struct {
	store.Store
	prefix string // of the slow keys
	delay  time.Duration
	reads  atomic.Int64
}

// Open implements [store.Store].
func (s *slowStore) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	if strings.HasPrefix(key, s.prefix) {
		s.reads.Add(1)
		if err := watch.Sleep(ctx, s.delay); err != nil {
			return nil, store.Object{}, fmt.Errorf("open %s: %w", key, err)
		}
	}
	return s.Store.Open(ctx, key, offset)
}

// slowBuckets measures, on a dev stack with one host worker in this process and two device
// workers, what a run's slow bucket costs another run.
func (s *benchmark) slowBuckets(ctx context.Context) error {
	// A small policy: its own computing must not be what slows the other run down.
	slow, err := presets.With(sweepPreset, map[string]any{"iterations": slowIterations, "evaluation": map[string]any{"every": 0}})
	if err != nil {
		return err
	}
	return stack.WithServers(ctx, s.servers, func(on stack.Servers) error {
		processes := &crew.Crew{Dir: on.Dir(), Worker: s.Worker, Roles: []workers.Role{workers.RoleDevice}}
		defer processes.End()
		for range 2 {
			if err := processes.Start(ctx); err != nil {
				return err
			}
		}
		bucket := &slowStore{Store: on.Bucket, prefix: store.RunDir(slowRun), delay: slowDelay}
		host := workers.Options{
			Client: on.Client, Namespace: on.Namespace(), Codec: on.Codec, Store: bucket, Logger: zap.NewNop(),
			Roles: []workers.Role{workers.RoleWorkflow, workers.RoleHost}, SessionHeartbeat: s.Worker.SessionHeartbeat,
			HostSlots: s.Worker.HostSlots,
		}
		return beside(ctx, func(ctx context.Context, ready func()) error {
			host.Ready = func(activities.DeviceInfo) { ready() }
			return workers.Run(ctx, host)
		}, func(ctx context.Context) error {
			got, err := MeasureSlowBucket(ctx, Durable{Client: on.Client, Store: on.Bucket}, bucket, s.text, slow, s.Rounds, s.say)
			s.r.SlowBucket = &got
			return err
		})
	})
}

// beside runs a worker until f has returned. The context of f ends when the worker does.
func beside(ctx context.Context, worker func(ctx context.Context, ready func()) error, f func(context.Context) error) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		err := worker(running, func() { close(ready) })
		stop(err)
		ended <- err
	}()
	select {
	case <-ready:
	case err := <-ended:
		return err
	}
	err := f(running)
	stop(nil)
	if workerErr := <-ended; err == nil {
		err = workerErr
	}
	return err
}

// MeasureSlowBucket trains a spec in turns alone and beside the slow run, rounds times
// each. The caller runs a host worker that reads through bucket, and two device workers.
func MeasureSlowBucket(ctx context.Context, durable Durable, bucket *slowStore, text, slow []byte, rounds int,
	say func(string)) (SlowBucket, error) {
	out := SlowBucket{Delay: bucket.delay.Seconds()}
	var seconds [2][]float64 // alone, beside
	// The round before the first warms up both workers.
	for round := range rounds + 1 {
		for side, name := range []string{"alone", "beside the slow run"} {
			before := bucket.reads.Load()
			end := func() error { return nil }
			if side == 1 {
				var err error
				if end, err = beginSlow(ctx, durable, fmt.Sprintf("%s-%d", slowRun, round), slow); err != nil {
					return out, err
				}
			}
			got, err := durable.Train(ctx, fmt.Sprintf("bench-bucket-%d-%d", round, side), text)
			if endErr := end(); err == nil {
				err = endErr
			}
			if err != nil {
				return out, fmt.Errorf("%s: %w", name, err)
			}
			if round == 0 {
				continue
			}
			out.Reads += bucket.reads.Load() - before
			inner := got.Iterations[1 : len(got.Iterations)-1]
			own := make([]float64, len(inner))
			for k, i := range inner {
				own[k] = i.Seconds
			}
			seconds[side] = append(seconds[side], own...)
			say(fmt.Sprintf("round %d of %d, %-20s median %.3f s an iteration", round, rounds, name+":", medians.Of(own)))
		}
	}
	out.Iterations = len(seconds[0])
	out.Alone, out.Beside = medians.Of(seconds[0]), medians.Of(seconds[1])
	out.Ratio = out.Beside / out.Alone
	return out, nil
}

// beginSlow starts the slow run, and waits until it has committed once, so that it no longer
// compiles. The answer ends it.
func beginSlow(ctx context.Context, durable Durable, run string, text []byte) (end func() error, err error) {
	w, err := stack.StartTrain(ctx, durable.Client, run, text)
	if err != nil {
		return nil, err
	}
	end = func() error {
		if err := stopSlow(ctx, durable.Client, run); err != nil {
			return err
		}
		if err := w.Get(ctx, nil); err != nil {
			return fmt.Errorf("run %s: %w", run, err)
		}
		return nil
	}
	if err := watch.Until(ctx, durable.Client, run, 100*time.Millisecond,
		func(s workflows.Status) bool { return s.Iteration >= 1 }); err != nil {
		return nil, fmt.Errorf("wait for run %s: %w", run, err)
	}
	return end, nil
}

// stopSlow has a run stop after the iteration that it makes, so that nothing is cancelled and
// reported as an error.
func stopSlow(ctx context.Context, c client.Client, run string) error {
	s, err := watch.Status(ctx, c, run)
	if err != nil {
		return err
	}
	h, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run, UpdateName: "stop-after", Args: []any{workflows.StopAfter{Iteration: s.Iteration}},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("stop run %s: %w", run, err)
	}
	return nil
}
