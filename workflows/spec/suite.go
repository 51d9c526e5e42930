package spec

import (
	"slices"
	"strings"
)

// Suite defines an evaluation's episodes completely, except for the policy. So the same
// policy on the same suite gives the same trajectories, in every run.
type Suite struct {
	// Name is the suite's name in metrics, keys and tables; unique in a run.
	Name string `json:"name"`
	// Environment is what is played.
	Environment Environment `json:"environment"`
	// Instances is the number of initial states, Samples the trajectories of each.
	Instances int `json:"instances"`
	Samples   int `json:"samples"`
	// Seed is the suite's seed: suites with the same seed have the same instances.
	Seed uint64 `json:"seed"`
	// Temperature is the temperature of sampling; 0 is greedy.
	Temperature float64 `json:"temperature"`
	// The rest is as in Rollout.
	Turns         int     `json:"turns"`
	MaxNewTokens  int     `json:"max_new_tokens"`
	Think         bool    `json:"think"`
	Subgoals      bool    `json:"subgoals,omitempty"`
	FormatPenalty float64 `json:"format_penalty"`
	Penalty       string  `json:"penalty"`
	ContextTurns  int     `json:"context_turns"`
	// Context is as in Rollout, and the run's where the suite has none of its own.
	Context      []ContextCut `json:"context,omitempty"`
	PromptTokens []int        `json:"prompt_tokens,omitempty"`
	Protocol     string       `json:"protocol,omitempty"`
	// StopAt is nil or empty where no text ends a turn.
	StopAt []string `json:"stop_at,omitzero"`
}

// Rows is how many trajectories the suite has.
func (s Suite) Rows() int { return s.Instances * s.Samples }

// InDistribution is the suite that every run can be measured on: its own environment,
// with instances that are not trained on if the environment holds some out.
const InDistribution = "in-distribution"

// maxSuites bounds the suites of a run.
const maxSuites = 32

// suiteRules are the fields of a suite: its own, and those it has in common with
// the rollout and the evaluation, which are its defaults.
var suiteRules = slices.Concat([]*rule{
	{path: "suite", typ: typeString, text: checkLabel, textAllowed: "the name of a suite", source: fromOurs,
		doc: "A named suite, which gives the environment. A string instead of the object means this field alone."},
	{path: "name", typ: typeString, text: checkLabel, textAllowed: labelAllowed, source: fromOurs,
		doc: "The suite's name in metrics, keys and tables. Default: `suite`, or the environment's name."},
	{path: "environment.name", typ: typeString, text: checkEnvironmentName, textAllowed: "the name of an environment", source: fromOurs,
		doc: "The environment, instead of a named suite."},
	{path: "environment.options", typ: typeOptions, source: fromOurs, doc: "Its options."},
	{path: "environment.mixture", typ: typeObjects, elements: partRules, most: maxParts, source: fromOurs, doc: "Several environments, as for a run."},
	{path: "environment.broken_share", typ: typeNumber, span: span{low: 0, high: 1, openLow: true}, source: fromOurs, doc: "As for a run, of the suite's episodes."},
	{path: "environment.on_broken", typ: typeString, enum: []string{Drop}, source: fromOurs, doc: "Evaluations never draw again."},
	{path: "environment.timeout_seconds", typ: typeInteger, span: between(1, 3600), source: fromOurs, doc: "As for a run."},
}, toolsRules("environment."), []*rule{
	{path: "context", typ: typeObjects, elements: contextRules, most: maxContextCuts, source: fromOurs,
		doc: "Rules that shorten older observations, as in `rollout.context`, which is the default."},
}, inheritedRules("evaluation.instances", "evaluation.samples", "evaluation.seed", "evaluation.temperature",
	"rollout.turns", "rollout.max_new_tokens", "rollout.think", "rollout.subgoals", "rollout.format_penalty", "rollout.penalty",
	"rollout.context_turns", "rollout.prompt_tokens", "rollout.protocol", "rollout.stop_at"))

// inheritedFields are the keys of a suite by the paths that give their defaults.
var inheritedFields = map[string]string{}

// inheritedRules are empty rules that stand for the rules of a run's fields; they are
// filled in once all rules are known.
func inheritedRules(paths ...string) []*rule {
	var out []*rule
	for _, p := range paths {
		key := p[strings.LastIndexByte(p, '.')+1:]
		inheritedFields[key] = p
		out = append(out, &rule{path: key, inherits: p})
	}
	return out
}
