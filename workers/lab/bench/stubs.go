package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/workers/lab/medians"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// Stubs is a sweep of many trials that only wait and report: what the sweep itself costs.
type Stubs struct {
	Trials   int `json:"trials"`
	Parallel int `json:"parallel"`
	// Seconds is from the sweep's start to its end.
	Seconds float64 `json:"seconds"`
	// LongestTask is the longest workflow task in seconds, from when a worker took it until
	// the server had its answer.
	LongestTask float64 `json:"longest_task_seconds"`
	// MedianTask is the median: on a busy machine the longest says little of the sweep.
	MedianTask float64 `json:"median_task_seconds"`
	// Histories is how many the sweep has, Events and Bytes their length and size together.
	Histories int   `json:"histories"`
	Events    int64 `json:"history_events"`
	Bytes     int64 `json:"history_bytes"`
}

const (
	// stubQueue has the sweep and its stub trials; its activities go to the host's queue.
	stubQueue = "bench-stubs"
	stubLasts = time.Second
	stubSweep = "stubs"
	stubSeeds = 10
)

// MeasureStubs runs a sweep of so many trials, as many at once as a sweep may, whose
// workflow is a stub that waits for a second and sends two reports. The caller runs a host
// worker.
func MeasureStubs(ctx context.Context, c client.Client, trials int) (Stubs, error) {
	document, err := stubDocument(trials)
	if err != nil {
		return Stubs{}, err
	}
	w := worker.New(c, stubQueue, worker.Options{})
	w.RegisterWorkflowWithOptions((&workflows.Workflows{}).Sweep, workflow.RegisterOptions{Name: "Sweep"})
	w.RegisterWorkflowWithOptions(stubTrain, workflow.RegisterOptions{Name: "Train"})
	if err := w.Start(); err != nil {
		return Stubs{}, fmt.Errorf("start the worker of stubs: %w", err)
	}
	defer w.Stop()
	begin := time.Now()
	started, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: stubSweep, TaskQueue: stubQueue}, "Sweep", document)
	if err != nil {
		return Stubs{}, fmt.Errorf("start %s: %w", stubSweep, err)
	}
	first := started.GetRunID()
	var result workflows.SweepResult
	if err := started.Get(ctx, &result); err != nil {
		return Stubs{}, fmt.Errorf("%s: %w", stubSweep, err)
	}
	out := Stubs{Trials: result.Counts.Trials, Parallel: sweep.MaxParallel, Seconds: time.Since(begin).Seconds()}
	if result.Counts.Done != out.Trials {
		return Stubs{}, fmt.Errorf("%s: %s, and all should be done", stubSweep, result.Counts)
	}
	err = out.read(ctx, c, stubSweep, first)
	return out, err
}

// stubDocument is a sweep of so many trials, rounded up to whole settings.
func stubDocument(trials int) (json.RawMessage, error) {
	base, err := presets.With(sweepPreset, map[string]any{"iterations": sweepIterations})
	if err != nil {
		return nil, err
	}
	var values []float64
	for i := range (trials + stubSeeds - 1) / stubSeeds {
		values = append(values, 0.5+float64(i)/1000)
	}
	b, err := json.Marshal(map[string]any{
		"base": json.RawMessage(base), "grid": map[string]any{"rollout.temperature": values}, "seeds": stubSeeds,
		"parallel": sweep.MaxParallel, "metrics": []string{"success/mean"},
	})
	if err != nil {
		return nil, fmt.Errorf("encode a sweep of stubs: %w", err)
	}
	return b, nil
}

// stubTrain is a trial that reports an iteration, waits, and reports its end.
func stubTrain(ctx workflow.Context, _ json.RawMessage, _ *workflows.Carry) (*workflows.TrainResult, error) {
	id, label, _ := strings.Cut(workflow.GetInfo(ctx).WorkflowExecution.ID, "/")
	report := func(r workflows.TrialReport) {
		r.Trial = label
		// A sweep that has ended needs no report.
		_ = workflow.SignalExternalWorkflow(ctx, id, "", workflows.TrialSignal, r).Get(ctx, nil)
	}
	report(workflows.TrialReport{Begun: true, Committed: []workflows.TrialIteration{{Version: 1}}})
	if err := workflow.Sleep(ctx, stubLasts); err != nil {
		return nil, err
	}
	report(workflows.TrialReport{Committed: []workflows.TrialIteration{{Version: 2}}, Ended: &workflows.TrialEnd{State: sweep.Done}})
	return &workflows.TrainResult{Iterations: 2}, nil
}

// read reads the histories of a workflow from its first run on.
func (s *Stubs) read(ctx context.Context, c client.Client, id, run string) error {
	var tasks []float64
	for run != "" {
		s.Histories++
		var taken time.Time
		next := ""
		events := c.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				return fmt.Errorf("read the history of %s: %w", id, err)
			}
			s.Events++
			s.Bytes += int64(proto.Size(e))
			switch e.EventType {
			case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
				taken = e.EventTime.AsTime()
			case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
				tasks = append(tasks, e.EventTime.AsTime().Sub(taken).Seconds())
			case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
				next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
			}
		}
		run = next
	}
	s.LongestTask, s.MedianTask = slices.Max(tasks), medians.Of(tasks)
	return nil
}
