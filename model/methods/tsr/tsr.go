// Package tsr searches while rolling out, and keeps the best (TSR, arXiv 2602.11767).
package tsr

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

// The options of a search; the defaults are the method's own.
var (
	beam = option.Option{
		Section: option.Rollout, Name: "beam", Whole: true, Default: 2, Low: 1, High: 1024, Source: "TSR",
		Doc: "How many prefixes a search with `rollout.search` beam keeps after a turn. A group has `rollout.group_size` / `rollout.beam` " +
			"searches.",
	}
	candidates = option.Option{
		Section: option.Rollout, Name: "candidates", Whole: true, Default: 4, Low: 1, High: 64, Source: "TSR",
		Doc: "How many candidates continue a prefix in a turn, or how many trajectories the best is taken from. A rollout generates so many " +
			"times as much. With 1 it is a plain rollout.",
	}
	depth = option.Option{
		Section: option.Rollout, Name: "depth", Whole: true, Default: 2, Low: 1, High: 8, Source: "TSR (arXiv 2602.11767): D",
		Doc: "How many turns a search with `rollout.search` lookahead looks ahead before it takes a turn, that turn among them: 1 is `greedy`.",
	}
)

// Beam keeps the best prefixes after each turn, by the sum of their rewards.
var Beam = search.Method{
	Name: "beam", Source: "TSR (arXiv 2602.11767)",
	Is:   "keeps the best `rollout.beam` prefixes after each turn, of `rollout.candidates` continuations each, by the sum of their rewards and penalties",
	File: "tsr/tsr.go",
	Doc: "Each has `rollout.candidates` slots, or rollout.candidates ^ `rollout.depth` with `lookahead`. `beam` continues " +
		"`rollout.beam` prefixes by as many candidates each and keeps the best by the sum of their rewards and penalties, turn by turn.",
	Options: []option.Option{beam, candidates}, Choose: choose,
	Breadth: func(v option.Values) search.Breadth {
		return search.Breadth{Width: beam.Int(v), Candidates: candidates.Int(v)}
	},
	Rules: []search.Rule{
		{
			Paths: []string{"rollout.beam", "rollout.search", "rollout.group_size"},
			Doc:   "rollout.beam divides rollout.group_size if rollout.search is beam: each search gives as many trajectories as it keeps prefixes.",
			Broken: func(s search.Setting) (bool, string, string) {
				width := beam.Int(s.Rollout)
				return s.Search == "beam" && s.GroupSize%width != 0, fmt.Sprint(width), fmt.Sprintf("a divisor of %d (rollout.group_size)", s.GroupSize)
			},
		},
		{
			Paths: []string{"rollout.beam", "rollout.search"},
			Doc:   "rollout.beam is given only if rollout.search is beam.",
			Broken: func(s search.Setting) (bool, string, string) {
				return beam.Written(s.Rollout) && s.Search != "beam", fmt.Sprint(beam.Int(s.Rollout)), `nothing, or rollout.search "beam" beside it`
			},
		},
	},
}

// Greedy is Beam with one prefix, as in the method's public code.
var Greedy = search.Method{
	Name: "greedy", Doc: "`greedy` keeps one (the \"beam search\" of the method's public code).",
	Is:      "a beam of one prefix: TSR's public code calls that a beam search",
	File:    "tsr/tsr.go",
	Options: []option.Option{candidates}, Choose: choose,
	Breadth: func(v option.Values) search.Breadth { return search.Breadth{Width: 1, Candidates: candidates.Int(v)} },
}

// Lookahead takes the turn from which the best can be reached in the next turns.
var Lookahead = search.Method{
	Name: "lookahead",
	Is:   "plays every sequence of candidates of `rollout.depth` turns, takes the first turn of the best, and goes on from there (TSR)",
	File: "tsr/lookahead.go",
	Doc: "`lookahead` plays every sequence of candidates of `rollout.depth` turns, takes the first turn of the best, and goes on from " +
		"there.",
	Options: []option.Option{candidates, depth}, Choose: choose,
	Breadth: func(v option.Values) search.Breadth {
		return search.Breadth{Width: 1, Candidates: candidates.Int(v), Depth: depth.Int(v)}
	},
	Rules: []search.Rule{{
		Paths: []string{"rollout.depth", "rollout.search", "rollout.turns"},
		Doc:   "rollout.depth is given only if rollout.search is lookahead. It is at most rollout.turns.",
		Broken: func(s search.Setting) (bool, string, string) {
			if turns := depth.Int(s.Rollout); s.Search == "lookahead" && turns > s.Turns {
				return true, fmt.Sprint(turns), fmt.Sprintf("at most %d (rollout.turns)", s.Turns)
			}
			return depth.Written(s.Rollout) && s.Search != "lookahead", fmt.Sprint(depth.Int(s.Rollout)), `nothing, or rollout.search "lookahead" beside it`
		},
	}},
}

// BestOfN keeps the best of whole trajectories.
var BestOfN = search.Method{
	Name: "best_of_n", Doc: "`best_of_n` plays all to their end and keeps the best. For these the environment must leave nothing to chance.",
	Is:      "plays `rollout.candidates` trajectories to their end and keeps the one with the highest return (TSR)",
	File:    "tsr/choose.go",
	Options: []option.Option{candidates}, Choose: choose,
	Breadth: func(v option.Values) search.Breadth {
		return search.Breadth{Width: 1, Candidates: candidates.Int(v), Whole: true}
	},
	Rules: []search.Rule{{
		Paths: []string{"rollout.candidates", "rollout.search"},
		Doc:   "rollout.candidates is given only if rollout.search is.",
		Broken: func(s search.Setting) (bool, string, string) {
			return candidates.Written(s.Rollout) && s.Search == "", fmt.Sprint(candidates.Int(s.Rollout)), "nothing, or rollout.search beside it"
		},
	}},
}
