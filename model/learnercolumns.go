package model

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/net/losses"
)

// read is a column that a loss reads, one number for each token.
type read struct {
	of batch.Column
	// Tokens of a micro-batch or of a row without the column have the number otherwise; if required is set,
	// that is an error.
	otherwise float32
	required  bool
	most      float32 // the largest valid number, if above 0
	unused    bool    // the step does not use it: it is 0 everywhere
}

// everyLoss is how many columns every loss has: weight and share.
const everyLoss = 2

// columns declares the input with the columns of a loss, [everyLoss + reads, n].
func (in *inputs) columns(dtype dtypes.DType, reads []batch.Column, n int) losses.Columns {
	all := in.next(dtype, everyLoss+len(reads), n)
	at := func(i int) *graph.Node { return graph.Reshape(graph.Slice(all, graph.AxisRange(i, i+1)), n) }
	out := losses.Columns{Weight: at(0), Share: at(1), Own: map[batch.Column]*graph.Node{}}
	for i, c := range reads {
		out.Own[c] = at(everyLoss + i)
	}
	return out
}

// packed is a micro-batch in the layout that an update's programs read.
type packed struct {
	on  *Learner // of its width
	ids []int32
	// columns are [(everyLoss + reads) · MicroBatch · width · values]. The numbers of the token at t+1 are
	// stored at t, the position that predicts it.
	columns []float32
	tokens  int // that are trained on
}

// packAll checks the micro-batches of a minibatch and packs them with the columns that
// its loss reads. It also returns the number of tokens that are trained on.
func (l *Learner) packAll(batches []batch.MicroBatch, reads []read) (out []packed, tokens int, err error) {
	var sum, shown float64 // of the tokens' row weights; of supervised tokens
	given, empty := 0, 0
	for i, b := range batches {
		x := packed{}
		if x.on, err = l.of(b); err == nil {
			x.ids, err = x.on.scorer.pack(b)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("micro-batch %d: %w", i, err)
		}
		if err := b.Check(); err != nil {
			return nil, 0, fmt.Errorf("micro-batch %d: %w", i, err)
		}
		if max(b.Values, 1) != l.perToken() && len(b.IDs) > 0 {
			return nil, 0, fmt.Errorf("micro-batch %d: %w: %d values a token, the head has %d", i, ErrInput, max(b.Values, 1), l.perToken())
		}
		if b.Mask == nil && len(b.IDs) > 0 {
			return nil, 0, fmt.Errorf("micro-batch %d: %w: no mask", i, ErrInput)
		}
		if len(b.IDs) == 0 {
			empty++
		} else if b.Columns[batch.Weights] != nil {
			given++
		}
		for r := range b.Mask {
			for t := range b.Mask[r] {
				if b.Learns(r, t) {
					x.tokens++
					if b.Shows(r, t) {
						shown += float64(b.RowWeight(r))
					} else {
						sum += float64(b.RowWeight(r))
					}
				}
			}
		}
		tokens += x.tokens
		out = append(out, x)
	}
	if tokens == 0 {
		return nil, 0, fmt.Errorf("%w: no token has a weight", ErrInput)
	}
	if sum == 0 {
		sum = shown // no mean is of these tokens, but the numbers must be finite
	}
	if given != 0 && given != len(batches)-empty {
		return nil, 0, fmt.Errorf("%w: %d of %d micro-batches have weights", ErrInput, given, len(batches)-empty)
	}
	var means [][][]float32
	if given == 0 {
		if means, err = batch.Means(batches); err != nil {
			return nil, 0, err
		}
	}
	weighs := false
	for i, b := range batches {
		if given == 0 {
			b.Columns[batch.Weights] = means[i]
		}
		q := out[i].on
		if out[i].columns, err = q.lay(b, sum, reads); err != nil {
			return nil, 0, fmt.Errorf("micro-batch %d: %w", i, err)
		}
		for _, w := range out[i].columns[:q.sh.MicroBatch*q.sh.Sequence*q.perToken()] {
			weighs = weighs || w != 0
		}
	}
	if !weighs {
		return nil, 0, fmt.Errorf("%w: no token has a weight", ErrInput)
	}
	return out, tokens, nil
}

// lay returns the columns of a micro-batch in the layout of packed. sum is the sum of the
// row weights over the tokens of the minibatch.
func (l *Learner) lay(b batch.MicroBatch, sum float64, reads []read) ([]float32, error) {
	rows, each := l.sh.MicroBatch, l.perToken()
	width := l.sh.Sequence * each
	if err := checkWeights(b); err != nil {
		return nil, err
	}
	out := make([]float32, (everyLoss+len(reads))*rows*width)
	column := func(i int, of func(r, t int) (float32, error)) error {
		to := out[i*rows*width:]
		for r := range b.Mask {
			for t := range b.Mask[r] {
				if !b.Learns(r, t) {
					continue
				}
				v, err := of(r, t)
				if err != nil {
					return err
				}
				to[r*width+t-each] = v
			}
		}
		return nil
	}
	weight, err := reader(b, read{of: batch.Weights})
	if err == nil {
		err = column(0, weight)
	}
	if err == nil {
		err = column(1, func(r, _ int) (float32, error) { return float32(float64(b.RowWeight(r)) / sum), nil })
	}
	for i, of := range reads {
		if err != nil {
			return nil, err
		}
		if of.unused {
			continue
		}
		var number func(r, t int) (float32, error)
		if number, err = reader(b, of); err == nil {
			err = column(everyLoss+i, number)
		}
	}
	return out, err
}

// reader gives the numbers of a column that a loss reads.
func reader(b batch.MicroBatch, of read) (func(r, t int) (float32, error), error) {
	values, about := b.Columns[of.of], of.of.About()
	if values == nil && of.required && len(b.IDs) > 0 {
		return nil, fmt.Errorf("%w: no %s", ErrInput, about.Name)
	}
	if values != nil && len(values) != len(b.IDs) {
		return nil, fmt.Errorf("%w: %s has %d rows, there are %d", ErrInput, about.Name, len(values), len(b.IDs))
	}
	return func(r, t int) (float32, error) {
		v := of.otherwise
		if values != nil && (values[r] != nil || of.required) {
			if t >= len(values[r]) {
				return 0, fmt.Errorf("%w: %s has %d tokens in row %d, and none for the mask at %d", ErrInput, about.Name, len(values[r]), r, t)
			}
			v = values[r][t]
		}
		if about.Valid != nil && !about.Valid(v) || of.most > 0 && v > of.most {
			return 0, fmt.Errorf("%w: %s is %v at row %d, token %d", ErrInput, about.Name, v, r, t)
		}
		return v, nil
	}, nil
}

// checkWeights returns an error if a token that is not trained on has a weight.
func checkWeights(b batch.MicroBatch) error {
	weights := b.Columns[batch.Weights]
	if len(weights) != len(b.IDs) {
		return fmt.Errorf("%w: weights has %d rows, there are %d", ErrInput, len(weights), len(b.IDs))
	}
	for r := range weights {
		for t, w := range weights[r] {
			if w != 0 && (t >= len(b.Mask[r]) || !b.Learns(r, t)) {
				return fmt.Errorf("%w: row %d has a weight of %v at %d, which is not learnt from", ErrInput, r, w, t)
			}
		}
	}
	return nil
}
