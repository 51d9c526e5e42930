package run

import (
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
//	creditInput     returns, turns, groups [trajectories]: what credit takes
//	   │ trainingSignal
//	trainingSignal  advantages, returns [trajectories][sampled tokens]
//	   │ batchRows  a stretch, its old log-probs and its signal at its tokens
//	batchRow        [width]; encoded, the rows are batch.safetensors
//	   │ minibatch  the rows of one optimizer step, weighed and clipped
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
func emptyMicroBatch(b, width int) batch.MicroBatch {
	m := batch.MicroBatch{Lengths: make([]int32, b), RowWeights: make([]float32, b)}
	for range b {
		m.IDs = append(m.IDs, make([]int32, width))
		m.Mask = append(m.Mask, make([]bool, width))
		m.Columns[batch.OldLogProbs] = append(m.Columns[batch.OldLogProbs], make([]float32, width))
		m.Columns[batch.Advantages] = append(m.Columns[batch.Advantages], make([]float32, width))
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

// Minibatch lays rows out in micro-batches, in their order (Arrange), with the weights and bounds
// of the policy's optimizer step. Supervised rows have the weight 0 in it; see Imitate.
func Minibatch(rows []BatchRow, sh model.Shapes, u spec.Update, divisor float64) ([]batch.MicroBatch, error) {
	out := laidOut(rows, sh, func(m *batch.MicroBatch) {
		b := sh.MicroBatch
		if len(u.ClipTurns) > 0 {
			m.Columns[batch.ClipLow], m.Columns[batch.ClipHigh] = zeros(b, m.Width), zeros(b, m.Width)
		}
		if loss.Ratio(u.Ratio) == loss.TurnRatio {
			m.Columns[batch.Turns] = make([][]float32, b)
		}
		if rows[0].Reference != nil {
			m.Columns[batch.RefLogProbs] = make([][]float32, b)
		}
		if u.KLFirstTurn > 0 {
			m.Columns[batch.KLCoefficients] = zeros(b, m.Width)
		}
	}, func(m *batch.MicroBatch, i int, r BatchRow) {
		m.Mask[i], m.Columns[batch.OldLogProbs][i], m.Columns[batch.Advantages][i] = r.Mask[:m.Width], r.Old, r.Advantages
		if m.Columns[batch.RefLogProbs] != nil {
			m.Columns[batch.RefLogProbs][i] = r.Reference
		}
		if m.Columns[batch.Turns] != nil {
			m.Columns[batch.Turns][i] = batch.Numbers(r.Turns)
		}
		for t, turn := range r.Turns[:m.Width] {
			if m.Columns[batch.ClipLow] != nil && r.Mask[t] {
				c := u.Clip(int(turn))
				m.Columns[batch.ClipLow][i][t], m.Columns[batch.ClipHigh][i][t] = float32(c.Low), float32(c.High)
			}
			if m.Columns[batch.KLCoefficients] != nil && r.Mask[t] {
				m.Columns[batch.KLCoefficients][i][t] = float32(u.KL(int(turn)))
			}
		}
	})
	return weighed(out, rows, u.Aggregation, divisor)
}

// CriticMinibatch is Minibatch for a critic with so many values for each token. It learns the
// returns where the row's Learns is true, or else where its Mask is. With several values, the loss
// is the mean over all numbers that are learned (loss.TokenMean), whatever the policy's aggregation.
func CriticMinibatch(rows []BatchRow, sh model.Shapes, u spec.Update, divisor float64, values int) ([]batch.MicroBatch, error) {
	out := laidOut(rows, sh, func(m *batch.MicroBatch) {
		m.Columns[batch.Returns], m.Columns[batch.OldValues] = make([][]float32, sh.MicroBatch), make([][]float32, sh.MicroBatch)
		if values > 1 {
			m.Values = values
			for i := range m.Mask {
				m.Mask[i] = make([]bool, values*m.Width)
			}
		}
	}, func(m *batch.MicroBatch, i int, r BatchRow) {
		learns := r.Mask
		if r.Learns != nil {
			learns = r.Learns
		}
		m.Mask[i], m.Columns[batch.Returns][i], m.Columns[batch.OldValues][i] = learns[:values*m.Width], r.Returns, r.OldValues
	})
	if values > 1 {
		return weighed(out, rows, string(loss.TokenMean), 0)
	}
	return weighed(out, rows, u.Aggregation, divisor)
}

// laidOut lays the ids of rows out in micro-batches, in their order, with the weight 1, or 0 for
// supervised rows. begin adds what the loss needs
// to a micro-batch of padding, and fill writes a row that is not padding.
func laidOut(rows []BatchRow, sh model.Shapes, begin func(*batch.MicroBatch), fill func(m *batch.MicroBatch, i int, r BatchRow)) []batch.MicroBatch {
	var out []batch.MicroBatch
	for at := 0; at < len(rows); at += sh.MicroBatch {
		width := widthOf(sh, int(rows[at].Length))
		m := emptyMicroBatch(sh.MicroBatch, width)
		m.Width = width
		begin(&m)
		for i, r := range rows[at:min(at+sh.MicroBatch, len(rows))] {
			if r.Ids == nil {
				continue
			}
			m.IDs[i], m.Lengths[i] = r.Ids[:width], r.Length
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
func weighed(out []batch.MicroBatch, rows []BatchRow, aggregation string, divisor float64) ([]batch.MicroBatch, error) {
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

// zeros are rows of width zeros each.
func zeros(rows, width int) [][]float32 {
	out := make([][]float32, rows)
	for i := range out {
		out[i] = make([]float32, width)
	}
	return out
}

// turnsOf are the turns of the rows' tokens.
func turnsOf(rows []BatchRow) [][]int32 {
	var out [][]int32
	for _, r := range rows {
		out = append(out, r.Turns)
	}
	return out
}
