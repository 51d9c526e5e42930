// Package entropy branches trajectories where the policy has become less certain (ARPO, arXiv 2507.19849).
package entropy

import (
	"cmp"
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

var (
	entropyWeight = option.Option{
		Section: option.Rollout, Name: "entropy_weight", Default: 0.2, High: 100, Above: true, Source: "ARPO (arXiv 2507.19849), its script",
		Doc: "How much less certainty makes branches likelier with `rollout.search` entropy: one begins if u − entropy_weight × (H − H₀) is " +
			"at most `rollout.branch_probability`, where u is drawn from [0, 1), H is −log p of the sampled token, averaged over the first 20 " +
			"tokens of the turn and divided by the logarithm of the vocabulary, and H₀ that of the trajectory's first turn.",
	}
	probability = option.Option{
		Section: option.Rollout, Name: "branch_probability", Default: 0.5, High: 1, Above: true, Source: "ARPO (arXiv 2507.19849), its script",
		Doc: "How likely a branch begins after a turn with `rollout.search` entropy if the policy is as certain as in the first turn.",
	}
)

// The defaults: the authors' script, whose beam_size is one more than the branches.
const (
	defaultTrees    = 8
	defaultBranches = 1
)

// Search branches where the policy has become less certain.
var Search = search.Method{
	Name: "entropy", Source: "entropy: ARPO (arXiv 2507.19849)",
	Is:   "plays `rollout.trees` trajectories, and branches after turns in which the policy had become less certain, until the group has `rollout.group_size`",
	File: "entropy/entropy.go",
	Doc: "`entropy` plays `rollout.trees` trajectories, and more until the group has `rollout.group_size`: they begin after turns of " +
		"those, rather where the policy had become less certain, and from the beginning where too few do.",
	Options: []option.Option{search.TreesOption, search.BranchesOption, search.OutcomesOption, entropyWeight, probability},
	Free:    true,
	Trees: func(v option.Values, groupSize int) search.Trees {
		trees := cmp.Or(search.TreesOption.Int(v), defaultTrees)
		return search.Trees{Trees: trees, Branches: cmp.Or(search.BranchesOption.Int(v), defaultBranches), Expansions: 1, Rows: groupSize - trees}
	},
	Fork: fork,
	Rules: []search.Rule{
		{
			Paths: []string{"rollout.trees", "rollout.group_size", "rollout.search"},
			Doc:   "rollout.trees is less than rollout.group_size if rollout.search is entropy.",
			Broken: func(s search.Setting) (bool, string, string) {
				trees := cmp.Or(search.TreesOption.Int(s.Rollout), defaultTrees)
				return s.Search == "entropy" && trees >= s.GroupSize, fmt.Sprintf("%d of %d", trees, s.GroupSize),
					"fewer trajectories from the root than a group has, so that some can branch"
			},
		},
		{
			Paths: []string{"rollout.outcomes", "rollout.entropy_weight", "rollout.branch_probability", "rollout.search"},
			Doc: "rollout.entropy_weight and rollout.branch_probability are given only if rollout.search is entropy; then rollout.outcomes is " +
				"not shared.",
			Broken: func(s search.Setting) (bool, string, string) {
				if s.Search == "entropy" {
					return search.OutcomesOption.Choice(s.Rollout) == search.SharedOutcomes,
						`"shared" with rollout.search "entropy"`, `"fresh": a branch has luck of its own`
				}
				return entropyWeight.Written(s.Rollout) || probability.Written(s.Rollout),
					"branches that rollout.search does not draw", `nothing, or rollout.search "entropy" beside it`
			},
		},
	},
}

// firstTokens is how many of a turn's first sampled tokens say how certain the policy was (ARPO).
const firstTokens = 20

// fork draws after which turns of the trajectories from the root branches begin: rather
// where the policy had become less certain than in the trajectory's first turn (ARPO, arXiv
// 2507.19849). A turn that another one follows is asked Branches times, in the order of turns, then of
// members, until the group has all its rows. Rows that are left begin anew. A trajectory
// draws by its member, a turn and a number.
//
// The authors' code reads the ten largest log-probs of each token; this reads those of the sampled
// ones, whose mean is the entropy. There, branches branch too.
func fork(f search.Forking) ([]episode.ForkRow, error) {
	t, vocabulary, turns := f.Trees, f.Vocabulary, f.Turns
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
					a := f.Address(group)
					a.Member, a.Turn, a.Step = int64(tree), int64(turn), int64(number)
					u := a.Rand().Float64()
					asked = append(asked, search.Uncertainty{
						First: surprise(turns[0].Generate[row], vocabulary), Now: surprise(turns[turn-1].Generate[row], vocabulary), Draw: u,
					})
					of = append(of, episode.ForkRow{Parent: int32(row), Turn: int32(turn), Places: 1, Draw: u})
				}
			}
			_, branch, err := search.Branches(asked, entropyWeight.Number(f.Options), probability.Number(f.Options))
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
