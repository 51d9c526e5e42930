package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// Select puts the trajectories of a rollout together and marks the groups that
// the update learns from.
func (h *Host) Select(ctx context.Context, in SelectInput) (_ SelectResult, err error) {
	defer edge(ctx, &err, "select of iteration %d of run %s", in.Rollout.Iteration, in.Run.ID)
	defer heartbeat(ctx)()
	start := time.Now()
	rc, err := h.contexts.read(ctx, h.Store, in.Run)
	if err != nil {
		return SelectResult{}, err
	}
	task, err := rc.task(in.Rollout)
	if err != nil {
		return SelectResult{}, err
	}
	rows, err := h.rounds(ctx, task, in.Turns)
	if err != nil {
		return SelectResult{}, err
	}
	rolled := *task
	rolled.groups = len(rows) / task.members
	choice, err := choose(rc, in.Settings.Selection, rows, task)
	if err != nil || choice.more {
		return SelectResult{More: choice.more, Telemetry: Telemetry{Seconds: time.Since(start).Seconds()}}, err
	}
	count := 0
	for i := range rows {
		rows[i].Selected, rows[i].Weight = choice.kept[rows[i].Group], choice.weights[rows[i].Group]
		if rows[i].Selected {
			count++
		}
	}
	ref, err := store.PutTable(ctx, h.Store, dir(in.Run, in.Branch, in.Rollout), "trajectories", rows)
	if err != nil {
		return SelectResult{}, err
	}
	metrics := rolloutMetrics(&rolled, rows)
	if n := rolled.groups / task.groups; rc.train.Selection.Resample > 1 || n > 1 {
		metrics["rollout/rounds"] = canon.Float(float64(n))
	}
	return SelectResult{
		Trajectories: ref, Rows: count, Parts: partSizes(rc, rows, count, task), Metrics: metrics,
		Telemetry: Telemetry{Seconds: time.Since(start).Seconds()},
	}, nil
}

// rounds reads the rounds of a rollout as trajectories: groups and rows of a later
// one continue the index.
func (h *Host) rounds(ctx context.Context, task *task, refs []store.TurnRefs) ([]TrajectoryRow, error) {
	var all []TrajectoryRow
	for round := 0; len(refs) > 0; round++ {
		n := 0
		for n < len(refs) && refs[n].Round == round {
			n++
		}
		rows, err := h.episodes(ctx, task, refs[:n])
		if err != nil {
			return nil, err
		}
		if len(rows) != task.rows() {
			return nil, fmt.Errorf("%d trajectories, want %d groups of %d: %w", len(rows), task.groups, task.members, store.ErrInvalid)
		}
		for i := range rows {
			rows[i].Row += int32(round * task.rows())
			rows[i].Group += int32(round * task.groups)
		}
		all, refs = append(all, rows...), refs[n:]
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("a rollout has at least a turn: %w", store.ErrInvalid)
	}
	return all, nil
}

// episodes reads the turns of a round as trajectories.
func (h *Host) episodes(ctx context.Context, task *task, refs []store.TurnRefs) ([]TrajectoryRow, error) {
	turns, err := readTurns(ctx, h.Store, refs)
	if err != nil {
		return nil, err
	}
	if len(turns) == 0 || len(turns[0].generate) == 0 {
		return nil, fmt.Errorf("a rollout has at least a turn and a row: %w", store.ErrInvalid)
	}
	return trajectories(task, turns), nil
}
