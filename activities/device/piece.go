package device

import (
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
)

// piece is a range of a step's rows, which one activity does: the step's pieces are cut by
// the spec alone (spec.Limits), so that each try and each worker cuts them the same.
type piece struct {
	number   int // from 0
	from, to int
	more     bool // another follows
}

// pieceOf is the piece after so many that are done, of all rows cut into pieces of size
// rows; size 0 is all rows in one.
func pieceOf(rows, size, done int) (piece, error) {
	if size <= 0 {
		size = rows
	}
	p := piece{number: done, from: min(done*size, rows), to: min((done+1)*size, rows)}
	p.more = p.to < rows
	if done > 0 && p.from >= rows {
		return p, fmt.Errorf("%d pieces of %d rows are done, and there are %d rows: none is left: %w", done, size, rows, store.ErrInvalid)
	}
	return p, nil
}

// name is the name of the piece's table, after the name of the whole.
func (p piece) name(whole string) string { return fmt.Sprintf("%s.piece-%d", whole, p.number+1) }
