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
	p := &Scorer{core: c}
	p.widths = []*Scorer{p}
	return p
}

// uploadTables uploads the rotary tables. The caller holds run.
func (p *Scorer) uploadTables() error {
	if p.sh.MicroBatch == 0 {
		return nil
	}
	return p.uploadRope(&p.rope, p.sh.Sequence)
}

// tables are what the programs of micro-batches of all widths read besides weights and rows.
func (p *Scorer) tables() (out []*tables) {
	for _, q := range p.widths {
		out = append(out, &q.legal, &q.rope)
	}
	return out
}

// at is the scorer as it runs on device k, on which spread has been.
func (p *Scorer) at(k int) *Scorer {
	q := *p
	q.core = p.core.at(k)
	return &q
}

// free frees what the scorer's program reads. The caller holds run.
func (p *Scorer) free() { p.rope.free() }

// place is the place among the widths of the one that b has.
func (p *Scorer) place(b batch.MicroBatch) (int, error) {
	for i, q := range p.widths {
		if b.Width == 0 || b.Width == q.sh.Sequence {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: a micro-batch of width %d, the programs are for %d and %v", ErrInput, b.Width, p.sh.Sequence, p.sh.Narrower)
}
