package run

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// firstTokens is how many of a turn's first sampled tokens say how certain the policy was (ARPO).
const firstTokens = 20

// UncertainForks draws after which turns of the trajectories from the root branches begin: rather
// where the policy had become less certain than in the trajectory's first turn (ARPO, arXiv
// 2507.19849). A turn that another one follows is asked Branches times, in the order of turns, then of
// members, until the group has all its rows. Rows that are left begin anew. vocabulary is how many ids
// there are. address is that of a group; a trajectory draws by its member, a turn and a number.
//
// The authors' code reads the ten largest log-probs of each token; this reads those of the sampled
// ones, whose mean is the entropy. There, branches branch too.
func UncertainForks(t spec.Trees, vocabulary int, turns []episode.Turn, address func(group int) draw.Address) ([]episode.ForkRow, error) {
	rows, size := len(turns[0].Generate), t.Leaves()
	if rows%size != 0 || vocabulary < 2 {
		return nil, fmt.Errorf("branches of %d rows in groups of %d, with %d ids: %w", rows, size, vocabulary, store.ErrInvalid)
	}
	var out []episode.ForkRow
	for group := range rows / size {
		first, next := group*size, t.Trees // the next member without a beginning
		begin := func(f episode.ForkRow) {
			f.Row, f.Group, f.Member = int32(first+next), int32(group), int32(next)
			out, next = append(out, f), next+1
		}
		for turn := 1; turn < len(turns); turn++ {
			var asked []search.Uncertainty
			var of []episode.ForkRow
			for tree := range t.Trees {
				row := first + tree
				if !turns[turn].Generate[row].Alive {
					continue
				}
				for number := range t.Branches {
					a := address(group)
					a.Member, a.Turn, a.Step = int64(tree), int64(turn), int64(number)
					u := a.Rand().Float64()
					asked = append(asked, search.Uncertainty{
						First: surprise(turns[0].Generate[row], vocabulary), Now: surprise(turns[turn-1].Generate[row], vocabulary), Draw: u,
					})
					of = append(of, episode.ForkRow{Parent: int32(row), Turn: int32(turn), Places: 1, Draw: u})
				}
			}
			_, branch, err := search.Branches(asked, t.EntropyWeight, t.Probability)
			if err != nil {
				return nil, fmt.Errorf("turn %d of group %d: %w: %w", turn, group, err, store.ErrInvalid)
			}
			for i, yes := range branch {
				if yes && next < size {
					begin(of[i])
				}
			}
		}
		for next < size {
			begin(episode.ForkRow{Parent: int32(first), Places: 1})
		}
	}
	return out, nil
}

// surprise is the mean of −log p over the first tokens of a turn, over the logarithm of the
// vocabulary: 1 if all ids were as likely.
func surprise(g episode.GenerateRow, vocabulary int) float64 {
	first := g.RolloutLogProbs[:min(len(g.RolloutLogProbs), firstTokens)]
	sum := 0.0
	for _, l := range first {
		sum -= float64(l)
	}
	return sum / (float64(max(len(first), 1)) * math.Log(float64(vocabulary)))
}
