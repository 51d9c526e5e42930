package search

// Breadth is how many continuations a rollout tries, of which it keeps the best.
type Breadth struct {
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
func (s Breadth) Slots() int {
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
func (s Breadth) Apart(turn int) int {
	slots := s.Slots()
	for range min(turn, s.Depth) {
		slots /= s.Candidates
	}
	if s.Depth == 0 {
		return 1
	}
	return slots
}
