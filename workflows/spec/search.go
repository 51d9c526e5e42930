package spec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/credit"
)

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

// searchRelations are the rules between rollout.search, its options and other fields.
var searchRelations = []relation{
	{
		paths: []string{"rollout.search", "rollout.groups", "rollout.group_size", "rollout.candidates"},
		doc:   fmt.Sprintf("rollout.groups × rollout.group_size × rollout.candidates is at most %d if rollout.search is given; with lookahead × rollout.candidates for each turn of rollout.depth.", maxTrajectories),
		broken: func(t Train) (bool, string, string) {
			r := t.Rollout
			return r.Search != "" && r.Slots() > maxTrajectories && r.Trajectories() <= maxTrajectories,
				fmt.Sprintf("%d × %d × %d = %d rows", r.Groups, r.GroupSize, r.GroupSlots()/r.GroupSize, r.Slots()),
				fmt.Sprintf("at most %d an iteration: fewer candidates, smaller groups, or turns to look ahead", maxTrajectories)
		},
	},
	{
		paths: []string{"rollout.beam", "rollout.search", "rollout.group_size"},
		doc:   "rollout.beam divides rollout.group_size if rollout.search is beam: each search gives as many trajectories as it keeps prefixes.",
		broken: func(t Train) (bool, string, string) {
			s := t.Rollout.SearchOf()
			return t.Rollout.Search == BeamSearch && t.Rollout.GroupSize%s.Width != 0, fmt.Sprint(s.Width),
				fmt.Sprintf("a divisor of %d (rollout.group_size)", t.Rollout.GroupSize)
		},
	},
	{
		paths: []string{"rollout.beam", "rollout.search"},
		doc:   "rollout.beam is given only if rollout.search is beam.",
		broken: func(t Train) (bool, string, string) {
			return t.Rollout.Beam != 0 && t.Rollout.Search != BeamSearch, fmt.Sprint(t.Rollout.Beam), `nothing, or rollout.search "beam" beside it`
		},
	},
	{
		paths: []string{"rollout.depth", "rollout.search", "rollout.turns"},
		doc:   "rollout.depth is given only if rollout.search is lookahead. It is at most rollout.turns.",
		broken: func(t Train) (bool, string, string) {
			if s := t.Rollout.SearchOf(); s.Depth > t.Rollout.Turns {
				return true, fmt.Sprint(s.Depth), fmt.Sprintf("at most %d (rollout.turns)", t.Rollout.Turns)
			}
			return t.Rollout.Depth != 0 && t.Rollout.Search != LookaheadSearch, fmt.Sprint(t.Rollout.Depth), `nothing, or rollout.search "lookahead" beside it`
		},
	},
	{
		paths: []string{"rollout.candidates", "rollout.search"},
		doc:   "rollout.candidates is given only if rollout.search is.",
		broken: func(t Train) (bool, string, string) {
			return t.Rollout.Candidates != 0 && t.Rollout.Search == "", fmt.Sprint(t.Rollout.Candidates), "nothing, or rollout.search beside it"
		},
	},
	{
		paths: []string{"rollout.group_size", "rollout.search", "rollout.trees", "rollout.branches", "rollout.expansions"},
		doc:   "rollout.group_size is rollout.trees × (1 + rollout.branches × rollout.expansions) if rollout.search is tree or pivots.",
		broken: func(t Train) (bool, string, string) {
			s := t.Rollout.TreesOf()
			return t.Rollout.branches() && !s.Uncertain && t.Rollout.GroupSize != s.Leaves(), fmt.Sprint(t.Rollout.GroupSize),
				fmt.Sprintf("%d, for %d × (1 + %d × %d) trajectories", s.Leaves(), s.Trees, s.Branches, s.Expansions)
		},
	},
	{
		paths: []string{"rollout.trees", "rollout.group_size", "rollout.search"},
		doc:   "rollout.trees is less than rollout.group_size if rollout.search is entropy.",
		broken: func(t Train) (bool, string, string) {
			s := t.Rollout.TreesOf()
			return s.Uncertain && s.Rows < 1, fmt.Sprintf("%d of %d", s.Trees, t.Rollout.GroupSize),
				"fewer trajectories from the root than a group has, so that some can branch"
		},
	},
	{
		paths: []string{"rollout.outcomes", "rollout.entropy_weight", "rollout.branch_probability", "rollout.search"},
		doc:   "rollout.entropy_weight and rollout.branch_probability are given only if rollout.search is entropy; then rollout.outcomes is not shared.",
		broken: func(t Train) (bool, string, string) {
			r := t.Rollout
			if r.Search == EntropySearch {
				return r.Outcomes == SharedOutcomes,
					`"shared" with rollout.search "entropy"`, `"fresh": a branch has luck of its own`
			}
			return r.EntropyWeight != 0 || r.BranchProbability != 0,
				"branches that rollout.search does not draw", `nothing, or rollout.search "entropy" beside it`
		},
	},
	{
		paths: []string{"rollout.trees", "rollout.branches", "rollout.expansions", "rollout.outcomes", "rollout.search"},
		doc:   "rollout.trees, rollout.branches, rollout.expansions and rollout.outcomes are given only if rollout.search is tree or, but for rollout.expansions, pivots or entropy.",
		broken: func(t Train) (bool, string, string) {
			r := t.Rollout
			return !r.branches() && (r.Trees != 0 || r.Branches != 0 || r.Outcomes != "") || r.Search != TreeSearch && r.Expansions != 0,
				"trees that rollout.search does not grow", `nothing, or rollout.search "tree" beside it`
		},
	},
	{
		paths: []string{"credit.algorithm", "rollout.search"},
		doc:   "rollout.search is tree if credit.algorithm is tree_grpo, and pivots if and only if it is deep_grpo: they compare the leaves of such trees.",
		broken: func(t Train) (bool, string, string) {
			r, a := t.Rollout, t.Credit.algorithm()
			found := strict.Quote(t.Credit.Algorithm) + " without rollout.search"
			if r.Search != "" {
				found = strict.Quote(t.Credit.Algorithm) + " with rollout.search " + strict.Quote(r.Search)
			}
			if r.Search == PivotSearch {
				return a.Search != PivotSearch, found, `"deep_grpo" beside pivots`
			}
			return a.Search != "" && a.Search != r.Search, found, "rollout.search " + strict.Quote(a.Search) + " beside it, or an algorithm that needs no trees: " +
				strings.Join(algorithms(func(a credit.Algorithm) bool { return a.Compares && a.Search == "" && !a.ByRole }), ", ")
		},
	},
	{
		paths: []string{"rollout.search", "update.aggregation", "update.minibatch", "freshness.replay_iterations"},
		doc:   "update.aggregation is token_mean, update.minibatch 0 and freshness.replay_iterations 0 if rollout.search is pivots: the loss has a mean over the tokens of trajectories and one over those of branches.",
		broken: func(t Train) (bool, string, string) {
			return t.Rollout.Search == PivotSearch && (t.Update.Aggregation != "token_mean" || t.Update.Minibatch != 0 || t.Freshness.ReplayIterations != 0),
				fmt.Sprintf("%s with %s, minibatches of %d and %d replayed iterations", strict.Quote(PivotSearch), strict.Quote(t.Update.Aggregation), t.Update.Minibatch, t.Freshness.ReplayIterations),
				`update.aggregation "token_mean", update.minibatch 0 and freshness.replay_iterations 0`
		},
	},
	{
		paths: []string{"rollout.pivot_gamma", "update.branch_weight", "rollout.search"},
		doc:   "rollout.pivot_gamma and update.branch_weight are given only if rollout.search is pivots.",
		broken: func(t Train) (bool, string, string) {
			return t.Rollout.Search != PivotSearch && (t.Rollout.PivotGamma != 0 || t.Update.BranchWeight != 0),
				"pivots that rollout.search does not draw", `nothing, or rollout.search "pivots" beside it`
		},
	},
	{
		paths: []string{"rollout.search", "rollout.keep_values", "rollout.block_rows", "rollout.context_turns", "rollout.turns"},
		doc: "rollout.search excludes rollout.keep_values and rollout.block_rows, because what a slot continues changes from turn to turn, " +
			"and a window of rollout.context_turns that is smaller than rollout.turns, because trajectories of a search share turns.",
		broken: func(t Train) (bool, string, string) {
			r := t.Rollout
			var with string
			switch {
			case r.KeepValues:
				with = "rollout.keep_values"
			case r.BlockRows != 0:
				with = "rollout.block_rows"
			case r.ContextTurns > 0 && r.ContextTurns < r.Turns:
				with = "rollout.context_turns"
			}
			return r.Search != "" && with != "", fmt.Sprintf("%s with %s", strict.Quote(r.Search), with),
				"one of the two: leave rollout.search out, or " + with
		},
	},
	{
		paths: []string{"rollout.search", "freshness.online", "freshness.reuse", "update.supervised"},
		doc:   "rollout.search excludes freshness.online, freshness.reuse and update.supervised, which do not know the turns that several trajectories share.",
		broken: func(t Train) (bool, string, string) {
			var with string
			switch f := t.Freshness; {
			case f.Online > 1:
				with = "freshness.online"
			case f.Reuse > 1:
				with = "freshness.reuse"
			case t.Update.Supervised.On():
				with = "update.supervised"
			}
			return t.Rollout.Search != "" && with != "", fmt.Sprintf("%s with %s", strict.Quote(t.Rollout.Search), with),
				"one of the two: leave rollout.search out, or " + with
		},
	},
	{
		paths: []string{"rollout.search", "rewards"},
		doc:   "rollout.search excludes rewards: a search scores turns by the environment's rewards and the penalties alone.",
		broken: func(t Train) (bool, string, string) {
			return t.Rollout.Search != "" && len(t.Rewards) > 0, strict.Quote(t.Rollout.Search) + " with rewards",
				"one of the two: leave rollout.search out, or rewards"
		},
	},
}
