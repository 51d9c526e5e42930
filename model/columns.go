package model

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/loss"
)

// column is an input of a loss with one number for each token.
type column struct {
	name string
	// values are [row][token]. If they are nil, every token has the value otherwise;
	// if required is set, nil is an error.
	values    [][]float32
	otherwise float32
	required  bool
	valid     func(float32) bool // nil: any number, finite or not
}

// Places of the columns that every loss reads; a loss's own come after them.
const (
	columnWeight = iota // in the loss
	columnMean          // in the means of the metrics; above 0 for tokens that are trained on
	columnOwn
)

func atLeastZero(v float32) bool { return v >= 0 && !math.IsInf(float64(v), 0) }

func upToOne(v float32) bool { return v >= 0 && v <= 1 }

// upTo accepts 1 to most.
func upTo(most int) func(float32) bool {
	return func(v float32) bool { return v >= 1 && v <= float32(most) }
}

// packed is a micro-batch in the layout that an update's programs read.
type packed struct {
	on  *Programs // of its width
	ids []int32
	// columns are [columns · MicroBatch · width · values]. The numbers of the token at t+1 are
	// stored at t, the position that predicts it.
	columns []float32
	tokens  int // that are trained on
}

// packAll checks the micro-batches of a minibatch and packs them with the columns that
// its loss reads. It also returns the number of tokens that are trained on.
func (p *Programs) packAll(batches []MicroBatch, own func(MicroBatch) []column) (out []packed, tokens int, err error) {
	var sum, shown float64 // of the tokens' row weights; of supervised tokens
	given, empty := 0, 0
	for i, b := range batches {
		x := packed{}
		if x.on, err = p.of(b); err == nil {
			x.ids, err = x.on.pack(b)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("micro-batch %d: %w", i, err)
		}
		if err := b.checkRows(); err != nil {
			return nil, 0, fmt.Errorf("micro-batch %d: %w", i, err)
		}
		if max(b.Values, 1) != p.perToken() && len(b.IDs) > 0 {
			return nil, 0, fmt.Errorf("micro-batch %d: %w: %d values a token, the head has %d", i, ErrInput, max(b.Values, 1), p.perToken())
		}
		if b.Mask == nil && len(b.IDs) > 0 {
			return nil, 0, fmt.Errorf("micro-batch %d: %w: no mask", i, ErrInput)
		}
		if len(b.IDs) == 0 {
			empty++
		} else if b.Weights != nil {
			given++
		}
		for r := range b.Mask {
			for t := range b.Mask[r] {
				if b.learns(r, t) {
					x.tokens++
					if b.shows(r, t) {
						shown += float64(b.rowWeight(r))
					} else {
						sum += float64(b.rowWeight(r))
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
		if means, err = weigh(batches, aggregated(loss.TokenMean, 0)); err != nil {
			return nil, 0, err
		}
	}
	weighs := false
	for i, b := range batches {
		weights := b.Weights
		if given == 0 {
			weights = means[i]
		}
		q := out[i].on
		if out[i].columns, err = q.lay(b, weights, sum, own(b)); err != nil {
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
func (p *Programs) lay(b MicroBatch, weights [][]float32, sum float64, own []column) ([]float32, error) {
	rows, each := p.sh.MicroBatch, p.perToken()
	width := p.sh.Sequence * each
	if err := b.checkWeights(weights); err != nil {
		return nil, err
	}
	all := append([]column{{name: "Weights", values: weights, valid: atLeastZero}, {name: "the mean"}}, own...)
	out := make([]float32, len(all)*rows*width)
	for i, c := range all {
		if c.values == nil && c.required && len(b.IDs) > 0 {
			return nil, fmt.Errorf("%w: no %s", ErrInput, c.name)
		}
		if c.values != nil && len(c.values) != len(b.IDs) {
			return nil, fmt.Errorf("%w: %s has %d rows, IDs %d", ErrInput, c.name, len(c.values), len(b.IDs))
		}
		to := out[i*rows*width:]
		for r := range b.Mask {
			for t := range b.Mask[r] {
				if !b.learns(r, t) {
					continue
				}
				v := c.otherwise
				switch {
				case i == columnMean:
					v = float32(float64(b.rowWeight(r)) / sum)
				case c.values != nil && t >= len(c.values[r]):
					return nil, fmt.Errorf("%w: %s has %d tokens in row %d, and none for the mask at %d", ErrInput, c.name, len(c.values[r]), r, t)
				case c.values != nil:
					v = c.values[r][t]
				}
				if c.valid != nil && !c.valid(v) {
					return nil, fmt.Errorf("%w: %s is %v at row %d, token %d", ErrInput, c.name, v, r, t)
				}
				to[r*width+t-each] = v
			}
		}
	}
	return out, nil
}

// checkWeights returns an error if a token that is not trained on has a weight.
func (b MicroBatch) checkWeights(weights [][]float32) error {
	if len(weights) != len(b.IDs) {
		return fmt.Errorf("%w: Weights has %d rows, IDs %d", ErrInput, len(weights), len(b.IDs))
	}
	for r := range weights {
		for t, w := range weights[r] {
			if w != 0 && (t >= len(b.Mask[r]) || !b.learns(r, t)) {
				return fmt.Errorf("%w: row %d has a weight of %v at %d, which is not learnt from", ErrInput, r, w, t)
			}
		}
	}
	return nil
}
