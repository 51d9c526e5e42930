package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Credits tells whether Credit has something to do in an iteration that learns from so
// many rows: a baseline by state sees all trajectories of a rollout, also where none was
// selected.
func Credits(s spec.Settings, rollout *store.RolloutRef, rows int) bool {
	return rows > 0 || s.Credit.Algorithm == spec.CreditStateBaseline && (rollout == nil || rollout.Update == 0)
}

// Credit gives every selected row its advantages and stores the batch: all that
// Update reads. Without a selected row there is no batch.
func (h *Host) Credit(ctx context.Context, in CreditInput) (_ CreditResult, err error) {
	defer edge(ctx, &err, "credit of iteration %d of run %s", in.Iteration, in.Run.ID)
	defer heartbeat(ctx)()
	start := time.Now()
	rc, err := h.contexts.read(ctx, h.Store, in.Run)
	if err != nil {
		return CreditResult{}, err
	}
	all, err := store.GetTable[TrajectoryRow](ctx, h.Store, in.Trajectories)
	if err != nil {
		return CreditResult{}, fmt.Errorf("trajectories: %w", err)
	}
	var scores []ScoreRow
	if in.Scores != nil {
		if scores, err = store.GetTable[ScoreRow](ctx, h.Store, *in.Scores); err != nil {
			return CreditResult{}, err
		}
	}
	rows, scores, err := sharedPart(rc, in.Rollout, selectedOf(all), scores)
	if err != nil {
		return CreditResult{}, err
	}
	dir := store.IterationDir(in.Run.ID, in.Branch, in.Iteration)
	past, states, err := observeStates(ctx, h.Store, in, dir, all)
	if err != nil {
		return CreditResult{}, err
	}
	if len(rows) == 0 {
		return CreditResult{States: states, Telemetry: Telemetry{Seconds: time.Since(start).Seconds()}}, nil
	}
	l := newCreditInput(rows)
	if err := l.scored(rows, scores, rc.train.Update.Reference(), rc.train.Credit.Critic()); err != nil {
		return CreditResult{}, err
	}
	signal, err := l.trainingSignal(in.Settings, rows, past)
	if err != nil {
		return CreditResult{}, err
	}
	origin := in.Iteration
	if in.Rollout != nil {
		origin = in.Rollout.Iteration
	}
	batch := batchRows(rc, rows, signal, scores, origin)
	replayed, err := h.replayed(ctx, rc, in, len(batch))
	if err != nil {
		return CreditResult{}, err
	}
	batch = append(batch, replayed...)
	if f := rc.train.Freshness; f.Updates() > 1 || f.ReplayIterations > 0 {
		staleness(batch, in.Iteration, signal.metrics)
	}
	body, err := encodeBatch(batch, rc.train.Update.MicroBatch)
	if err != nil {
		return CreditResult{}, fmt.Errorf("encode the batch: %w", err)
	}
	ref, err := store.PutArtifact(ctx, h.Store, dir, "batch", "safetensors", body)
	if err != nil {
		return CreditResult{}, err
	}
	return CreditResult{
		Batch: &ref, States: states, Metrics: signal.metrics,
		Telemetry: Telemetry{Seconds: time.Since(start).Seconds()},
	}, nil
}

// part takes the rows that an iteration learns from, and their scores, where it
// shares the rollout: all of them, or its own groups.
func sharedPart(rc *runContext, r *store.RolloutRef, rows []TrajectoryRow, scores []ScoreRow) ([]TrajectoryRow, []ScoreRow, error) {
	if len(scores) != len(rows) {
		return nil, nil, fmt.Errorf("%d scores for %d selected rows: %w", len(scores), len(rows), store.ErrInvalid)
	}
	if r == nil || rc.train.Freshness.Online == 1 {
		return rows, scores, nil
	}
	var own []TrajectoryRow
	var ownScores []ScoreRow
	for i, row := range rows {
		if int(row.Group)/rc.training.groups == r.Update {
			own, ownScores = append(own, row), append(ownScores, scores[i])
		}
	}
	return own, ownScores, nil
}

// batchRows lays the training signal of trajectories out in the batch's rows, one a
// piece.
func batchRows(rc *runContext, rows []TrajectoryRow, l trainingSignal, scores []ScoreRow, origin int) []batchRow {
	width := rc.shapes(rc.training, 1).Sequence
	wide := func() []float32 { return make([]float32, width) }
	var out []batchRow
	for _, p := range pieces(rows) {
		r := batchRow{
			row: p.row, origin: int32(origin), length: int32(len(p.ids)), ids: make([]int32, width), turns: make([]int32, width),
			mask: make([]bool, width), old: wide(), advantages: wide(),
		}
		copy(r.ids, p.ids)
		copy(r.turns, p.turns)
		copy(r.mask, p.sampled)
		if l.returns != nil {
			r.returns, r.oldValues = wide(), wide()
		}
		if rc.train.Update.KLIn == spec.KLLoss {
			r.reference = wide()
		}
		s, n := scores[p.of], p.first
		for t, sampled := range p.sampled {
			if !sampled {
				continue
			}
			r.old[t], r.advantages[t] = s.LogProbs[n], float32(l.advantages[p.of][n])
			if r.returns != nil {
				r.returns[t], r.oldValues[t] = float32(l.returns[p.of][n]), s.Values[n]
			}
			if r.reference != nil {
				r.reference[t] = s.RefLogProbs[n]
			}
			n++
		}
		out = append(out, r)
	}
	return out
}

// replayed draws rows from the replay buffer: of the batches of recent iterations
// those that were fresh there, with the log-probs and the advantages that they had.
func (h *Host) replayed(ctx context.Context, rc *runContext, in CreditInput, fresh int) ([]batchRow, error) {
	wanted := rc.train.Freshness.Replayed(fresh)
	if wanted == 0 || len(in.Replay) == 0 {
		return nil, nil
	}
	var pool []batchRow
	for _, ref := range in.Replay {
		rows, err := rc.readBatch(ctx, h.Store, ref)
		if err != nil {
			return nil, fmt.Errorf("replay buffer: %w", err)
		}
		newest := int32(0)
		for _, r := range rows {
			newest = max(newest, r.origin)
		}
		for _, r := range rows {
			if r.origin == newest {
				pool = append(pool, r)
			}
		}
	}
	if wanted = min(wanted, len(pool)); wanted == 0 {
		return nil, nil
	}
	drawn := rc.drawn(draw.Replay, in.Branch, in.Iteration).Permutation(len(pool))[:wanted]
	slices.Sort(drawn) // in the order of the buffer
	var out []batchRow
	for _, at := range drawn {
		out = append(out, pool[at])
	}
	return out, nil
}

// staleness says how many iterations ago the rows of a batch were rolled out.
func staleness(rows []batchRow, iteration int, metrics Metrics) {
	var ages []float64
	most := 0.0
	for _, r := range rows {
		age := float64(iteration - int(r.origin))
		ages, most = append(ages, age), max(most, age)
	}
	metrics["training/staleness_mean"], metrics["training/staleness_max"] = canon.Float(mean(ages)), canon.Float(most)
}
