package batch

import (
	"errors"
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/loss"
)

// ErrInput marks rows or numbers that do not fit.
var ErrInput = errors.New("bad input")

// MicroBatch holds rows for Score, Values and the updates. Slices are indexed
// [row][token]. A row may be shorter than the width, and a batch may have fewer
// rows than Shapes.MicroBatch: both are padded, which changes no row's bits.
type MicroBatch struct {
	// Width is that of the rows: Shapes.Sequence, which 0 stands for, or one of
	// Shapes.Narrower. It decides the rows' bits.
	Width int
	// IDs are token ids, padded on the right with any id of the vocabulary.
	IDs [][]int32
	// Lengths are the numbers of tokens without padding; a row of length 0 is padding.
	Lengths []int32
	// Mask is true at the tokens that were sampled and are trained on. It must be false
	// at index 0 and from the row's length on. Score and Values ignore it.
	Mask [][]bool
	// Values is how many numbers each token has in Mask and in the columns that say so (About), one after the
	// other: those of the critic's head (Config.Values). 0 is one.
	Values int
	// RowWeights, at least 0, multiply the rows in Weigh's sums and in the means of
	// the metrics. Rows of weight 0 are not read. Nil means 1 for every row.
	RowWeights []float32
	// Columns are what a loss reads of the tokens, where Mask is true and the row has a weight. A loss
	// reads those that it declares, and no others. Weights are 0 for tokens that are not trained on; if
	// they are nil in all micro-batches of an update, the loss is the mean over its tokens (loss.TokenMean).
	Columns Columns
}

// Weigh sets Weights of a minibatch, given as all of its micro-batches, from their
// masks and row weights. They are loss.Weights over all rows together, rounded to
// float32. Only loss.Constant reads divisor.
func Weigh(batches []MicroBatch, a loss.Aggregation, divisor float64) error {
	return setWeights(batches, aggregated(a, divisor))
}

// WeighByTurn is Weigh with loss.BlockWeights (loss.TurnMean). turns are those of the tokens of all
// rows that are not padding at the minibatch's end, [rows][tokens], from 1.
func WeighByTurn(batches []MicroBatch, turns [][]int32) error {
	return setWeights(batches, func(mask [][]bool, rows []float64) ([][]float64, error) {
		all := make([][]int32, len(mask))
		for r := range mask {
			if all[r] = make([]int32, len(mask[r])); r < len(turns) {
				copy(all[r], turns[r])
			}
		}
		return loss.BlockWeights(mask, all, rows)
	})
}

// weighing gives the weights of a minibatch's tokens, [rows][tokens], for the masks and the
// weights of its rows.
type weighing func(mask [][]bool, rows []float64) ([][]float64, error)

// aggregated is the weighing of an aggregation.
func aggregated(a loss.Aggregation, divisor float64) weighing {
	return func(mask [][]bool, rows []float64) ([][]float64, error) { return loss.Weights(mask, rows, a, divisor) }
}

// Means are the weights of the mean over all tokens of a minibatch (loss.TokenMean), [micro-batches][rows][tokens].
func Means(batches []MicroBatch) ([][][]float32, error) {
	return weigh(batches, aggregated(loss.TokenMean, 0))
}

func setWeights(batches []MicroBatch, of weighing) error {
	weights, err := weigh(batches, of)
	if err != nil {
		return fmt.Errorf("weigh minibatch: %w", err)
	}
	for i := range batches {
		batches[i].Columns[Weights] = weights[i]
	}
	return nil
}

func weigh(batches []MicroBatch, of weighing) ([][][]float32, error) {
	var masks [][]bool
	var rows []float64
	for i, b := range batches {
		if err := b.Check(); err != nil {
			return nil, fmt.Errorf("micro-batch %d: %w", i, err)
		}
		for r := range b.IDs {
			if b.Mask == nil {
				masks = append(masks, nil)
			} else {
				masks = append(masks, b.Mask[r])
			}
			rows = append(rows, float64(b.RowWeight(r)))
		}
	}
	all, err := of(masks, rows)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	out := make([][][]float32, len(batches))
	for i, b := range batches {
		out[i] = make([][]float32, len(b.IDs))
		for r := range out[i] {
			out[i][r] = make([]float32, len(all[r]))
			for t, w := range all[r] {
				out[i][r][t] = float32(w)
			}
		}
		all = all[len(b.IDs):]
	}
	return out, nil
}

// Put gives row r the numbers of a column.
func (b *MicroBatch) Put(c Column, r int, numbers []float32) {
	if b.Columns[c] == nil {
		b.Columns[c] = make([][]float32, len(b.IDs))
	}
	b.Columns[c][r] = numbers
}

// RowWeight is the weight of row r.
func (b MicroBatch) RowWeight(r int) float32 {
	if b.RowWeights == nil {
		return 1
	}
	return b.RowWeights[r]
}

// Shows reports whether the token at t of row r is learned from by its log-likelihood.
func (b MicroBatch) Shows(r, t int) bool {
	marks := b.Columns[Supervised]
	return marks != nil && marks[r] != nil && marks[r][t] == 1
}

// Learns reports whether the token at t of row r is trained on.
func (b MicroBatch) Learns(r, t int) bool { return b.Mask[r][t] && b.RowWeight(r) > 0 }

// Check returns an error if the batch's fields have different numbers of rows, or if
// a mask or a row weight is invalid.
func (b MicroBatch) Check() error {
	if len(b.Lengths) != len(b.IDs) {
		return fmt.Errorf("%w: %d lengths for %d rows", ErrInput, len(b.Lengths), len(b.IDs))
	}
	if b.Mask != nil && len(b.Mask) != len(b.IDs) {
		return fmt.Errorf("%w: Mask has %d rows, IDs %d", ErrInput, len(b.Mask), len(b.IDs))
	}
	if b.RowWeights != nil && len(b.RowWeights) != len(b.IDs) {
		return fmt.Errorf("%w: %d row weights for %d rows", ErrInput, len(b.RowWeights), len(b.IDs))
	}
	for r, w := range b.RowWeights {
		if !(w >= 0) || math.IsInf(float64(w), 0) {
			return fmt.Errorf("%w: the weight of row %d is %v", ErrInput, r, w)
		}
	}
	for r := range b.Mask {
		for t, yes := range b.Mask[r] {
			if at := t / max(b.Values, 1); yes && (at == 0 || at >= int(b.Lengths[r])) {
				return fmt.Errorf("%w: row %d of length %d has a mask at %d", ErrInput, r, b.Lengths[r], at)
			}
		}
	}
	return nil
}
