package spec

import "cmp"

// The ways in which a rollout searches (TSR, arXiv 2602.11767).
const (
	// BeamSearch keeps the best prefixes after each turn, by the sum of their rewards.
	BeamSearch = "beam"
	// GreedySearch is BeamSearch with one prefix, as in the method's public code.
	GreedySearch = "greedy"
	// BestOfN keeps the best of whole trajectories.
	BestOfN = "best_of_n"
)

// The defaults of a search: the method's own.
const (
	defaultBeam       = 2
	defaultCandidates = 4
)

// Search is how a rollout searches.
type Search struct {
	// Width is how many prefixes a search keeps, Candidates how many continue each of them.
	Width, Candidates int
	// Whole says that nothing is chosen before the trajectories are whole.
	Whole bool
}

// SearchOf is how a rollout searches. Without a search each prefix has the one candidate that
// continues it.
func (r Rollout) SearchOf() Search {
	switch r.Search {
	case BeamSearch:
		return Search{Width: cmp.Or(r.Beam, defaultBeam), Candidates: cmp.Or(r.Candidates, defaultCandidates)}
	case GreedySearch:
		return Search{Width: 1, Candidates: cmp.Or(r.Candidates, defaultCandidates)}
	case BestOfN:
		return Search{Width: 1, Candidates: cmp.Or(r.Candidates, defaultCandidates), Whole: true}
	}
	return Search{Width: 1, Candidates: 1}
}

// GroupSlots are the rows that a group generates in a turn: its members' candidates.
func (r Rollout) GroupSlots() int { return r.GroupSize * r.SearchOf().Candidates }

// Slots are the rows that a rollout generates in a turn. Every row that can exist has its number
// before the rollout begins.
func (r Rollout) Slots() int { return r.Groups * r.GroupSlots() }
