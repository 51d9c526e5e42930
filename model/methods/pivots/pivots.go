package pivots

import (
	"cmp"
	"fmt"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

var (
	pivotGamma = option.Option{
		Section: option.Rollout, Name: "pivot_gamma", Default: 2, High: 100, Above: true, Source: "DEEP-GRPO: γ of its scripts",
		Doc: "How much late pivots are preferred: the pivot at x, from 0 to 1 at the end of the trajectory, has the weight P × x^pivot_gamma. " +
			"P is the chance that one of its branches succeeds, which each iteration fits anew to the newest 10,000 pivots.",
	}
	branchWeight = option.Option{
		Section: option.Update, Name: "branch_weight", Default: 1, High: 100, Above: true, Source: "DEEP-GRPO (arXiv 2602.14169): λ",
		Doc: "The weight of branches with `rollout.search` pivots: the loss is the mean over the tokens of trajectories from the root, and so " +
			"many times the mean over those of branches.",
	}
)

// The defaults: the authors' scripts.
const (
	defaultTrees    = 8
	defaultBranches = 8
)

// Search samples failed trajectories again from a pivot.
var Search = search.Method{
	Name: "pivots", Source: "pivots: DEEP-GRPO (arXiv 2602.14169)",
	Is:   "plays `rollout.trees` trajectories, and from each that fails `rollout.branches` more from one of its turns, the pivot; a fit to earlier branches says which",
	File: "pivots/pivots.go",
	Doc: "`pivots` plays `rollout.trees` trajectories, and from each that has no reward above 0 `rollout.branches` more, which all " +
		"begin after one of its turns: the pivot.",
	Options: []option.Option{search.TreesOption, search.BranchesOption, search.OutcomesOption, pivotGamma, branchWeight},
	Credit:  Entry.Name, Roots: true, Memory: "pivots", Weight: branchWeight.Number,
	Trees: func(v option.Values, _ int) search.Trees {
		return search.Trees{
			Trees: cmp.Or(search.TreesOption.Int(v), defaultTrees), Branches: cmp.Or(search.BranchesOption.Int(v), defaultBranches), Expansions: 1,
			Shared: search.OutcomesOption.Choice(v) == search.SharedOutcomes,
		}
	},
	Fork: fork, Remember: remember,
	Rules: []search.Rule{
		{
			Paths: []string{"rollout.search", "update.aggregation", "update.minibatch", "freshness.replay_iterations"},
			Doc: "update.aggregation is token_mean, update.minibatch 0 and freshness.replay_iterations 0 if rollout.search is pivots: the loss " +
				"has a mean over the tokens of trajectories and one over those of branches.",
			Broken: func(s search.Setting) (bool, string, string) {
				return s.Search == "pivots" && (s.Aggregation != "token_mean" || s.Minibatch != 0 || s.Replay != 0),
					fmt.Sprintf("%q with %q, minibatches of %d and %d replayed iterations", s.Search, s.Aggregation, s.Minibatch, s.Replay),
					`update.aggregation "token_mean", update.minibatch 0 and freshness.replay_iterations 0`
			},
		},
		{
			Paths: []string{"rollout.pivot_gamma", "update.branch_weight", "rollout.search"},
			Doc:   "rollout.pivot_gamma and update.branch_weight are given only if rollout.search is pivots.",
			Broken: func(s search.Setting) (bool, string, string) {
				return s.Search != "pivots" && (pivotGamma.Written(s.Rollout) || branchWeight.Written(s.Update)),
					"pivots that rollout.search does not draw", `nothing, or rollout.search "pivots" beside it`
			},
		},
	},
}

const (
	// newestPivots is how many pivots a fit learns from (DEEP-GRPO's buffer).
	newestPivots = 10_000
	// savedAbove is the sum of rewards that a trajectory must exceed to have succeeded (DEEP-GRPO).
	savedAbove = 0
)

// fork draws where the branches of the failed trajectories of a rollout begin: all those of a
// trajectory at one of its turns, but the last one, which is as likely as a fit to the pivots before says (DEEP-GRPO,
// arXiv 2602.14169). The pivot after turn k of n is at k/n; the authors branch after segments of 50 tokens of one
// reply. A trajectory draws by its member. A trajectory that succeeded, or has one turn, has no branches.
func fork(f search.Forking) ([]episode.ForkRow, error) {
	t, turns, before := f.Trees, f.Turns, f.Before
	rows, size := len(turns[0].Generate), t.Leaves()
	if rows%size != 0 {
		return nil, fmt.Errorf("pivots of %d rows in groups of %d: %w", rows, size, store.ErrInvalid)
	}
	positions, saved := make([]float64, len(before)), make([]bool, len(before))
	for i, p := range before {
		positions[i], saved[i] = p.Position, p.Saved
	}
	fit, err := search.FitRecovery(positions, saved)
	if err != nil {
		return nil, fmt.Errorf("pivots before: %w: %w", err, store.ErrInvalid)
	}
	out := []episode.ForkRow{}
	for group := range rows / size {
		for tree := range t.Trees {
			parent := group*size + tree
			n, reward := search.LeafOf(turns, parent).Turns, 0.0
			for _, turn := range turns[:n] {
				reward += turn.Step[parent].Reward
			}
			if n < 2 || search.Saved([]float64{reward}, savedAbove) {
				continue
			}
			chances, err := fit.Pivots(n, n-1, pivotGamma.Number(f.Options))
			if err != nil {
				return nil, fmt.Errorf("pivot of row %d: %w: %w", parent, err, store.ErrInvalid)
			}
			a := f.Address(group)
			a.Member, a.Turn = int64(tree), 1
			u := a.Rand().Float64()
			pivot, err := search.Pick(chances, u)
			if err != nil {
				return nil, err
			}
			for branch := range t.Branches {
				member := t.Trees + tree*t.Branches + branch
				out = append(out, episode.ForkRow{
					Row: int32(group*size + member), Group: int32(group), Member: int32(member),
					Parent: int32(parent), Turn: int32(pivot + 1), Places: int32(n - 1), Draw: u,
				})
			}
		}
	}
	return out, nil
}

// remember gives the newest pivots after a rollout, whose rows are whole groups, and the metrics of the rollout's own.
func remember(t search.Trees, before []search.Branched, rows []episode.TrajectoryRow,
	branches []episode.BranchRow) ([]search.Branched, map[string]float64) {
	inherited := map[int32]int{}
	for _, b := range branches {
		if b.Inherited {
			inherited[b.Row]++
		}
	}
	out := append([]search.Branched{}, before...)
	pivots, saved := 0, 0
	for from := 0; from < len(rows); from += t.Leaves() {
		for tree := range t.Trees {
			first := from + t.Trees + tree*t.Branches
			var rewards []float64
			for _, r := range episode.Live(rows[first : first+t.Branches]) {
				rewards = append(rewards, r.Reward())
			}
			if len(rewards) == 0 {
				continue
			}
			p := search.Branched{
				Position: float64(inherited[rows[first].Row]) / float64(rows[from+tree].Turns()),
				Saved:    search.Saved(rewards, savedAbove),
			}
			out, pivots = append(out, p), pivots+1
			if p.Saved {
				saved++
			}
		}
	}
	m := map[string]float64{"pivots/number": float64(pivots), "pivots/saved": float64(saved) / float64(max(pivots, 1))}
	return out[max(0, len(out)-newestPivots):], m
}
