package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/infra/strict"
)

// Tool is a tool that a policy may call while it plays.
type Tool struct {
	// Name is that of a registered kind of tool.
	Name string `json:"name"`
	// Options is a JSON object in canonical form; the tool checks it.
	Options json.RawMessage `json:"options,omitempty"`
}

const (
	maxTools = 64
	// The defaults of the fields about tools; 0 in specs without any.
	defaultCallsPerTurn = 4
	defaultResultTokens = 256
)

// toolRules are the fields of a tool, in the order of its type.
var toolRules = []*rule{
	{path: "name", typ: typeString, required: true, text: func(string) string { return "" }, textAllowed: "the name of a tool", source: fromOurs,
		doc: "The kind of tool; docs/tools.md lists them."},
	{path: "options", typ: typeOptions, source: fromOurs, doc: "Its options."},
}

// toolsRules are the fields of an environment about tools; prefix is "" or "environment.".
func toolsRules(prefix string) []*rule {
	return []*rule{
		{path: prefix + "tools", typ: typeObjects, elements: toolRules, most: maxTools, source: fromOurs + ", none",
			doc: "Tools that the policy may call while it plays. The answer to a call comes back in the role `tool`, or as the form says, and the policy takes another turn. A call is no action of the environment. A reply has calls, an answer between `<answer>` and `</answer>`, or both. The chat template tells the policy about the tools if it takes any, otherwise the first message does."},
		{path: prefix + "tool_calls", typ: typeString, enum: calls.Names(), source: fromOurs,
			doc: "The form in which the policy writes calls. Left out: the one of the model's chat template, or hermes."},
		{path: prefix + "calls_per_turn", typ: typeInteger, span: between(1, 32), source: fromOurs,
			doc: fmt.Sprintf("The most calls of a turn that are answered; those beyond are not, and the policy is told so. Default with `tools`: %d.", defaultCallsPerTurn)},
		{path: prefix + "result_tokens", typ: typeInteger, span: between(16, 32768), source: fromOurs,
			doc: fmt.Sprintf("The most tokens of the answer to a call. What is longer is cut at its end, and says so. Default with `tools`: %d.", defaultResultTokens)},
	}
}

// assembleTools takes over the fields about tools that are read below a prefix.
func (e *Environment) assembleTools(values map[string]any, prefix string) {
	e.Tools = elements(values, prefix+"tools", Tool{Options: json.RawMessage(`{}`)})
	e.ToolCalls, _ = values[prefix+"tool_calls"].(string)
	e.CallsPerTurn, _ = values[prefix+"calls_per_turn"].(int)
	e.ResultTokens, _ = values[prefix+"result_tokens"].(int)
	if len(e.Tools) > 0 {
		e.CallsPerTurn = cmp.Or(e.CallsPerTurn, defaultCallsPerTurn)
		e.ResultTokens = cmp.Or(e.ResultTokens, defaultResultTokens)
	}
}

// checkTools checks the tools of an environment, which is at path.
func (d *decoder) checkTools(e Environment, path string) Problems {
	var problems Problems
	if len(e.Tools) == 0 {
		for _, f := range []struct {
			key   string
			set   bool
			found string
		}{
			{"tool_calls", e.ToolCalls != "", strict.Quote(e.ToolCalls)},
			{"calls_per_turn", e.CallsPerTurn != 0, fmt.Sprint(e.CallsPerTurn)},
			{"result_tokens", e.ResultTokens != 0, fmt.Sprint(e.ResultTokens)},
		} {
			if f.set {
				problems = append(problems, Problem{Path: strict.Join(path, f.key), Found: f.found, Allowed: "this field only with environment.tools", Hint: "leave it out"})
			}
		}
		return problems
	}
	names := sorted(d.known.Tools)
	for i, tool := range e.Tools {
		at := strict.Index(strict.Join(path, "tools"), i)
		switch {
		case names != nil && !slices.Contains(names, tool.Name):
			problems = append(problems, Problem{Path: strict.Join(at, "name"), Found: strict.Quote(tool.Name), Allowed: oneOf(names),
				Hint: strict.DidYouMean(tool.Name, names)})
		case d.known.Tool != nil:
			for _, p := range d.known.Tool(tool, e) {
				p.Path = strict.Within(at, p.Path)
				problems = append(problems, p)
			}
		}
	}
	if len(problems) == 0 && d.known.Toolset != nil {
		if err := d.known.Toolset(e); err != nil {
			problems = append(problems, Problem{Path: strict.Join(path, "tools"), Found: fmt.Sprintf("%d tools", len(e.Tools)), Allowed: err.Error()})
		}
	}
	return problems
}

