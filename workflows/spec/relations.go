package spec

import (
	"fmt"
	"math"
)

// relation is a rule between several fields.
type relation struct {
	// paths are the fields it reads; the problem is reported at the first.
	paths []string
	doc   string
	// broken answers what was found and what is allowed, "" when all is well.
	broken func(Train) (found, allowed string)
}

const maxTrajectories = 65536

// relations are checked where none of their fields has a problem of its own.
var relations = []relation{
	{
		paths: []string{"policy.starter", "policy.from"},
		doc:   `policy.starter stands only where policy.from is "starter".`,
		broken: func(t Train) (string, string) {
			if t.Policy.Starter == nil || t.Policy.From == FromStarter {
				return "", ""
			}
			return fmt.Sprintf("an object, with policy.from %s", quote(t.Policy.From)),
				`nothing, unless policy.from is "starter"`
		},
	},
	{
		paths: []string{"policy.starter.hidden_size", "policy.starter.heads"},
		doc:   "policy.starter.hidden_size is a multiple of 2 × policy.starter.heads (rotary embedding turns pairs).",
		broken: func(t Train) (string, string) {
			s := t.Policy.Starter
			if s == nil || s.HiddenSize%(2*s.Heads) == 0 {
				return "", ""
			}
			return fmt.Sprint(s.HiddenSize), fmt.Sprintf("a multiple of %d (2 × policy.starter.heads)", 2*s.Heads)
		},
	},
	{
		paths: []string{"policy.starter.kv_heads", "policy.starter.heads"},
		doc:   "policy.starter.kv_heads divides policy.starter.heads.",
		broken: func(t Train) (string, string) {
			s := t.Policy.Starter
			if s == nil || s.Heads%s.KVHeads == 0 {
				return "", ""
			}
			return fmt.Sprint(s.KVHeads), fmt.Sprintf("a divisor of %d (policy.starter.heads)", s.Heads)
		},
	},
	{
		paths: []string{"rollout.groups", "rollout.group_size"},
		doc:   fmt.Sprintf("rollout.groups × rollout.group_size is at most %d.", maxTrajectories),
		broken: func(t Train) (string, string) {
			if t.Rollout.Trajectories() <= maxTrajectories {
				return "", ""
			}
			return fmt.Sprintf("%d × %d = %d trajectories", t.Rollout.Groups, t.Rollout.GroupSize, t.Rollout.Trajectories()),
				fmt.Sprintf("at most %d an iteration", maxTrajectories)
		},
	},
	{
		paths: []string{"rollout.prompt_tokens", "rollout.turns"},
		doc:   "rollout.prompt_tokens has one width a turn, and they do not fall: a context only grows.",
		broken: func(t Train) (string, string) {
			return brokenWidths(t.Rollout.PromptTokens, t.Rollout.Turns)
		},
	},
	{
		paths: []string{"selection.keep", "selection.method", "rollout.groups"},
		doc:   "selection.keep × rollout.groups is at least 1 where selection.method is \"top_fraction\".",
		broken: func(t Train) (string, string) {
			return brokenKeep(t.Selection, t.Rollout.Groups)
		},
	},
	{
		paths: []string{"rollout.overlong_cache", "rollout.max_new_tokens"},
		doc:   "rollout.overlong_cache is at most rollout.max_new_tokens.",
		broken: func(t Train) (string, string) {
			if t.Rollout.OverlongCache <= t.Rollout.MaxNewTokens {
				return "", ""
			}
			return fmt.Sprint(t.Rollout.OverlongCache), fmt.Sprintf("at most %d (rollout.max_new_tokens)", t.Rollout.MaxNewTokens)
		},
	},
	{
		paths: []string{"update.micro_batch", "rollout.groups", "rollout.group_size"},
		doc:   "update.micro_batch is at most rollout.groups × rollout.group_size.",
		broken: func(t Train) (string, string) {
			if t.Update.MicroBatch <= t.Rollout.Trajectories() {
				return "", ""
			}
			return fmt.Sprint(t.Update.MicroBatch),
				fmt.Sprintf("at most %d (rollout.groups × rollout.group_size)", t.Rollout.Trajectories())
		},
	},
	{
		paths: []string{"update.minibatch", "update.micro_batch"},
		doc:   "update.minibatch is 0 or a multiple of update.micro_batch.",
		broken: func(t Train) (string, string) {
			if t.Update.Minibatch%max(t.Update.MicroBatch, 1) == 0 {
				return "", ""
			}
			return fmt.Sprint(t.Update.Minibatch), fmt.Sprintf("0 or a multiple of %d (update.micro_batch)", t.Update.MicroBatch)
		},
	},
	{
		paths: []string{"evaluation.suites", "evaluation.instances", "evaluation.samples"},
		doc:   fmt.Sprintf("The instances × samples of a suite are at most %d.", maxTrajectories),
		broken: func(t Train) (string, string) {
			for _, s := range t.Evaluation.Suites {
				if s.Rows() > maxTrajectories {
					return fmt.Sprintf("suite %s: %d × %d = %d trajectories", s.Name, s.Instances, s.Samples, s.Rows()),
						fmt.Sprintf("at most %d a suite", maxTrajectories)
				}
			}
			return "", ""
		},
	},
	{
		paths: []string{"evaluation.suites", "rollout.prompt_tokens", "rollout.turns"},
		doc:   "The prompt_tokens of a suite are as rollout.prompt_tokens: one width a turn, and they do not fall.",
		broken: func(t Train) (string, string) {
			for _, s := range t.Evaluation.Suites {
				if found, allowed := brokenWidths(s.PromptTokens, s.Turns); found != "" {
					return fmt.Sprintf("suite %s: %s", s.Name, found), allowed
				}
			}
			return "", ""
		},
	},
}

// brokenWidths says what is wrong with the widths of the contexts of turns.
func brokenWidths(widths []int, turns int) (found, allowed string) {
	if len(widths) == 0 {
		return "", ""
	}
	if len(widths) != turns {
		return fmt.Sprintf("%d widths", len(widths)), fmt.Sprintf("%d, one a turn", turns)
	}
	for i := 1; i < len(widths); i++ {
		if widths[i] < widths[i-1] {
			return fmt.Sprintf("%d after %d", widths[i], widths[i-1]), "widths that do not fall"
		}
	}
	return "", ""
}

// brokenKeep is the relation of keep and groups, shared with Settings.Apply.
func brokenKeep(s Selection, groups int) (found, allowed string) {
	if s.Method != SelectTopFraction || s.Kept(groups) >= 1 {
		return "", ""
	}
	return formatNumber(s.Keep), fmt.Sprintf("a number of which %d groups make at least one (from %s)",
		groups, formatNumber(math.Ceil(1e6/float64(groups))/1e6))
}

func unmet(t Train, bad func(path string) bool) Problems {
	var problems Problems
next:
	for _, r := range relations {
		for _, path := range r.paths {
			if bad(path) {
				continue next
			}
		}
		if found, allowed := r.broken(t); found != "" {
			problems = append(problems, Problem{Path: r.paths[0], Found: found, Allowed: allowed})
		}
	}
	return problems
}
