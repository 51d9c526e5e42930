package tsr

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/search"
)

// choose says which rows of a turn are kept, and which rows continue them. turns are those up to it.
// A group's slots are its searches, one after the other; a search's are its prefixes, and a prefix's
// its candidates. Those that are kept stay in the order of their slots, so that with one
// candidate nothing moves. last says that no turn follows; then each that is kept is a trajectory.
// All slots of a search sample its first turn, where the paper begins with one prefix and its candidates. The
// paper does not say how often a turn that kept rows share is learned from: here once. For FrozenLake it scores by a
// heuristic of risk.
// over reports whether all that are kept have ended.
func choose(s search.Breadth, slots int, turns []episode.Turn, last bool) (rows []episode.ChoiceRow, over bool, err error) {
	at := turns[len(turns)-1]
	size := s.Slots()
	if slots%size != 0 || len(at.Generate)%slots != 0 {
		return nil, false, fmt.Errorf("%d rows in groups of %d, a search has %d: %w", len(at.Generate), slots, size, store.ErrInvalid)
	}
	over = true
	for i, g := range at.Generate {
		rows = append(rows, episode.ChoiceRow{Row: g.Row, Group: g.Group, Member: g.Member, Alive: g.Alive, Score: episode.ScoreOf(turns, i)})
	}
	if s.Depth > 0 {
		over, err = lookAhead(s, turns, rows, last)
		return rows, over, err
	}
	for from := 0; from < len(rows); from += size {
		beam, rewards := make([]search.Prefix, s.Width), make([][]float64, s.Width)
		for i := range s.Width {
			first := from + i*s.Candidates
			beam[i].Path = []int{i}
			if !s.Whole && !rows[first].Alive { // it ended before, so its other slots repeat it
				beam[i].Score = rows[first].Score
				continue
			}
			for j := range s.Candidates {
				rewards[i] = append(rewards[i], rows[first+j].Score)
			}
		}
		best, err := search.Widen(beam, rewards, s.Width)
		if err != nil {
			return nil, false, fmt.Errorf("search of row %d: %w: %w", from, err, store.ErrInvalid)
		}
		for _, prefix := range best {
			slot := from + prefix.Path[0]*s.Candidates
			if len(prefix.Path) > 1 {
				slot += prefix.Path[1]
			}
			rows[slot].Kept = true
			over = over && (!rows[slot].Alive || at.Step[slot].Done)
		}
	}
	each := s.Candidates
	if last || over {
		each = 1
	}
	next := int32(0)
	for i := range rows {
		for range each {
			if rows[i].Kept {
				rows[i].Next = append(rows[i].Next, next)
				next++
			}
		}
	}
	return rows, over, nil
}
