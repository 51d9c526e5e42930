package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/selection"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Select puts the trajectories of a rollout together and marks the groups that
// the update learns from.
func (h *Host) Select(ctx context.Context, in SelectInput) (SelectResult, error) {
	out, err := h.selectGroups(ctx, in)
	return out, edge(ctx, fmt.Sprintf("select of iteration %d of run %s", in.Rollout.Iteration, in.Run.ID), err)
}

func (h *Host) selectGroups(ctx context.Context, in SelectInput) (SelectResult, error) {
	defer heartbeat(ctx)()
	start := time.Now()
	k, err := h.kits.read(ctx, h.Store, in.Run)
	if err != nil {
		return SelectResult{}, err
	}
	scene, err := k.scene(in.Rollout)
	if err != nil {
		return SelectResult{}, err
	}
	rows, err := h.episodes(ctx, scene, in.Turns)
	if err != nil {
		return SelectResult{}, err
	}
	groups, members := scene.groups, scene.members
	if len(rows) != groups*members {
		return SelectResult{}, fmt.Errorf("%d trajectories, want %d groups of %d: %w", len(rows), groups, members, store.ErrInvalid)
	}
	kept, weights, err := selectedGroups(in.Settings.Selection, rows, groups, members)
	if err != nil {
		return SelectResult{}, err
	}
	count := 0
	for i := range rows {
		rows[i].Selected, rows[i].Weight = kept[rows[i].Group], weights[rows[i].Group]
		if rows[i].Selected {
			count++
		}
	}
	ref, err := store.PutTable(ctx, h.Store, dir(in.Run, in.Branch, in.Rollout), "trajectories", rows)
	if err != nil {
		return SelectResult{}, err
	}
	return SelectResult{
		Trajectories: ref, Rows: count, Metrics: rolloutMetrics(scene, rows),
		Telemetry: Telemetry{Seconds: time.Since(start).Seconds()},
	}, nil
}

// episodes reads a rollout's turns as trajectories.
func (h *Host) episodes(ctx context.Context, scene *scene, refs []store.TurnRefs) ([]TrajectoryRow, error) {
	turns, err := readTurns(ctx, h.Store, refs)
	if err != nil {
		return nil, err
	}
	if len(turns) == 0 || len(turns[0].generate) == 0 {
		return nil, fmt.Errorf("a rollout has at least a turn and a row: %w", store.ErrInvalid)
	}
	return scene.trajectories(turns), nil
}

// selectedGroups applies the selection to the penalised, never normalised,
// returns: which groups are kept, and the factor of each one's advantages.
func selectedGroups(s spec.Selection, rows []TrajectoryRow, groups, members int) (kept []bool, weights []float64, err error) {
	g := selection.Groups{}
	for at := range groups {
		var returns, entropies, lengths []float64
		for _, r := range rows[at*members : (at+1)*members] {
			returns = append(returns, r.Return())
			surprise := 0.0
			for _, l := range r.RolloutLogProbs {
				surprise -= float64(l)
			}
			entropies = append(entropies, surprise/float64(max(len(r.RolloutLogProbs), 1)))
			lengths = append(lengths, float64(total(r.SampledLengths)))
		}
		g.Rewards, g.Entropies, g.Lengths = append(g.Rewards, returns), append(g.Entropies, entropies), append(g.Lengths, lengths)
	}
	o := selection.Options{
		Method: selection.Method(s.Method), Metric: selection.Metric(s.Metric), Order: selection.Order(s.Order),
		Slack: s.Slack, DropFlat: s.DropFlat, Floor: s.Floor,
	}
	switch s.Method {
	case spec.SelectTopFraction:
		o.Value = s.Keep
	case spec.SelectTopCount:
		o.Value = float64(s.Count)
	default:
		o.Value = s.P
	}
	result, err := selection.Select(g, o)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	kept = make([]bool, groups)
	for _, at := range result.Kept {
		kept[at] = true
	}
	weights = slices.Repeat([]float64{1}, groups)
	if s.Reweight {
		weights = selection.Reweight(result.Spreads)
	}
	scale, err := selection.LossScale(selection.Scaling(s.LossScale), len(result.Kept), groups)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	for i := range weights {
		weights[i] *= scale
	}
	return kept, weights, nil
}
