package model

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/batch"
)

// pack checks a micro-batch's ids and returns them as [MicroBatch·Sequence].
func (s *Scorer) pack(b batch.MicroBatch) ([]int32, error) {
	rows, width := s.sh.MicroBatch, s.sh.Sequence
	bad := func(format string, args ...any) ([]int32, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrInput}, args...)...)
	}
	if _, err := s.program(kindForward); err != nil {
		return nil, err
	}
	if len(b.IDs) > rows {
		return bad("%d rows, a micro-batch has %d", len(b.IDs), rows)
	}
	if len(b.Lengths) != len(b.IDs) {
		return bad("%d lengths for %d rows", len(b.Lengths), len(b.IDs))
	}
	out := make([]int32, rows*width)
	for r, ids := range b.IDs {
		length := int(b.Lengths[r])
		if len(ids) > width || length < 0 || length > len(ids) {
			return bad("row %d has length %d of %d ids, the width is %d", r, length, len(ids), width)
		}
		for t, id := range ids {
			if id < 0 || int(id) >= s.c.VocabSize {
				return bad("row %d has id %d at %d, the vocabulary has %d", r, id, t, s.c.VocabSize)
			}
			out[r*width+t] = id
		}
	}
	return out, nil
}

// unshift returns v by row, with the number of position t moved to token t+1, which
// position t predicts.
func (s *Scorer) unshift(v []float32, b batch.MicroBatch) [][]float32 {
	each := s.perToken()
	width := s.sh.Sequence * each
	out := make([][]float32, len(b.IDs))
	for r := range out {
		out[r] = make([]float32, width)
		for t := each; t < int(b.Lengths[r])*each; t++ {
			out[r][t] = v[r*width+t-each]
		}
	}
	return out
}
