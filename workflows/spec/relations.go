package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/selection"
)

var (
	// deviations are the metrics that a group of one does not have, means the others, and
	// unranked the methods that read no metric.
	deviations = metrics(func(m selection.Metric) bool { return m.Deviation })
	means      = metrics(func(m selection.Metric) bool { return !m.Deviation })
	unranked   = selections(func(m selection.Method) bool { return !m.Ranks })
)

// withoutComparison are the algorithms that allow groups of one.
func withoutComparison() string {
	return listed(algorithms(func(a credit.Algorithm) bool { return !a.Compares }), "and")
}

// relations are checked if none of their fields has a problem of its own.
var relations = sync.OnceValue(func() []relation {
	return slices.Concat(
		generalRelations(), searchRelations(), surrogateRelations(), supervisedRelations, passesRelations, protocolRelations,
		toolRelations, contextRelations, agentRelations,
		secondRelations(), teacherRelations(), lagRelations,
		stopRelations,
	)
})

func generalRelations() []relation {
	return []relation{
		{
			paths: []string{"from.run", "from.iteration", "from.branch"},
			doc:   "from must name a run.",
			broken: func(t Train) (bool, string, string) {
				return t.From != nil && t.From.Run == "", "nothing", "the id of a run, beside its iteration"
			},
		},
		{
			paths: []string{"environment.timeout_seconds", "limits.activity_seconds"},
			doc:   "environment.timeout_seconds is at most limits.activity_seconds, also in suites.",
			broken: func(t Train) (bool, string, string) {
				most := t.Environment.TimeoutSeconds
				for _, s := range t.Evaluation.Suites {
					most = max(most, s.Environment.TimeoutSeconds)
				}
				return most > t.Limits.ActivitySeconds, fmt.Sprint(most), fmt.Sprintf("at most %d (limits.activity_seconds)", t.Limits.ActivitySeconds)
			},
		},
		{
			paths: []string{"rewards", "limits.activity_seconds"},
			doc:   "timeout_seconds of the reward `foreign` or `judge` is at most limits.activity_seconds.",
			broken: func(t Train) (bool, string, string) {
				return t.judgeSeconds() > t.Limits.ActivitySeconds, fmt.Sprintf("timeout_seconds %d of a judge", t.judgeSeconds()),
					fmt.Sprintf("at most %d (limits.activity_seconds)", t.Limits.ActivitySeconds)
			},
		},
		{
			paths: []string{"rewards"},
			doc:   "rewards has `foreign` or `judge`, not both: one judge is asked about an episode.",
			broken: func(t Train) (bool, string, string) {
				n := 0
				for _, r := range t.Rewards {
					if r.judged() {
						n++
					}
				}
				return n > 1, fmt.Sprintf("%q and %q", Foreign, Judge), "one of them"
			},
		},
		{
			paths: []string{"from.iteration", "iterations"},
			doc:   "iterations is more than from.iteration + 1: it counts the other run's iterations too.",
			broken: func(t Train) (bool, string, string) {
				if t.From == nil {
					return false, "", ""
				}
				allowed := fmt.Sprintf("less than %d (iterations − 1), so that an iteration follows", t.Iterations-1)
				if t.Iterations <= 1 {
					allowed = fmt.Sprintf("any, if iterations is at least %d: it counts the other run's too", t.From.Iteration+2)
				}
				return t.Iterations <= t.From.Iteration+1, fmt.Sprint(t.From.Iteration), allowed
			},
		},
		{
			paths: []string{"policy.base", "policy.from"},
			doc:   `policy.base is given only if policy.from names adapters, not "starter".`,
			broken: func(t Train) (bool, string, string) {
				return t.Policy.Base != "" && t.Policy.From == FromStarter, strict.Quote(t.Policy.Base),
					`nothing, unless policy.from names a folder of adapters`
			},
		},
		{
			paths: []string{"policy.starter", "policy.from"},
			doc:   `policy.starter is given only if policy.from is "starter".`,
			broken: func(t Train) (bool, string, string) {
				return t.Policy.Starter != nil && t.Policy.From != FromStarter,
					fmt.Sprintf("an object, with policy.from %s", strict.Quote(t.Policy.From)),
					`nothing, unless policy.from is "starter"`
			},
		},
		{
			paths: []string{"policy.starter.hidden_size", "policy.starter.heads"},
			doc:   "policy.starter.hidden_size is a multiple of 2 × policy.starter.heads (rotary embedding turns pairs).",
			broken: func(t Train) (bool, string, string) {
				s := t.Policy.Starter
				if s == nil {
					return false, "", ""
				}
				return s.HiddenSize%(2*s.Heads) != 0, fmt.Sprint(s.HiddenSize), fmt.Sprintf("a multiple of %d (2 × policy.starter.heads)", 2*s.Heads)
			},
		},
		{
			paths: []string{"policy.starter.kv_heads", "policy.starter.heads"},
			doc:   "policy.starter.kv_heads divides policy.starter.heads.",
			broken: func(t Train) (bool, string, string) {
				s := t.Policy.Starter
				if s == nil {
					return false, "", ""
				}
				return s.Heads%s.KVHeads != 0, fmt.Sprint(s.KVHeads), fmt.Sprintf("a divisor of %d (policy.starter.heads)", s.Heads)
			},
		},
		{
			paths: []string{"policy.warm_start.claims", "rewards"},
			doc:   "policy.warm_start.claims is given only if rewards has the module state, which reads claims.",
			broken: func(t Train) (bool, string, string) {
				reads := slices.ContainsFunc(t.Rewards, func(r Reward) bool { return r.Name == "state" })
				return t.Policy.WarmStart.Claims && !reads, "true", `false, unless rewards has {"name": "state"}`
			},
		},
		{
			paths: []string{"rollout.groups", "rollout.group_size"},
			doc:   fmt.Sprintf("rollout.groups × rollout.group_size is at most %d.", maxTrajectories),
			broken: func(t Train) (bool, string, string) {
				return t.Rollout.Trajectories() > maxTrajectories,
					fmt.Sprintf("%d × %d = %d trajectories", t.Rollout.Groups, t.Rollout.GroupSize, t.Rollout.Trajectories()),
					fmt.Sprintf("at most %d an iteration", maxTrajectories)
			},
		},
		{
			paths: []string{"rollout.prompt_tokens", "rollout.turns"},
			doc:   "rollout.prompt_tokens has one width a turn, and the widths never decrease: a context only grows.",
			broken: func(t Train) (bool, string, string) {
				return brokenWidths(t.Rollout.PromptTokens, t.Rollout.Turns)
			},
		},
		{
			paths: []string{"selection.keep", "selection.method", "rollout.groups"},
			doc:   "selection.keep × rollout.groups is at least 1 if selection.method is " + oneOf(methodsOf("keep")) + ".",
			knobs: true,
			broken: func(t Train) (bool, string, string) {
				s, groups := t.Selection, t.Rollout.Groups
				return s.method().Value == "keep" && s.Kept(groups) < 1, formatNumber(s.Keep),
					fmt.Sprintf("a number of which %d groups make at least one (from %s)",
						groups, formatNumber(math.Ceil(1e6/float64(groups))/1e6))
			},
		},
		{
			paths: []string{"selection.count", "selection.method", "rollout.groups"},
			doc:   "selection.count is at most rollout.groups if selection.method is " + oneOf(methodsOf("count")) + ".",
			knobs: true,
			broken: func(t Train) (bool, string, string) {
				return t.Selection.method().Value == "count" && t.Selection.Count > t.Rollout.Groups,
					fmt.Sprint(t.Selection.Count), fmt.Sprintf("at most %d (rollout.groups)", t.Rollout.Groups)
			},
		},
		{
			paths: []string{"rollout.group_size", "credit.algorithm"},
			doc:   "rollout.group_size is at least 2 if credit.algorithm compares the members of a group: all but " + withoutComparison() + ".",
			broken: func(t Train) (bool, string, string) {
				return t.Rollout.GroupSize < 2 && t.Credit.Compares(), fmt.Sprint(t.Rollout.GroupSize),
					fmt.Sprintf("at least 2: %s compares the members of a group (%s do not)", t.Credit.Algorithm, withoutComparison())
			},
		},
		{
			paths: []string{"update.kl_in", "credit.algorithm"},
			doc: "update.kl_in is none or loss if credit.algorithm is gdpo or blockwise: one normalises the parts of the reward, " +
				"the other counts the turns that earned a reward, and the distance is neither.",
			broken: func(t Train) (bool, string, string) {
				a := t.Credit.algorithm()
				reads := "normalises parts of the reward"
				if !a.ReadsParts {
					reads = "counts the turns that earned a reward"
				}
				return t.Update.KLIn == KLReward && (a.ReadsParts || a.Alone != nil), strict.Quote(t.Update.KLIn),
					fmt.Sprintf("none or loss with credit.algorithm %s, which %s", t.Credit.Algorithm, reads)
			},
		},
		{
			paths: []string{"selection.metric", "selection.method", "rollout.group_size"},
			doc: "If groups have one member, selection.metric is not " + listed(deviations, "or") +
				" (one member has no standard deviation), or selection.method is " + oneOf(unranked) + ".",
			broken: func(t Train) (bool, string, string) {
				s := t.Selection
				return t.Rollout.GroupSize < 2 && s.method().Ranks && slices.Contains(deviations, s.Metric), strict.Quote(s.Metric),
					listed(quoted(means), "or") + ", or selection.method " + oneOf(unranked) + ": a group of one has no deviation"
			},
		},
		{
			paths: []string{"selection.members", "rollout.group_size", "credit.algorithm"},
			doc:   "selection.members is less than rollout.group_size, and at least 2 if credit.algorithm compares the members of a group.",
			broken: func(t Train) (bool, string, string) {
				m, least := t.Selection.Members, 1
				if t.Credit.Compares() {
					least = 2
				}
				return m != 0 && (m < least || m >= t.Rollout.GroupSize), fmt.Sprint(m),
					fmt.Sprintf("from %d to %d (rollout.group_size − 1); or leave it out to learn from every member", least, t.Rollout.GroupSize-1)
			},
		},
		{
			paths: []string{"selection.member_metric", "selection.members"},
			doc:   "selection.member_metric is given only if selection.members is.",
			broken: func(t Train) (bool, string, string) {
				return t.Selection.MemberMetric != "" && t.Selection.Members == 0, strict.Quote(t.Selection.MemberMetric),
					"selection.members beside it, the number of members that are kept; or leave it out"
			},
		},
		{
			paths: []string{"selection.drop_flat", "rollout.group_size"},
			doc:   "selection.drop_flat is false if groups have one member: no group would be left.",
			broken: func(t Train) (bool, string, string) {
				return t.Rollout.GroupSize < 2 && t.Selection.DropFlat, "true", "false: a group of one has no deviation, none would be left"
			},
		},
		{
			paths: []string{"update.minibatch", "selection.method", "selection.keep", "selection.count", "selection.members", "rollout.groups", "rollout.group_size"},
			doc:   "update.minibatch is at most the rows that selection.keep, selection.count and selection.members leave.",
			knobs: true,
			broken: func(t Train) (bool, string, string) {
				groups := t.Rollout.Groups
				kept, rows := t.Selection.Kept(groups), t.Selection.KeptRows(t.Rollout)
				return rows > 0 && t.Update.Minibatch > rows, fmt.Sprint(t.Update.Minibatch),
					fmt.Sprintf("at most %d, the rows that the selection leaves (%d of %d groups of %d); or keep more",
						rows, kept, groups, rows/max(kept, 1))
			},
		},
		{
			paths: []string{"freshness.online", "freshness.reuse", "freshness.replay_iterations", "selection.resample"},
			doc:   "At most one of freshness.online, freshness.reuse, freshness.replay_iterations and selection.resample is in use.",
			broken: func(t Train) (bool, string, string) {
				var used []string
				f := t.Freshness
				for _, way := range []struct {
					name string
					on   bool
				}{
					{"freshness.online", f.Online > 1}, {"freshness.reuse", f.Reuse > 1},
					{"freshness.replay_iterations", f.ReplayIterations > 0}, {"selection.resample", t.Selection.Resample > 1},
				} {
					if way.on {
						used = append(used, way.name)
					}
				}
				return len(used) > 1, strings.Join(used, " and "), "one of them; leave the others out"
			},
		},
		{
			paths: []string{"rollout.turns", "freshness.online", "selection.resample"},
			doc:   fmt.Sprintf("rollout.turns × the rounds of a rollout (freshness.online, selection.resample; each counts 1 + rollout.expansions times with trees) is at most %d.", maxTurns),
			broken: func(t Train) (bool, string, string) {
				rounds := max(t.Freshness.Online, t.Selection.Resample) * t.Rollout.waves()
				return t.Rollout.Turns*rounds > maxTurns, fmt.Sprintf("%d × %d rounds", t.Rollout.Turns, rounds), fmt.Sprintf("at most %d in all", maxTurns)
			},
		},
		{
			paths: []string{"selection.resample", "rollout.group_size"},
			doc:   "selection.resample is 1 if groups have one member: no such group varies.",
			broken: func(t Train) (bool, string, string) {
				return t.Selection.Resample != 1 && t.Rollout.GroupSize < 2, fmt.Sprint(t.Selection.Resample), "1: a group of one never varies"
			},
		},
		{
			paths: []string{"rollout.overlong_cache", "rollout.max_new_tokens"},
			doc:   "rollout.overlong_cache is at most rollout.max_new_tokens.",
			broken: func(t Train) (bool, string, string) {
				return t.Rollout.OverlongCache > t.Rollout.MaxNewTokens,
					fmt.Sprint(t.Rollout.OverlongCache), fmt.Sprintf("at most %d (rollout.max_new_tokens)", t.Rollout.MaxNewTokens)
			},
		},
		{
			paths: []string{"update.micro_batch", "rollout.groups", "rollout.group_size"},
			doc:   "update.micro_batch is at most rollout.groups × rollout.group_size.",
			broken: func(t Train) (bool, string, string) {
				return t.Update.MicroBatch > t.Rollout.Trajectories(), fmt.Sprint(t.Update.MicroBatch),
					fmt.Sprintf("at most %d (rollout.groups × rollout.group_size)", t.Rollout.Trajectories())
			},
		},
		{
			paths: []string{"limits.generate_rows", "rollout.pass_rows"},
			doc:   fmt.Sprintf("limits.generate_rows is a multiple of rollout.pass_rows (%d if left out): a piece ends where a pass does.", DefaultPassRows),
			broken: func(t Train) (bool, string, string) {
				return t.Limits.GenerateRows%t.Rollout.Pass() != 0, fmt.Sprint(t.Limits.GenerateRows),
					fmt.Sprintf("a multiple of %d (rollout.pass_rows)", t.Rollout.Pass())
			},
		},
		{
			paths: []string{"rollout.block_rows", "rollout.pass_rows"},
			doc:   fmt.Sprintf("rollout.block_rows is a multiple of rollout.pass_rows (%d if left out), twice that at least: with one there is nothing to seat.", DefaultPassRows),
			broken: func(t Train) (bool, string, string) {
				b, pass := t.Rollout.BlockRows, t.Rollout.Pass()
				return b != 0 && (b%pass != 0 || b == pass), fmt.Sprint(b),
					fmt.Sprintf("a multiple of %d (rollout.pass_rows), at least %d: fewer rows a pass are fewer slots", pass, 2*pass)
			},
		},
		{
			paths: []string{"rollout.workers", "rollout.block_rows", "rollout.groups", "rollout.group_size"},
			doc:   "rollout.workers above 1 needs rollout.block_rows, of which a rollout has at least two blocks: blocks are what workers are given.",
			broken: func(t Train) (bool, string, string) {
				b := t.Rollout.BlockRows
				return t.Rollout.Workers > 1 && (b == 0 || t.Rollout.Trajectories() <= b),
					fmt.Sprintf("%d with rollout.block_rows %d and %d rows", t.Rollout.Workers, b, t.Rollout.Trajectories()),
					"1, or rollout.block_rows below the rows of a rollout (rollout.groups × rollout.group_size)"
			},
		},
		{
			paths: []string{"limits.generate_rows", "rollout.block_rows"},
			doc:   "limits.generate_rows is a multiple of rollout.block_rows: a piece ends where a block does.",
			broken: func(t Train) (bool, string, string) {
				b := t.Rollout.BlockRows
				return b != 0 && b%t.Rollout.Pass() == 0 && t.Limits.GenerateRows%b != 0, fmt.Sprint(t.Limits.GenerateRows), fmt.Sprintf("a multiple of %d (rollout.block_rows)", b)
			},
		},
		{
			paths: []string{"rollout.keep_values", "rollout.context_turns", "rollout.turns"},
			doc:   "rollout.keep_values needs contexts that only grow: rollout.context_turns is 0 or at least rollout.turns.",
			broken: func(t Train) (bool, string, string) {
				n := t.Rollout.ContextTurns
				return t.Rollout.KeepValues && n > 0 && n < t.Rollout.Turns, fmt.Sprintf("true with rollout.context_turns %d", n),
					"false, or contexts that show all turns (rollout.context_turns 0): a window begins another context, of which nothing is kept"
			},
		},
		{
			paths: []string{"rollout.keep_values", "rollout.block_rows"},
			doc:   "rollout.keep_values and rollout.block_rows exclude each other: what is kept belongs to a row's place in its pass, and a block has none.",
			broken: func(t Train) (bool, string, string) {
				return t.Rollout.KeepValues && t.Rollout.BlockRows != 0, fmt.Sprintf("true with rollout.block_rows %d", t.Rollout.BlockRows),
					"one of the two: leave rollout.block_rows out, whose rows have no place of their own in a pass, or rollout.keep_values"
			},
		},
		{
			paths: []string{"limits.score_rows", "update.micro_batch"},
			doc:   "limits.score_rows is a multiple of update.micro_batch: a piece ends where a micro-batch does.",
			broken: func(t Train) (bool, string, string) {
				return t.Limits.ScoreRows%t.Update.MicroBatch != 0, fmt.Sprint(t.Limits.ScoreRows),
					fmt.Sprintf("a multiple of %d (update.micro_batch)", t.Update.MicroBatch)
			},
		},
		{
			paths: []string{"limits.update_rows", "update.micro_batch"},
			doc:   "limits.update_rows is a multiple of update.micro_batch: a piece ends where a micro-batch does.",
			broken: func(t Train) (bool, string, string) {
				return t.Limits.UpdateRows%t.Update.MicroBatch != 0, fmt.Sprint(t.Limits.UpdateRows),
					fmt.Sprintf("a multiple of %d (update.micro_batch)", t.Update.MicroBatch)
			},
		},
		{
			paths: []string{"update.minibatch", "update.micro_batch"},
			doc:   "update.minibatch is 0 or a multiple of update.micro_batch.",
			broken: func(t Train) (bool, string, string) {
				return t.Update.Minibatch%max(t.Update.MicroBatch, 1) != 0,
					fmt.Sprint(t.Update.Minibatch), fmt.Sprintf("0 or a multiple of %d (update.micro_batch)", t.Update.MicroBatch)
			},
		},
		{
			paths: []string{"evaluation.suites", "evaluation.instances", "evaluation.samples"},
			doc:   fmt.Sprintf("The instances × samples of a suite are at most %d.", maxTrajectories),
			broken: func(t Train) (bool, string, string) {
				for _, s := range t.Evaluation.Suites {
					if s.Rows() > maxTrajectories {
						return true, fmt.Sprintf("suite %s: %d × %d = %d trajectories", s.Name, s.Instances, s.Samples, s.Rows()),
							fmt.Sprintf("at most %d a suite", maxTrajectories)
					}
				}
				return false, "", ""
			},
		},
		{
			paths: []string{"evaluation.suites", "rollout.prompt_tokens", "rollout.turns"},
			doc:   "The prompt_tokens of a suite follow the rule of rollout.prompt_tokens: one width a turn, and the widths never decrease.",
			broken: func(t Train) (bool, string, string) {
				for _, s := range t.Evaluation.Suites {
					if broken, found, allowed := brokenWidths(s.PromptTokens, s.Turns); broken {
						return true, fmt.Sprintf("suite %s: %s", s.Name, found), allowed
					}
				}
				return false, "", ""
			},
		},
	}
}

// brokenWidths says what is wrong with the widths of the contexts of turns.
func brokenWidths(widths []int, turns int) (broken bool, found, allowed string) {
	if len(widths) > 0 && len(widths) != turns {
		return true, fmt.Sprintf("%d widths", len(widths)), fmt.Sprintf("%d, one a turn", turns)
	}
	for i := 1; i < len(widths); i++ {
		if widths[i] < widths[i-1] {
			return true, fmt.Sprintf("%d after %d", widths[i], widths[i-1]), "widths that do not fall"
		}
	}
	return false, "", ""
}

// unmet are the problems of the requested relations that a spec breaks.
func unmet(t Train, asked func(relation) bool) Problems {
	var problems Problems
	for _, r := range relations() {
		if !asked(r) {
			continue
		}
		if broken, found, allowed := r.broken(t); broken {
			problems = append(problems, Problem{Path: r.paths[0], Found: found, Allowed: allowed})
		}
	}
	return problems
}
