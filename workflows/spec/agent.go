package spec

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/infra/strict"
)

// agentRule is the field about agents.
var agentRule = &rule{
	path: "rollout.agent", typ: typeString, text: checkLabel, textAllowed: labelAllowed, source: fromOurs + ", none",
	doc: "The agent that plays the episodes: a program of your own, which calls the policy as chat completions; a worker's `--agent NAME=COMMAND` or `--agent NAME=URL` says what it is. Each call is a turn, and `rollout.turns` is the most calls of an episode. The environment is `agent`, which stands for the agent's own task: its option `options` is what the agent gets. `rollout.prompt_tokens` must be given: a call is computed at the least of these widths that its prompt fits in, and refused if none does. `rollout.think`, `rollout.format_penalty`, `rollout.penalty`, `rollout.protocol` and `rollout.stop_at` are about prompts of this program, and have no effect.",
}

// agentRelations are the rules between agents and other fields.
var agentRelations = []relation{
	{
		paths: []string{"rollout.agent", "environment.name", "environment.mixture"},
		doc:   "rollout.agent and the environment " + ByAgent + " go together, and that environment is no part of a mixture.",
		broken: func(t Train) (bool, string, string) {
			switch name := t.Rollout.Agent; {
			case slices.ContainsFunc(t.Environment.Mixture, func(p Part) bool { return p.Name == ByAgent }):
				return true, "a mixture with " + ByAgent, "the environment " + ByAgent + " alone"
			case name != "" && !t.Environment.ByAgent():
				return true, "rollout.agent " + strict.Quote(name) + " with the environment " + strict.Quote(t.Environment.Name),
					"environment.name " + strict.Quote(ByAgent) + ": an agent brings its own task"
			case name == "" && t.Environment.ByAgent():
				return true, "the environment " + ByAgent + " without rollout.agent", "rollout.agent: the name of the agent that plays it"
			}
			return false, "", ""
		},
	},
	{
		paths: []string{"evaluation.suites", "rollout.agent"},
		doc:   "A suite with the environment " + ByAgent + " is played by rollout.agent, and has prompt_tokens, by default those of the run if it has as many turns.",
		broken: func(t Train) (bool, string, string) {
			for _, s := range t.Evaluation.Suites {
				switch {
				case s.Environment.ByAgent() && t.Rollout.Agent == "" && !t.Environment.ByAgent():
					return true, "suite " + s.Name + " with the environment " + ByAgent, "rollout.agent, which plays it"
				case s.Environment.ByAgent() && s.PromptTokens == nil && t.Rollout.Agent != "":
					return true, "suite " + s.Name + " without prompt_tokens", "prompt_tokens: the widths of the agent's prompts are not known"
				}
			}
			return false, "", ""
		},
	},
	{
		paths: []string{"rollout.agent", "rollout.prompt_tokens", "policy.warm_start.steps", "rollout.context_turns", "rollout.context", "rollout.subgoals",
			"rollout.keep_values", "rollout.search", "rollout.block_rows", "rollout.lag", "rollout.overlong_cache", "environment.tools",
			"rewards", "diagnostics.every"},
		doc: "rollout.agent needs rollout.prompt_tokens and policy.warm_start.steps 0, and excludes what is about prompts and episodes of this program: rollout.context_turns, context, subgoals, keep_values, search, block_rows, lag, overlong_cache, environment.tools, rewards, diagnostics.every.",
		broken: func(t Train) (bool, string, string) {
			r := t.Rollout
			if r.Agent == "" {
				return false, "", ""
			}
			if r.PromptTokens == nil {
				return true, "rollout.agent without rollout.prompt_tokens", "rollout.prompt_tokens, a width a turn: the widths of an agent's prompts are not known"
			}
			for _, other := range []struct {
				set  bool
				name string
			}{
				{t.Policy.WarmStart.Steps > 0, fmt.Sprintf("policy.warm_start.steps %d", t.Policy.WarmStart.Steps)},
				{r.ContextTurns > 0, "rollout.context_turns"}, {len(r.Context) > 0, "rollout.context"}, {r.Subgoals, "rollout.subgoals"},
				{r.KeepValues, "rollout.keep_values"}, {r.Search != "", "rollout.search"}, {r.BlockRows > 0, "rollout.block_rows"},
				{r.Lag > 0, "rollout.lag"}, {r.OverlongCache > 0, "rollout.overlong_cache"},
				{len(t.Environment.Tools) > 0, "environment.tools"}, {len(t.Rewards) > 0, "rewards"}, {t.Diagnostics.Every > 0, "diagnostics.every"},
			} {
				if other.set {
					return true, "rollout.agent with " + other.name, "one of the two: leave " + other.name + " out (0 steps of a warm start), or the agent"
				}
			}
			return false, "", ""
		},
	},
}
