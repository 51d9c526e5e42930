package bench

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows"
)

// Durable trains by Train workflows on a Temporal server whose workers the caller runs.
type Durable struct {
	Client client.Client
	Store  store.Store
}

// Train starts a run, waits for its end and reads what its iterations measured.
func (d Durable) Train(ctx context.Context, runID string, text []byte) (train.Trained, error) {
	w, err := stack.StartTrain(ctx, d.Client, runID, text)
	if err != nil {
		return train.Trained{}, err
	}
	var r workflows.TrainResult
	if err := w.Get(ctx, &r); err != nil {
		return train.Trained{}, fmt.Errorf("run %s: %w", runID, err)
	}
	out := train.Trained{State: r.State}
	var last run.IterationTelemetry
	for n := range r.Iterations {
		t, err := run.ReadTelemetry(ctx, d.Store, runID, r.Branch, n)
		if err != nil {
			return out, fmt.Errorf("telemetry of run %s: %w", runID, err)
		}
		i := train.Iteration{Steps: map[string]float64{}}
		for name, step := range t.Steps {
			i.Steps[name] = step.Seconds
		}
		// The first iteration also loads the policy.
		if n > 0 {
			i.Seconds = t.Committed.Sub(last.Committed).Seconds()
		}
		last = t
		out.Iterations = append(out.Iterations, i)
	}
	return out, nil
}
