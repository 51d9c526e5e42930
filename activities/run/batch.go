package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// SelectedRows reads the trajectories the update learns from, in row order.
func SelectedRows(ctx context.Context, s store.Store, trajectories store.Ref) ([]TrajectoryRow, error) {
	all, err := tables.Get[TrajectoryRow](ctx, s, trajectories)
	if err != nil {
		return nil, fmt.Errorf("trajectories: %w", err)
	}
	return SelectedOf(all), nil
}

// SelectedOf are the rows that were selected, in their order.
func SelectedOf(all []TrajectoryRow) []TrajectoryRow {
	var rows []TrajectoryRow
	for _, r := range all {
		if r.Selected {
			rows = append(rows, r)
		}
	}
	return rows
}

// MicroBatches lays stretches out on the width of the run's longest row; see ScoreBatches.
func (rc *Context) MicroBatches(rows []Stretch) []model.MicroBatch {
	return layOut(rows, rc.Train.Update.MicroBatch, rc.Shapes(rc.Training, 1).Sequence)
}

// layOut lays stretches out in ⌈stretches/b⌉ micro-batches of b rows of a width, without
// log-probs and advantages. Rows after the last stretch are padding of weight 0.
func layOut(rows []Stretch, b, width int) []model.MicroBatch {
	var out []model.MicroBatch
	for at := 0; at < len(rows); at += b {
		m := emptyMicroBatch(b, width)
		for i, p := range rows[at:min(at+b, len(rows))] {
			m.Lengths[i], m.RowWeights[i] = int32(copy(m.IDs[i], p.Ids)), 1
			copy(m.Mask[i], p.Sampled)
		}
		out = append(out, m)
	}
	return out
}

// emptyMicroBatch is b rows of padding.
func emptyMicroBatch(b, width int) model.MicroBatch {
	m := model.MicroBatch{Lengths: make([]int32, b), RowWeights: make([]float32, b)}
	for range b {
		m.IDs = append(m.IDs, make([]int32, width))
		m.Mask = append(m.Mask, make([]bool, width))
		m.OldLogProbs = append(m.OldLogProbs, make([]float32, width))
		m.Advantages = append(m.Advantages, make([]float32, width))
	}
	return m
}

// BatchRow is a row of a batch, without padding: [width], or [tokens] of it.
type BatchRow struct {
	Row, Origin     int32 // the trajectory's, −1 for a demonstration; and the iteration that rolled it out
	Ids             []int32
	Length          int32
	Mask            []bool
	Old, Advantages []float32
	Turns           []int32
	// nil without a second network, and without a reference in the loss. Returns and OldValues have
	// spec.Credit.Values numbers for each token, one after the other, and so has Learns.
	Returns, OldValues, Reference []float32
	// Rollout are the sampler's log-probs; nil unless the run has mismatch weights.
	Rollout []float32
	// Learns is where the critic learns Returns; nil if it does wherever Mask is true.
	Learns []bool
	// Supervised rows are learned from by the log-likelihood of their Mask. Their other numbers
	// are 0.
	Supervised bool
}

// CriticRows are rows as a critic's update takes them: its tokens are those whose returns it
// learns. The rows are not written to.
func CriticRows(rows []BatchRow) []BatchRow {
	if rows[0].Learns == nil {
		return rows
	}
	out := slices.Clone(rows)
	for i, r := range rows {
		out[i].Mask = r.Learns
	}
	return out
}

