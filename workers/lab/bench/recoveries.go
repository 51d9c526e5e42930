package bench

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/workers/lab/crew"
	"github.com/reprise-rl/reprise/workers/lab/heartbeats"
	"github.com/reprise-rl/reprise/workers/stack"
)

// recoveries measures recoveries from kills of real worker processes on a dev stack.
func (s *benchmark) recoveries(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "reprise-recovery-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var text []byte
	if s.KillLarge {
		text, err = s.largeSpec(ctx, dir, s.KillAt+2, s.KillAt+2)
	} else {
		text, _, err = specOf(s.Preset, s.KillAt+3, nil)
	}
	if err != nil {
		return err
	}
	return stack.WithServers(ctx, s.servers, func(on stack.Servers) error {
		processes := &crew.Crew{Dir: on.Dir(), Worker: s.Worker}
		defer processes.End()
		return s.kill(ctx, on.Client, processes, text)
	})
}

// heartbeats measures the time-outs of a lease's heartbeat on a dev stack.
func (s *benchmark) heartbeats(ctx context.Context) error {
	o := s.Heartbeats
	o.Repeats = s.Kills
	return stack.WithServers(ctx, s.servers, func(on stack.Servers) error {
		got, err := heartbeats.Measure(ctx, on, s.Worker, o, s.say)
		s.r.Heartbeats = &got
		return err
	})
}

func (s *benchmark) kill(ctx context.Context, c client.Client, processes *crew.Crew, text []byte) error {
	for n := range s.Kills {
		for len(processes.PIDs()) < 2 {
			if err := processes.Start(ctx); err != nil {
				return err
			}
		}
		run := fmt.Sprintf("bench-kill-%d", n)
		s.say(fmt.Sprintf("killing worker %d of %d, in the update of iteration %d of %s", n+1, s.Kills, s.KillAt, run))
		if _, err := stack.StartTrain(ctx, c, run, text); err != nil {
			return err
		}
		got, err := MeasureRecovery(ctx, c, run, s.KillAt, "Update", func(pid int) error {
			peak, err := PeakMemory(pid)
			if err != nil {
				return err
			}
			s.r.WorkerPeak = max(s.r.WorkerPeak, peak)
			if s.KillWorker {
				return processes.Kill(pid)
			}
			return syscall.Kill(pid, syscall.SIGKILL)
		})
		if err != nil {
			return fmt.Errorf("recovery %d: %w", n+1, err)
		}
		s.r.Recoveries = append(s.r.Recoveries, got)
		if err := c.GetWorkflow(ctx, run, "").Get(ctx, nil); err != nil {
			return fmt.Errorf("run %s after the kill: %w", run, err)
		}
	}
	for _, worker := range processes.PIDs() {
		pid, err := crew.Computes(worker)
		if err != nil {
			return err
		}
		if peak, err := PeakMemory(pid); err == nil {
			s.r.WorkerPeak = max(s.r.WorkerPeak, peak)
		}
	}
	return nil
}
