package study

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/lab/learn"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/spec"
)

const (
	// plantedAfter is the iteration after which the learning rate is raised.
	plantedAfter = 20
	// plantedEvery is how often the policy is measured, plantedIterations how long it runs.
	plantedEvery      = 10
	plantedIterations = 50
	// plantedShare is the share of supervised rows.
	plantedShare = 0.25
)

// NoRows is the arm without supervised rows that the others are compared with.
const NoRows = "none"

// plantedFields are the fields replaced in the preset: detectors roll back, or warn and the
// update has supervised rows; and evaluation has 256 fixed samples at the rollout's temperature.
func plantedFields(size Size, seed uint64, supervised string) map[string]any {
	fields := size.fields(seed)
	fields["description"] = fmt.Sprintf(
		"reprise study --planted: a learning rate too high after iteration %d, by knob; seed %d", plantedAfter, seed)
	fields["iterations"] = plantedIterations
	if supervised == "" {
		fields["collapse"] = map[string]any{"on_detection": "rollback", "rollback": map[string]any{"max": 3, "learning_rate_factor": 0.5}}
	} else {
		fields["collapse"] = map[string]any{"on_detection": "warn"}
	}
	if supervised != "" && supervised != NoRows {
		update, _ := fields["update"].(map[string]any)
		if update == nil {
			update = map[string]any{}
			fields["update"] = update
		}
		update["supervised"] = map[string]any{"from": supervised, "share": plantedShare}
	}
	fields["snapshot"] = map[string]any{"every": plantedEvery}
	fields["evaluation"] = map[string]any{
		"every": plantedEvery, "instances": learn.Instances, "samples": learn.Samples, "temperature": learn.Temperature,
	}
	return fields
}

// Plant provokes a collapse in a run of each seed by raising its learning rate, and prints
// what was detected, the rollbacks and the result. recovered is false if a run did not roll
// back or ended clearly worse than before.
func Plant(ctx context.Context, o Options, out, progress io.Writer) (recovered bool, err error) {
	if o.Seeds < 1 {
		return false, fmt.Errorf("study: --seeds %d: at least 1", o.Seeds)
	}
	if !(o.Rate > 0 && o.Rate <= 1) {
		return false, fmt.Errorf("study: --planted-rate %g: above 0, at most 1", o.Rate)
	}
	switch o.Supervised {
	case "", NoRows, spec.Demonstrations, spec.OwnSuccesses:
	default:
		return false, fmt.Errorf("study: --planted-supervised %q: one of %s, %s, %s", o.Supervised, NoRows, spec.Demonstrations, spec.OwnSuccesses)
	}
	var stories []*Planted
	err = stack.With(ctx, dev.Options{Ephemeral: true, Stdout: progress}, o.Worker, func(ctx context.Context, on stack.Served) error {
		for seed := 1; seed <= o.Seeds; seed++ {
			text, err := presets.With("bandit-demo", plantedFields(o.Size, uint64(seed), o.Supervised))
			if err != nil {
				return err
			}
			story, err := plant(ctx, on.Client, on.Bucket, o.plantedRun(seed), text, o.Rate, progress)
			if err != nil {
				return err
			}
			stories = append(stories, story)
			fmt.Fprintln(out, story)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	body, err := PlantedJSON(stories)
	if err != nil {
		return false, err
	}
	name := fmt.Sprintf("planted-%g.json", o.Rate)
	if o.Supervised != "" {
		name = fmt.Sprintf("planted-%g-%s.json", o.Rate, o.Supervised)
	}
	if err := Folder(o.Out).Write(name, body); err != nil {
		return false, err
	}
	fmt.Fprint(out, PlantedTable(stories))
	if o.Supervised != "" {
		return true, nil // how it ends is what is measured
	}
	for _, story := range stories {
		if !story.Recovered() {
			return false, nil
		}
	}
	return true, nil
}

// plantedRun names the run of a seed.
func (o Options) plantedRun(seed int) string {
	if o.Supervised == "" {
		return fmt.Sprintf("planted-s%d", seed)
	}
	return fmt.Sprintf("planted-%s-s%d", o.Supervised, seed)
}

// plant starts a run, changes its learning rate, waits for its end and reads the result.
func plant(ctx context.Context, c client.Client, bucket store.Store, run string, text []byte, rate float64,
	progress io.Writer) (*Planted, error) {
	w, err := stack.StartTrain(ctx, c, run, text)
	if err != nil {
		return nil, err
	}
	if err := watch.Until(ctx, c, run, 50*time.Millisecond, func(s workflows.Status) bool { return s.Iteration >= plantedAfter }); err != nil {
		return nil, fmt.Errorf("run %s did not get to iteration %d: %w", run, plantedAfter, err)
	}
	value, err := json.Marshal(rate)
	if err != nil {
		return nil, fmt.Errorf("encode the learning rate: %w", err)
	}
	h, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run, UpdateID: "planted", UpdateName: "change-knob", WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{spec.Change{Path: "update.learning_rate", Value: value}},
	})
	if err != nil {
		return nil, fmt.Errorf("change the learning rate: %w", err)
	}
	var said string
	if err := h.Get(ctx, &said); err != nil {
		return nil, fmt.Errorf("change the learning rate: %w", err)
	}
	fmt.Fprintf(progress, "%s: learning rate %g: %s\n", run, rate, said)
	var r workflows.TrainResult
	if err := w.Get(ctx, &r); err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return ReadPlanted(ctx, bucket, run, rate)
}
