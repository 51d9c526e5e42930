package host

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// EvaluationResult is the stored result of an evaluation. Nothing in it says who
// requested it, so the same policy on the same suite and kind of device gives the same
// bytes.
type EvaluationResult struct {
	// Format is evaluationFormat.
	Format int `json:"format"`
	// Suite is complete: if it is rolled out again, the instances are the same.
	Suite spec.Suite `json:"suite"`
	// State is the policy's state fingerprint, ComputeDtype what it was computed
	// with, Fingerprint the device's.
	State        string `json:"state"`
	ComputeDtype string `json:"compute_dtype"`
	// PassRows is the spec's, on which the bits depend; 0 is the default.
	PassRows int `json:"pass_rows,omitempty"`
	// SharedPrompts is how many prompts a prefill of the first turn had, on which they depend too; 0
	// where each row had its own.
	SharedPrompts int    `json:"shared_prompts,omitempty"`
	Fingerprint   string `json:"fingerprint"`
	// LoRA is how the adapters are made that the state is of, and Base the digest of their base
	// model; absent where all weights are trained.
	LoRA *spec.LoRA `json:"lora,omitempty"`
	Base string     `json:"base,omitempty"`
	// Metrics are the figures, Trajectories the digest of the table's logical columns.
	Metrics      activities.Metrics `json:"metrics"`
	Trajectories string             `json:"trajectories"`
}

const evaluationFormat = 1

// Measure turns an evaluation's episodes into figures and stores its
// trajectories and its result.
func (h *Host) Measure(ctx context.Context, in activities.MeasureInput) (_ activities.MeasureResult, err error) {
	defer run.Edge(ctx, &err, "measure version %d of run %s", in.Version, in.Run.ID)
	defer run.Heartbeat(ctx)()
	start := time.Now()
	rc, err := h.Contexts.Read(ctx, h.Store, in.Run)
	if err != nil {
		return activities.MeasureResult{}, err
	}
	task, err := rc.Task(in.Rollout)
	if err != nil {
		return activities.MeasureResult{}, err
	}
	if task.Suite == nil {
		return activities.MeasureResult{}, fmt.Errorf("measure without a suite: %w", store.ErrInvalid)
	}
	rows, err := h.episodes(ctx, task, in.Turns)
	if err != nil {
		return activities.MeasureResult{}, err
	}
	if len(rows) != task.Rows() {
		return activities.MeasureResult{}, fmt.Errorf("%d trajectories, suite %s has %d: %w", len(rows), task.Suite.Name, task.Rows(), store.ErrInvalid)
	}
	answers, err := run.ReadRound(ctx, h.Store, in.Turns)
	if err != nil {
		return activities.MeasureResult{}, err
	}
	left, err := h.agentBroken(ctx, in.Turns, 0)
	if err != nil {
		return activities.MeasureResult{}, err
	}
	broken := append(answers.Broken(), left...)
	if err := run.CheckBroken(broken, 0, len(rows), task.Members, task.Suite.Environment.BrokenShare); err != nil {
		return activities.MeasureResult{}, err
	}
	dropped := run.Drop(rows, broken, 1) // each by itself: an instance's samples are not compared
	metrics := run.EvaluationMetrics(task, rows)
	if err := h.callMetrics(ctx, metrics, task, in.Turns, len(rows)); err != nil {
		return activities.MeasureResult{}, err
	}
	if err := h.agentMetrics(ctx, metrics, in.Turns); err != nil {
		return activities.MeasureResult{}, err
	}
	if task.Foreign() || task.ByAgent() {
		run.BrokenMetrics(metrics, broken, dropped, len(rows))
	} else {
		lines, err := h.references.Of(rc, task)
		if err != nil {
			return activities.MeasureResult{}, err
		}
		lines.Add(metrics)
	}
	place := run.Dir(in.Run, in.Branch, in.Rollout)
	table, err := tables.Put(ctx, h.Store, place, "trajectories", rows)
	if err != nil {
		return activities.MeasureResult{}, err
	}
	result := EvaluationResult{
		Format: evaluationFormat, Suite: *task.Suite, State: in.State, ComputeDtype: rc.Train.Policy.ComputeDtype,
		PassRows: rc.Train.Rollout.PassRows, SharedPrompts: rc.Train.Rollout.SharedPrompts(task.Suite.Rows(), task.Suite.Samples),
		Fingerprint: in.Fingerprint, Metrics: metrics, Trajectories: table.Content,
	}
	if result.LoRA = rc.Train.Policy.LoRA; result.LoRA != nil {
		base, err := run.ReadIndex(ctx, h.Store, in.Run.Base)
		if err != nil {
			return activities.MeasureResult{}, err
		}
		result.Base = base.Digest
	}
	b, err := canon.Marshal(result)
	if err != nil {
		return activities.MeasureResult{}, fmt.Errorf("encode the result of suite %s: %w", task.Suite.Name, err)
	}
	stored, err := store.PutArtifact(ctx, h.Store, place, "result", "json", b)
	if err != nil {
		return activities.MeasureResult{}, err
	}
	return activities.MeasureResult{
		Evaluation: store.EvaluationRef{
			Version: in.Version, Suite: task.Suite.Name, State: in.State,
			Turns: in.Turns, Trajectories: &table, Result: &stored, Metrics: metrics,
		},
		Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()},
	}, nil
}
