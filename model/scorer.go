package model

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/batch"
)

// Scorer scores micro-batches with a policy, or gives them the values of a critic. It has the programs
// of Shapes.MicroBatch that go forward.
type Scorer struct {
	*core
	rope tables // of the tokens of a row
	// widths are the scorers of micro-batches, by width: it itself, and those of Shapes.Narrower.
	widths []*Scorer
}

func newScorer(c *core) *Scorer {
	s := &Scorer{core: c}
	s.widths = []*Scorer{s}
	return s
}

// uploadTables uploads the rotary tables. The caller holds run.
func (s *Scorer) uploadTables() error {
	if s.sh.MicroBatch == 0 {
		return nil
	}
	return s.uploadRope(&s.rope, s.sh.Sequence)
}

// tables are what the programs of micro-batches of all widths read besides weights and rows.
func (s *Scorer) tables() (out []*tables) {
	for _, q := range s.widths {
		out = append(out, &q.legal, &q.rope)
	}
	return out
}

// at is the scorer as it runs on device k, on which spread has been.
func (s *Scorer) at(k int) *Scorer {
	q := *s
	q.core = s.core.at(k)
	return &q
}

// free frees what the scorer's program reads. The caller holds run.
func (s *Scorer) free() { s.rope.free() }

// place is the place among the widths of the one that b has.
func (s *Scorer) place(b batch.MicroBatch) (int, error) {
	for i, q := range s.widths {
		if b.Width == 0 || b.Width == q.sh.Sequence {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: a micro-batch of width %d, the programs are for %d and %v", ErrInput, b.Width, s.sh.Sequence, s.sh.Narrower)
}
