package spec

import "cmp"

// The ways in which a rollout searches (TSR, arXiv 2602.11767).
const (
	// BeamSearch keeps the best prefixes after each turn, by the sum of their rewards.
	BeamSearch = "beam"
	// GreedySearch is BeamSearch with one prefix, as in the method's public code.
	GreedySearch = "greedy"
	// LookaheadSearch takes the turn from which the best can be reached in the next turns.
	LookaheadSearch = "lookahead"
	// BestOfN keeps the best of whole trajectories.
	BestOfN = "best_of_n"
)

// The defaults of a search: the method's own.
const (
	defaultBeam       = 2
	defaultCandidates = 4
	defaultDepth      = 2
)

// Search is how a rollout searches.
type Search struct {
	// Width is how many prefixes a search keeps, Candidates how many continue each of them.
	Width, Candidates int
	// Whole says that nothing is chosen before the trajectories are whole.
	Whole bool
	// Depth is how many turns a search looks ahead; 0 if it does not.
	Depth int
}

// manySlots is more slots than any rollout may have.
const manySlots = 1 << 30

// Slots are the rows in which a search generates: the candidates of each prefix or, where it looks
// ahead, the sequences of candidates of so many turns.
func (s Search) Slots() int {
	if s.Depth == 0 {
		return s.Width * s.Candidates
	}
	slots := 1
	for range s.Depth {
		slots = min(slots*s.Candidates, manySlots)
	}
	return slots
}

// Apart is how many slots lie between two that sample in a turn, from 1. Where a search looks ahead,
// its first turns have fewer different beginnings than slots.
func (s Search) Apart(turn int) int {
	slots := s.Slots()
	for range min(turn, s.Depth) {
		slots /= s.Candidates
	}
	if s.Depth == 0 {
		return 1
	}
	return slots
}

// SearchOf is how a rollout searches. Without a search each prefix has the one candidate that
// continues it.
func (r Rollout) SearchOf() Search {
	switch r.Search {
	case BeamSearch:
		return Search{Width: cmp.Or(r.Beam, defaultBeam), Candidates: cmp.Or(r.Candidates, defaultCandidates)}
	case GreedySearch:
		return Search{Width: 1, Candidates: cmp.Or(r.Candidates, defaultCandidates)}
	case LookaheadSearch:
		return Search{Width: 1, Candidates: cmp.Or(r.Candidates, defaultCandidates), Depth: cmp.Or(r.Depth, defaultDepth)}
	case BestOfN:
		return Search{Width: 1, Candidates: cmp.Or(r.Candidates, defaultCandidates), Whole: true}
	}
	return Search{Width: 1, Candidates: 1}
}

// GroupSlots are the rows that a group generates in a turn: its members' candidates.
func (r Rollout) GroupSlots() int {
	s := r.SearchOf()
	return r.GroupSize * (s.Slots() / s.Width)
}

// Slots are the rows that a rollout generates in a turn. Every row that can exist has its number
// before the rollout begins.
func (r Rollout) Slots() int { return r.Groups * r.GroupSlots() }