// CriticMinibatch is Minibatch for a critic with so many values for each token. With several, the
// loss is their mean over all that are learned: the aggregation is that of the policy's tokens.
func CriticMinibatch(rows []BatchRow, sh model.Shapes, u spec.Update, divisor float64, values int) ([]model.MicroBatch, error) {
	rows = CriticRows(rows)
	if values == 1 {
		return Minibatch(rows, sh, u, divisor)
	}
	var out []model.MicroBatch
	for at := 0; at < len(rows); at += sh.MicroBatch {
		width := widthOf(sh, int(rows[at].Length))
		m := emptyMicroBatch(sh.MicroBatch, width)
		m.Width, m.Values = width, values
		m.Returns, m.OldValues = make([][]float32, sh.MicroBatch), make([][]float32, sh.MicroBatch)
		for i := range m.Mask {
			m.Mask[i] = make([]bool, values*width)
		}
		for i, r := range rows[at:min(at+sh.MicroBatch, len(rows))] {
			if r.Ids == nil {
				continue
			}
			m.IDs[i], m.Lengths[i], m.RowWeights[i] = r.Ids[:width], r.Length, 1
			m.Mask[i], m.Returns[i], m.OldValues[i] = r.Mask[:values*width], r.Returns, r.OldValues
		}
		out = append(out, m)
	}
	if err := model.Weigh(out, loss.TokenMean, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	return out, nil
}

// Minibatch lays rows out in micro-batches, in their order (Arrange), with the weights and bounds
// of an optimizer step. Supervised rows have the weight 0 in it; see Imitate.
func Minibatch(rows []BatchRow, sh model.Shapes, u spec.Update, divisor float64) ([]model.MicroBatch, error) {
	b := sh.MicroBatch
	var out []model.MicroBatch
	for at := 0; at < len(rows); at += b {
		width := widthOf(sh, int(rows[at].Length))
		m := emptyMicroBatch(b, width)
		m.Width = width
		if len(u.ClipTurns) > 0 {
			for range b {
				m.ClipLow, m.ClipHigh = append(m.ClipLow, make([]float32, width)), append(m.ClipHigh, make([]float32, width))
			}
		}
		if loss.Ratio(u.Ratio) == loss.TurnRatio {
			m.Turns = make([][]int32, b)
		}
		if rows[0].Returns != nil {
			m.Returns, m.OldValues = make([][]float32, b), make([][]float32, b)
		}
		if rows[0].Reference != nil {
			m.RefLogProbs = make([][]float32, b)
		}
		if u.KLFirstTurn > 0 {
			for range b {
				m.KLCoefficients = append(m.KLCoefficients, make([]float32, width))
			}
		}
		for i, r := range rows[at:min(at+b, len(rows))] {
			if r.Ids == nil {
				continue
			}
			m.IDs[i], m.Lengths[i], m.RowWeights[i] = r.Ids[:width], r.Length, 1
			if r.Supervised {
				m.RowWeights[i] = 0
			}
			if m.Returns != nil {
				m.Returns[i], m.OldValues[i] = r.Returns, r.OldValues
			}
			if m.RefLogProbs != nil {
				m.RefLogProbs[i] = r.Reference
			}
			if m.Turns != nil {
				m.Turns[i] = r.Turns
			}
			m.Mask[i], m.OldLogProbs[i], m.Advantages[i] = r.Mask[:width], r.Old, r.Advantages
			for t, turn := range r.Turns[:width] {
				if m.ClipLow != nil && r.Mask[t] {
					c := u.Clip(int(turn))
					m.ClipLow[i][t], m.ClipHigh[i][t] = float32(c.Low), float32(c.High)
				}
				if m.KLCoefficients != nil && r.Mask[t] {
					m.KLCoefficients[i][t] = float32(u.KL(int(turn)))
				}
			}
		}
		out = append(out, m)
	}
	weigh := func() error { return model.Weigh(out, loss.Aggregation(u.Aggregation), divisor) }
	if loss.Aggregation(u.Aggregation) == loss.TurnMean {
		weigh = func() error { return model.WeighByTurn(out, turnsOf(rows)) }
	}
	if err := weigh(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	return out, nil
}

// turnsOf are the turns of the rows' tokens.
func turnsOf(rows []BatchRow) [][]int32 {
	var out [][]int32
	for _, r := range rows {
		out = append(out, r.Turns)
	}
	return out
}
