package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// EvaluationResult is what an evaluation found, as it is stored: nothing in it
// says who asked, so that the same policy on the same suite and kind of device
// gives the same bytes.
type EvaluationResult struct {
	// Format is evaluationFormat.
	Format int `json:"format"`
	// Suite is complete: who rolls it out again meets the same instances.
	Suite spec.Suite `json:"suite"`
	// State is the policy's state fingerprint, ComputeDtype what it was computed
	// with, Fingerprint the device's.
	State        string `json:"state"`
	ComputeDtype string `json:"compute_dtype"`
	Fingerprint  string `json:"fingerprint"`
	// Metrics are the figures, Trajectories the digest of the table's logical columns.
	Metrics      Metrics `json:"metrics"`
	Trajectories string  `json:"trajectories"`
}

const evaluationFormat = 1

// Measure turns an evaluation's episodes into figures and stores its
// trajectories and its result.
func (h *Host) Measure(ctx context.Context, in MeasureInput) (_ MeasureResult, err error) {
	defer edge(ctx, &err, "measure version %d of run %s", in.Version, in.Run.ID)
	defer heartbeat(ctx)()
	start := time.Now()
	rc, err := h.contexts.read(ctx, h.Store, in.Run)
	if err != nil {
		return MeasureResult{}, err
	}
	task, err := rc.task(in.Rollout)
	if err != nil {
		return MeasureResult{}, err
	}
	if task.suite == nil {
		return MeasureResult{}, fmt.Errorf("measure without a suite: %w", store.ErrInvalid)
	}
	rows, err := h.episodes(ctx, task, in.Turns)
	if err != nil {
		return MeasureResult{}, err
	}
	if len(rows) != task.rows() {
		return MeasureResult{}, fmt.Errorf("%d trajectories, suite %s has %d: %w", len(rows), task.suite.Name, task.rows(), store.ErrInvalid)
	}
	metrics := evaluationMetrics(task, rows)
	lines, err := h.references.of(rc, task)
	if err != nil {
		return MeasureResult{}, err
	}
	lines.add(metrics)
	place := dir(in.Run, in.Branch, in.Rollout)
	table, err := store.PutTable(ctx, h.Store, place, "trajectories", rows)
	if err != nil {
		return MeasureResult{}, err
	}
	b, err := canon.Marshal(EvaluationResult{
		Format: evaluationFormat, Suite: *task.suite, State: in.State, ComputeDtype: rc.train.Policy.ComputeDtype,
		Fingerprint: in.Fingerprint, Metrics: metrics, Trajectories: table.Content,
	})
	if err != nil {
		return MeasureResult{}, fmt.Errorf("encode the result of suite %s: %w", task.suite.Name, err)
	}
	result, err := store.PutArtifact(ctx, h.Store, place, "result", "json", b)
	if err != nil {
		return MeasureResult{}, err
	}
	return MeasureResult{
		Evaluation: store.EvaluationRef{
			Version: in.Version, Suite: task.suite.Name, State: in.State,
			Turns: in.Turns, Trajectories: &table, Result: &result, Metrics: metrics,
		},
		Telemetry: Telemetry{Seconds: time.Since(start).Seconds()},
	}, nil
}
