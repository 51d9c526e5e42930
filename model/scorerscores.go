package model

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/reprise-rl/reprise/model/batch"
)

// Score returns, at index t of each row, log p(ids[t] | ids[<t]) over the legal
// vocabulary at the temperature, and the entropy in nats of the distribution that
// ids[t] was drawn from. Both are 0 at t = 0 and from the row's length on. Rows are
// as long as the micro-batch is wide, in the batch's order.
//
// Update computes its log-probs with the same program, so with the parameters that
// scored a batch, every ratio is exactly 1.
func (s *Scorer) Score(ctx context.Context, st *State, b batch.MicroBatch, temperature float32) (logProbs, entropy [][]float32, err error) {
	out, err := s.ScoreAll(ctx, st, []batch.MicroBatch{b}, temperature)
	if err != nil {
		return nil, nil, err
	}
	return out[0].LogProbs, out[0].Entropies, nil
}

// Scores are what Score returns for a micro-batch.
type Scores struct {
	LogProbs, Entropies [][]float32 // [rows][width]
	// SumSquares, with Shapes.SumSquares, are Σp² of the distributions that the ids were drawn from: the chance
	// that a second draw is the same id. They are at the same places, and 0 where the others are.
	SumSquares [][]float32
}

// ScoreAll is Score for several micro-batches, which are dealt to the devices. The context is
// checked before each.
func (s *Scorer) ScoreAll(ctx context.Context, st *State, batches []batch.MicroBatch, temperature float32) ([]Scores, error) {
	if !(temperature > 0) || math.IsInf(float64(temperature), 0) {
		return nil, fmt.Errorf("score: %w: temperature %v", ErrInput, temperature)
	}
	got, err := s.scores(ctx, st, batches, false, temperature, 2)
	if err != nil {
		return nil, fmt.Errorf("score: %w", err)
	}
	out := make([]Scores, len(got))
	for i, of := range got {
		out[i] = Scores{LogProbs: of[0], Entropies: of[1]}
		if s.sh.SumSquares {
			out[i].SumSquares = of[2]
		}
	}
	return out, nil
}

// scores runs the forward program on micro-batches and returns its first count scores and the sums of
// squares, if it has them: [micro-batch][output][row][token]. critic reports whether the programs must be
// a critic's or a policy's.
func (s *Scorer) scores(
	ctx context.Context, st *State, batches []batch.MicroBatch, critic bool, temperature float32, count int,
) ([][][][]float32, error) {
	if err := s.checkCritic(critic); err != nil {
		return nil, err
	}
	on, ids := make([]*Scorer, len(batches)), make([][]int32, len(batches))
	for i, b := range batches {
		width, err := s.place(b)
		if err != nil {
			return nil, err
		}
		on[i] = s.widths[width]
		if ids[i], err = on[i].pack(b); err != nil {
			return nil, err
		}
	}
	s.device.run.Lock()
	defer s.device.run.Unlock()
	if err := s.check(st); err != nil {
		return nil, err
	}
	if err := s.spread(st, len(batches), s.tables()...); err != nil {
		return nil, err
	}
	out := make([][][][]float32, len(batches))
	return out, s.device.deal(len(batches), func(k, i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return try("forward", func() error {
			s := on[i].at(k)
			f, err := s.forward(st, ids[i], temperature)
			if err != nil {
				return err
			}
			defer f.free()
			for _, buffer := range slices.Concat(f.scores[:count], f.squares) {
				v, err := download[float32](buffer, s.sh.MicroBatch*s.sh.Sequence*s.perToken())
				if err != nil {
					return err
				}
				out[i] = append(out[i], s.unshift(v, batches[i]))
			}
			return nil
		})
	})
}
