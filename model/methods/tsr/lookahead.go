package tsr

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/search"
)

// lookAhead says which rows of a turn are kept where a search takes the turn from which the best
// can be reached (TSR's lookahead, arXiv 2602.11767; search.Lookahead is the same on numbers). A search
// has a slot for each sequence of candidates of as many turns as it looks ahead: its leaves. Once
// they have so many turns, it keeps the leaves that share the oldest undecided turn with the best leaf, which
// is the first of equal ones; before, it keeps all. The result is that of choose.
func lookAhead(s search.Breadth, turns []episode.Turn, rows []episode.ChoiceRow, last bool) (over bool, err error) {
	at, turn := turns[len(turns)-1], len(turns)
	size := s.Slots()
	alive := func(row int) bool { return rows[row].Alive && !at.Step[row].Done }
	each := s.Apart(turn) // slots of a leaf
	over = true
	var best []int // the row of each search
	for from := 0; from < len(rows); from += size {
		top := from
		for row := from; row < from+size; row += each {
			if math.IsNaN(rows[row].Score) || math.IsInf(rows[row].Score, 0) {
				return false, fmt.Errorf("row %d has a score of %v: %w", row, rows[row].Score, store.ErrInvalid)
			}
			if rows[row].Score > rows[top].Score {
				top = row
			}
		}
		best = append(best, top)
		first, end := from, from+size
		if turn >= s.Depth { // the oldest undecided turn has as many leaves as it has candidates less
			of := size / s.Candidates
			first = from + (top-from)/of*of
			end = first + of
		}
		for row := first; row < end; row += each {
			rows[row].Kept = true
			over = over && !alive(row)
		}
	}
	if last || over {
		for i := range rows {
			rows[i].Kept = false
		}
		for i, row := range best {
			rows[row].Kept, rows[row].Next = true, []int32{int32(i)}
		}
		return over, nil
	}
	next := int32(0)
	for i := range rows {
		if !rows[i].Kept {
			continue
		}
		for range max(each, s.Candidates) {
			rows[i].Next = append(rows[i].Next, next)
			next++
		}
	}
	return over, nil
}
