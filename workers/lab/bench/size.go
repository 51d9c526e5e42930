package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/lab/crew"
	"github.com/reprise-rl/reprise/workers/policy"
	"github.com/reprise-rl/reprise/workers/stack"
)

// Size is what a policy of a hundred million parameters costs a worker.
type Size struct {
	Parameters int64 `json:"parameters"`
	// First is the first worker's restore, which compiles the programs and tests the device.
	First activities.Telemetry `json:"first"`
	// Base and Snapshot are the restores of workers that follow a killed one, from version 0
	// and from a snapshot.
	Base     activities.Telemetry `json:"base"`
	Snapshot activities.Telemetry `json:"snapshot"`
	// Peak is the most that a worker had resident, in bytes.
	Peak int64 `json:"peak_bytes"`
}

// sizeShape is a policy of 98 million parameters, of Qwen2.5's kind.
var sizeShape = model.Config{
	VocabSize: 32_768, HiddenSize: 640, IntermediateSize: 2560, Layers: 13, Heads: 10, KVHeads: 2, HeadDim: 64,
	MaxPositions: 32_768, RMSNormEps: 1e-6, RopeTheta: 1e6, TieEmbeddings: true, InitializerRange: 0.02,
}

// largeSpec writes a policy of that size into a folder, and gives the spec of a run that trains it for some iterations.
func (s *benchmark) largeSpec(ctx context.Context, dir string, iterations, snapshotEvery int) ([]byte, error) {
	weights := filepath.Join(dir, "model")
	s.say(fmt.Sprintf("writing a policy of %.0f million parameters", float64(sizeShape.Parameters())/1e6))
	if err := policy.RandomOf(ctx, weights, sizeShape, 1, nil); err != nil {
		return nil, err
	}
	return presets.With("size-0.5b", map[string]any{
		"policy":     map[string]any{"from": "folder:" + weights, "compute_dtype": "float32"},
		"iterations": iterations, "snapshot": map[string]any{"every": snapshotEvery}, "evaluation": map[string]any{"every": 0},
	})
}

// sizes trains a policy of that size for two iterations. It kills the worker in a generation of
// each, and starts another one.
func (s *benchmark) sizes(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "reprise-size-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text, err := s.largeSpec(ctx, dir, 2, 1)
	if err != nil {
		return err
	}
	return stack.WithServers(ctx, s.servers, func(on stack.Servers) error {
		processes := &crew.Crew{Dir: on.Dir(), Worker: s.Worker, Programs: filepath.Join(dir, "programs")}
		defer processes.End()
		return s.size(ctx, on, processes, text)
	})
}

func (s *benchmark) size(ctx context.Context, on stack.Servers, processes *crew.Crew, text []byte) error {
	const run = "bench-size"
	out := Size{Parameters: sizeShape.Parameters()}
	if err := processes.Start(ctx); err != nil {
		return err
	}
	if _, err := stack.StartTrain(ctx, on.Client, run, text); err != nil {
		return err
	}
	peak := func(pid int) error {
		bytes, err := PeakMemory(pid)
		out.Peak = max(out.Peak, bytes)
		return err
	}
	for iteration := range 2 {
		pid, err := victim(ctx, on.Client, run, iteration, "Generate")
		if err == nil {
			err = peak(pid)
		}
		if err == nil {
			err = processes.Kill(pid)
		}
		if err != nil {
			return fmt.Errorf("kill the worker in iteration %d: %w", iteration, err)
		}
		s.say(fmt.Sprintf("killed the worker in iteration %d", iteration))
		if err := processes.Start(ctx); err != nil {
			return err
		}
	}
	if err := on.Client.GetWorkflow(ctx, run, "").Get(ctx, nil); err != nil {
		return fmt.Errorf("run %s after the kills: %w", run, err)
	}
	for _, worker := range processes.PIDs() {
		pid, err := crew.Computes(worker)
		if err != nil {
			return err
		}
		if err := peak(pid); err != nil {
			return err
		}
	}
	events, err := readHistory(ctx, on.Client, run)
	if err != nil {
		return err
	}
	loads, err := loadsIn(events)
	if err != nil {
		return err
	}
	if len(loads) != 3 {
		return fmt.Errorf("%d workers have loaded the policy, not 3", len(loads))
	}
	out.First, out.Base, out.Snapshot = loads[0], loads[1], loads[2]
	s.r.Size = &out
	return nil
}

// loadsIn are the restores of a history that loaded a stored model.
func loadsIn(events []*historypb.HistoryEvent) (loads []activities.Telemetry, err error) {
	restores := map[int64]bool{}
	for _, e := range events {
		switch e.EventType {
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			restores[e.EventId] = e.GetActivityTaskScheduledEventAttributes().ActivityType.GetName() == "Restore"
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			completed := e.GetActivityTaskCompletedEventAttributes()
			if !restores[completed.ScheduledEventId] {
				continue
			}
			var result activities.RestoreResult
			if err := converter.GetDefaultDataConverter().FromPayloads(completed.Result, &result); err != nil {
				return nil, fmt.Errorf("result of Restore: %w", err)
			}
			if result.Telemetry.LoadSeconds > 0 {
				loads = append(loads, result.Telemetry)
			}
		}
	}
	return loads, nil
}
