package gpu

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model/hf/families"
	"github.com/reprise-rl/reprise/workers/lab/bench"
	"github.com/reprise-rl/reprise/workers/lab/medians"
	"github.com/reprise-rl/reprise/workers/policy"
)

// killed kills a worker in the middle of a durable run, and compares the run's end with that of
// the same training without one.
func killed(ctx context.Context, m *machine) error {
	preset, iterations, _, err := m.smallRun()
	if err != nil {
		return err
	}
	text, err := presets.With(preset, map[string]any{
		"iterations": iterations, "policy": m.exactPolicy(), "snapshot": map[string]any{"every": iterations}, "evaluation": map[string]any{"every": 0},
	})
	if err != nil {
		return err
	}
	return m.killIn(ctx, preset, text)
}

// killedAtSize does the same with a policy of Qwen2.5-0.5B's shape and random weights: snapshots
// of 6 GB every two iterations, and 128 rows of up to 64 tokens each.
func killedAtSize(ctx context.Context, m *machine) error {
	known, err := families.ByName("qwen2.5-0.5b")
	if err != nil {
		return err
	}
	c, dtype := known.Config, "bfloat16"
	groups, size, tokens, batch, iterations := 8, 16, 64, 8, 4
	if m.Tiny {
		c, _ = m.starterShape()
		dtype, groups, size, tokens, batch = "float32", 2, 2, 4, 2
	}
	weights := filepath.Join(m.scratch, "weights")
	if err := policy.RandomOf(ctx, weights, c, 1, nil); err != nil {
		return err
	}
	text, err := presets.With("size-0.5b", map[string]any{
		"policy": map[string]any{"from": "folder:" + weights, "compute_dtype": dtype}, "iterations": iterations,
		"rollout":    map[string]any{"groups": groups, "group_size": size, "max_new_tokens": tokens},
		"update":     map[string]any{"micro_batch": batch, "recompute": "auto"},
		"evaluation": map[string]any{"every": 0},
	})
	if err != nil {
		return err
	}
	return m.killIn(ctx, "size-0.5b", text)
}

// killIn kills a worker in the second update of a run.
func (m *machine) killIn(ctx context.Context, name string, text []byte) error {
	d, err := m.open()
	if err != nil {
		return err
	}
	d.Close() // the workers need it
	got, err := bench.MeasureKilled(ctx, m.Worker, text, 1, os.Stderr)
	if err != nil {
		return err
	}
	if err := m.number("from the kill until the step ran again", got.Total, "s"); err != nil {
		return err
	}
	if err := m.text("of these", fmt.Sprintf("found %.1f s, compiled or loaded programs %.1f s, loaded weights %.1f s, rebuilt %.1f s",
		got.Detection, got.Compile, got.Load, got.Rebuild)); err != nil {
		return err
	}
	for _, activity := range slices.Sorted(maps.Keys(got.Activities)) {
		seconds := got.Activities[activity]
		if err := m.text(activity, fmt.Sprintf("%d, median %.2f s, longest %.2f s", len(seconds), medians.Of(seconds), slices.Max(seconds))); err != nil {
			return err
		}
	}
	if err := m.text(fmt.Sprintf("%s, killed in %s, and not", name, got.Step), got.State+" "+got.Uninterrupted); err != nil {
		return err
	}
	if got.State != got.Uninterrupted {
		return fmt.Errorf("%w: the killed run ended with the state %s, and the other with %s", errBits, got.State, got.Uninterrupted)
	}
	return nil
}
