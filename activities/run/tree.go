package run

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Forks draws where the rows of a wave begin, from 1: each at a place of its own tree, as far as
// it has grown in turns. address is that of a group; a row draws by its member.
func Forks(t spec.Trees, wave int, turns []episode.Turn, address func(group int) draw.Address) ([]episode.ForkRow, error) {
	rows, size := len(turns[0].Generate), t.Leaves()
	if wave < 1 || wave > t.Expansions || rows%size != 0 {
		return nil, fmt.Errorf("wave %d of %d for %d rows in groups of %d: %w", wave, t.Expansions, rows, size, store.ErrInvalid)
	}
	var out []episode.ForkRow
	for group := range rows / size {
		for member := range size {
			if t.Wave(member) != wave {
				continue
			}
			var leaves []search.Leaf
			var of []int32
			for other := range member {
				if t.Tree(other) == t.Tree(member) && t.Wave(other) < wave {
					row := group*size + other
					leaves, of = append(leaves, episode.LeafOf(turns, row)), append(of, int32(row))
				}
			}
			places, err := search.Places(leaves)
			if err != nil {
				return nil, fmt.Errorf("tree %d of group %d: %w: %w", t.Tree(member), group, err, store.ErrInvalid)
			}
			a := address(group)
			a.Member, a.Turn = int64(member), int64(wave)
			u := a.Rand().Float64()
			place, err := search.Among(places, u)
			if err != nil {
				return nil, err
			}
			out = append(out, episode.ForkRow{
				Row: int32(group*size + member), Group: int32(group), Member: int32(member),
				Parent: of[place.Leaf], Turn: int32(place.Turns), Places: int32(len(places)), Draw: u,
			})
		}
	}
	return out, nil
}

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
