package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Credit gives every selected row its advantages and stores the batch: all that
// Update reads.
func (h *Host) Credit(ctx context.Context, in CreditInput) (CreditResult, error) {
	out, err := h.credit(ctx, in)
	return out, edge(ctx, fmt.Sprintf("credit of iteration %d of run %s", in.Iteration, in.Run.ID), err)
}

func (h *Host) credit(ctx context.Context, in CreditInput) (CreditResult, error) {
	defer heartbeat(ctx)()
	start := time.Now()
	k, err := h.kits.read(ctx, h.Store, in.Run)
	if err != nil {
		return CreditResult{}, err
	}
	all, err := store.GetTable[TrajectoryRow](ctx, h.Store, in.Trajectories)
	if err != nil {
		return CreditResult{}, fmt.Errorf("trajectories: %w", err)
	}
	rows := selectedOf(all)
	scores, err := store.GetTable[ScoreRow](ctx, h.Store, in.Scores)
	if err != nil {
		return CreditResult{}, err
	}
	l := learnedFrom(rows)
	if err := l.scored(rows, scores, k.train.Update.Reference(), k.train.Credit.Critic()); err != nil {
		return CreditResult{}, err
	}
	dir := store.IterationDir(in.Run.ID, in.Branch, in.Iteration)
	past, states, err := h.stateValues(ctx, in, dir, all)
	if err != nil {
		return CreditResult{}, err
	}
	lesson, err := l.lesson(in.Settings, rows, past)
	if err != nil {
		return CreditResult{}, err
	}
	mbs := k.microBatches(rows)
	for i := range mbs {
		mbs[i].teach(lesson, scores, k.train.Update.KLIn == spec.KLLoss)
	}
	body, err := encodeBatch(mbs)
	if err != nil {
		return CreditResult{}, fmt.Errorf("encode the batch: %w", err)
	}
	ref, err := store.PutArtifact(ctx, h.Store, dir, "batch", "safetensors", body)
	if err != nil {
		return CreditResult{}, err
	}
	return CreditResult{
		Batch: ref, States: states, Metrics: lesson.metrics,
		Telemetry: Telemetry{Seconds: time.Since(start).Seconds()},
	}, nil
}

// teach puts what the update learns of a micro-batch's tokens at their places.
func (mb *microBatch) teach(l lesson, scores []ScoreRow, reference bool) {
	m := &mb.batch
	wide := func() [][]float32 {
		out := make([][]float32, len(m.IDs))
		for i := range out {
			out[i] = make([]float32, len(m.IDs[i]))
		}
		return out
	}
	if l.returns != nil {
		m.Returns, m.OldValues = wide(), wide()
	}
	if reference {
		m.RefLogProbs = wide()
	}
	for i, r := range mb.rows {
		s, n := scores[r.of], r.first
		for t, sampled := range r.sampled {
			if !sampled {
				continue
			}
			m.OldLogProbs[i][t] = s.LogProbs[n]
			m.Advantages[i][t] = float32(l.advantages[r.of][n])
			if l.returns != nil {
				m.Returns[i][t], m.OldValues[i][t] = float32(l.returns[r.of][n]), s.Values[n]
			}
			if reference {
				m.RefLogProbs[i][t] = s.RefLogProbs[n]
			}
			n++
		}
	}
}

// StateValueRow is what trajectories from an initial state have returned so far.
type StateValueRow struct {
	StateKey string  `parquet:"state_key"`
	Count    int64   `parquet:"count"`
	Value    float64 `parquet:"value"`
}

// stateValues gives the values of initial states before the iteration and stores
// those after it: of all its trajectories, selected or not. Of an algorithm that
// needs none it does nothing.
func (h *Host) stateValues(ctx context.Context, in CreditInput, dir string, all []TrajectoryRow) (past []credit.StateValue, ref *store.Ref, err error) {
	c := in.Settings.Credit
	if c.Algorithm != spec.CreditStateBaseline {
		return nil, nil, nil
	}
	if in.States != nil {
		rows, err := store.GetTable[StateValueRow](ctx, h.Store, *in.States)
		if err != nil {
			return nil, nil, fmt.Errorf("values of states: %w", err)
		}
		for _, r := range rows {
			past = append(past, credit.StateValue{Key: r.StateKey, Count: int(r.Count), Value: r.Value})
		}
	}
	var returns []float64
	var keys []string
	for _, r := range all {
		returns, keys = append(returns, r.Return()), append(keys, r.StateKeys[0])
	}
	now, err := credit.Observe(past, returns, keys, c.BaselineRate)
	if err != nil {
		return nil, nil, fmt.Errorf("values of states: %w: %w", err, store.ErrInvalid)
	}
	var rows []StateValueRow
	for _, v := range now {
		rows = append(rows, StateValueRow{StateKey: v.Key, Count: int64(v.Count), Value: v.Value})
	}
	put, err := store.PutTable(ctx, h.Store, dir, "states", rows)
	return past, &put, err
}
