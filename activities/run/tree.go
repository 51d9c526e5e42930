package run

import (
	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/model/draw"
)

// Chances are where the turns of a row draw what happens by chance, [turns+1]: those of history, and the
// next one. With fresh outcomes that is the address of the row that played the turn, with shared ones that of
// the tree's first leaf.
func (rc *Context) Chances(s *Task, branch int, r activities.Rollout, g episode.GenerateRow, history []episode.Turn) []draw.Address {
	of := func(member int) draw.Address { return rc.Address(s, branch, r, int(g.Group), member).Chance }
	var out []draw.Address
	for _, t := range history {
		member := int(g.Member)
		if s.Trees.Shared {
			member = s.Trees.Tree(member)
		} else if s.Trees.Branches > 0 {
			member = int(t.Slot(int(g.Row))) % s.Slots
		}
		out = append(out, of(member))
	}
	if s.Trees.Shared {
		return append(out, of(s.Trees.Tree(int(g.Member))))
	}
	return append(out, of(int(g.Member)))
}