// toolRelations are the rules between tools and how prompts are written.
var toolRelations = []relation{
	{
		paths: []string{"environment.tools", "rollout.protocol", "rollout.subgoals", "rollout.context_turns"},
		doc: "environment.tools needs rollout.protocol " + envs.Ours + " or " + envs.Examples +
			", no rollout.subgoals, and contexts that show all turns (rollout.context_turns 0).",
		broken: func(t Train) (bool, string, string) {
			if len(t.Environment.Tools) == 0 {
				return false, "", ""
			}
			r := t.Rollout
			found, allowed := "", ""
			switch {
			case r.Protocol != "" && r.Protocol != envs.Ours && r.Protocol != envs.Examples:
				found, allowed = "rollout.protocol "+strict.Quote(r.Protocol), "rollout.protocol "+envs.Ours+" or "+envs.Examples+": others do not say how tools are called"
			case r.Subgoals:
				found, allowed = "rollout.subgoals true", "no subgoals beside tools"
			case r.ContextTurns > 0:
				found, allowed = fmt.Sprintf("rollout.context_turns %d", r.ContextTurns), "rollout.context_turns 0: answers to calls stay in the context"
			}
			return found != "", found, allowed
		},
	},
	{
		paths: []string{"environment.tools", "limits.activity_seconds"},
		doc:   "A tool's option seconds, how long a call may take, is at most limits.activity_seconds.",
		broken: func(t Train) (bool, string, string) {
			return secondsBeyond(t, t.Environment.toolSeconds(), "a call")
		},
	},
	{
		paths: []string{"environment.options", "limits.activity_seconds"},
		doc:   "The option seconds of the environment code, how long a program may take, is at most limits.activity_seconds.",
		broken: func(t Train) (bool, string, string) {
			return secondsBeyond(t, t.Environment.gradeSeconds(), "a program")
		},
	},
}

// secondsBeyond reports that something that an activity waits for may take longer than the activity.
func secondsBeyond(t Train, longest float64, what string) (broken bool, found, allowed string) {
	return longest > float64(t.Limits.ActivitySeconds), formatNumber(longest) + " seconds",
		fmt.Sprintf("at most %d seconds for %s, as limits.activity_seconds", t.Limits.ActivitySeconds, what)
}

// toolSeconds is the longest time that a tool's options let a call take; 0 where they say nothing.
func (e Environment) toolSeconds() float64 {
	longest := 0.0
	for _, tool := range e.Tools {
		longest = max(longest, secondsOf(tool.Options))
	}
	return longest
}

// gradeSeconds is the longest time that an environment that asks outside about actions (envs.Grading) lets an answer take; 0
// where its options say nothing.
func (e Environment) gradeSeconds() float64 {
	longest := 0.0
	for _, p := range e.Parts() {
		if envs.Grades(p.Name) {
			longest = max(longest, secondsOf(p.Options))
		}
	}
	return longest
}

// secondsOf is the option seconds; 0 if there is none.
func secondsOf(raw json.RawMessage) float64 {
	var options struct {
		Seconds float64 `json:"seconds"`
	}
	if json.Unmarshal(raw, &options) != nil {
		return 0
	}
	return options.Seconds
}
