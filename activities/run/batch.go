package run

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// The training data of an update changes its shape on the way from a rollout's tables to
// the device. activities/episode has it as far as the stretches, this file the rest:
//
//	TrajectoryRow   a member's episode: ids of all turns, lengths, rewards
//	   │ Stretches  cut where a turn's prompt is the whole context again
//	Stretch         ids and sampled [tokens], what Score takes
//	   │ layOut     b stretches a micro-batch, padded to the run's width
//	MicroBatch      [b, width], what the programs take; with log-probs from Score:
//	CreditInput     returns, turns, groups [trajectories]: what credit takes
//	   │ TrainingSignal, with advantages and returns [trajectories][sampled tokens]
//	batch.Row       a stretch with its columns at its tokens, [width]; encoded, the rows are batch.safetensors
//	   │ Minibatch  the rows of one optimizer step, weighed and clipped
//	MicroBatch      [b, width], what Update takes

// MicroBatches lays stretches out on the width of the run's longest row; see ScoreBatches.
func (rc *Context) MicroBatches(rows []episode.Stretch) []batch.MicroBatch {
	return layOut(rows, rc.Train.Update.MicroBatch, rc.Shapes(rc.Training, 1).Sequence)
}

// layOut lays stretches out in ⌈stretches/b⌉ micro-batches of b rows of a width, without
// log-probs and advantages. Rows after the last stretch are padding of weight 0.
func layOut(rows []episode.Stretch, b, width int) []batch.MicroBatch {
	var out []batch.MicroBatch
	for at := 0; at < len(rows); at += b {
		m := padding(b, width)
		for i, p := range rows[at:min(at+b, len(rows))] {
			m.Lengths[i], m.RowWeights[i] = int32(copy(m.IDs[i], p.Ids)), 1
			copy(m.Mask[i], p.Sampled)
		}
		out = append(out, m)
	}
	return out
}

// padding is a micro-batch of b rows of padding.
func padding(b, width int) batch.MicroBatch {
	m := batch.MicroBatch{Lengths: make([]int32, b), RowWeights: make([]float32, b)}
	for range b {
		m.IDs, m.Mask = append(m.IDs, make([]int32, width)), append(m.Mask, make([]bool, width))
	}
	return m
}

// ReadBatch reads the rows of a run's batch.
func (rc *Context) ReadBatch(ctx context.Context, s store.Store, ref store.Ref) ([]batch.Row, error) {
	raw, err := store.GetArtifact(ctx, s, ref)
	if err != nil {
		return nil, fmt.Errorf("batch: %w", err)
	}
	t := rc.Train
	wanted, values := []batch.Column{batch.OldLogProbs, batch.Advantages}, 0
	if t.Credit.Second() {
		wanted, values = append(wanted, batch.Returns, batch.OldValues), t.Credit.Values()
	}
	if t.Update.KLIn == spec.KLLoss {
		wanted = append(wanted, batch.RefLogProbs)
	}
	rows, err := batch.Decode(raw, t.Update.MicroBatch, rc.Shapes(rc.Training, 1).Sequence, values, wanted...)
	if err != nil {
		return nil, fmt.Errorf("batch %s: %w: %w", ref.Key, err, store.ErrInvalid)
	}
	return rows, nil
}

// Minibatch lays rows out in micro-batches, in their order (Arrange), with the weights and bounds
// of the policy's optimizer step. Supervised rows have the weight 0 in it; see Imitate.
func Minibatch(rows []batch.Row, sh model.Shapes, u spec.Update, divisor float64) ([]batch.MicroBatch, error) {
	out := laidOut(rows, sh, func(m *batch.MicroBatch, i int, r batch.Row) {
		m.Mask[i] = r.Mask[:m.Width]
		for c, numbers := range r.Columns {
			if numbers != nil && !batch.Column(c).About().Values {
				m.Put(batch.Column(c), i, numbers)
			}
		}
		m.Put(batch.Turns, i, batch.Numbers(r.Turns))
		for _, c := range columnsOfTurns(u) {
			numbers := make([]float32, m.Width)
			for t, turn := range r.Turns[:m.Width] {
				if r.Mask[t] {
					numbers[t] = float32(c.of(int(turn)))
				}
			}
			m.Put(c.column, i, numbers)
		}
	})
	return weighed(out, rows, u.Aggregation, divisor)
}

// turnColumn is a column whose numbers follow from the turns of the tokens.
type turnColumn struct {
	column batch.Column
	of     func(turn int) float64
}

// columnsOfTurns are the columns that an update's settings give each turn.
func columnsOfTurns(u spec.Update) (out []turnColumn) {
	if len(u.ClipTurns) > 0 {
		out = append(out, turnColumn{batch.ClipLow, func(turn int) float64 { return u.Clip(turn).Low }},
			turnColumn{batch.ClipHigh, func(turn int) float64 { return u.Clip(turn).High }})
	}
	if u.KLFirstTurn > 0 {
		out = append(out, turnColumn{batch.KLCoefficients, u.KL})
	}
	return out
}

// CriticMinibatch is Minibatch for a critic with so many values for each token. It learns the
// returns where the row says (batch.Row.Learns). With several values, the loss
// is the mean over all numbers that are learned (loss.TokenMean), whatever the policy's aggregation.
func CriticMinibatch(rows []batch.Row, sh model.Shapes, u spec.Update, divisor float64, values int) ([]batch.MicroBatch, error) {
	out := laidOut(rows, sh, func(m *batch.MicroBatch, i int, r batch.Row) {
		m.Mask[i] = r.Learns()[:values*m.Width]
		m.Put(batch.Returns, i, r.Columns[batch.Returns])
		m.Put(batch.OldValues, i, r.Columns[batch.OldValues])
	})
	if values == 1 {
		return weighed(out, rows, u.Aggregation, divisor)
	}
	for i := range out {
		m := &out[i]
		m.Values = values
		for r, mask := range m.Mask {
			if len(mask) == m.Width { // padding
				m.Mask[r] = make([]bool, values*m.Width)
			}
		}
	}
	return weighed(out, rows, string(loss.TokenMean), 0)
}

// laidOut lays the ids of rows out in micro-batches, in their order, with the weight 1, or 0 for
// supervised rows. fill writes what the loss needs of a row that is not padding.
func laidOut(rows []batch.Row, sh model.Shapes, fill func(m *batch.MicroBatch, i int, r batch.Row)) []batch.MicroBatch {
	var out []batch.MicroBatch
	for at := 0; at < len(rows); at += sh.MicroBatch {
		width := widthOf(sh, int(rows[at].Length))
		m := padding(sh.MicroBatch, width)
		m.Width = width
		for i, r := range rows[at:min(at+sh.MicroBatch, len(rows))] {
			if r.IDs == nil {
				continue
			}
			m.IDs[i], m.Lengths[i] = r.IDs[:width], r.Length
			if !r.Supervised {
				m.RowWeights[i] = 1
			}
			fill(&m, i, r)
		}
		out = append(out, m)
	}
	return out
}

// weighed gives the tokens of a step's micro-batches their weights.
func weighed(out []batch.MicroBatch, rows []batch.Row, aggregation string, divisor float64) ([]batch.MicroBatch, error) {
	var err error
	if a := loss.Aggregation(aggregation); a == loss.TurnMean {
		err = batch.WeighByTurn(out, turnsOf(rows))
	} else {
		err = batch.Weigh(out, a, divisor)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	return out, nil
}

// turnsOf are the turns of the rows' tokens.
func turnsOf(rows []batch.Row) [][]int32 {
	var out [][]int32
	for _, r := range rows {
		out = append(out, r.Turns)
	}
	return out
}
