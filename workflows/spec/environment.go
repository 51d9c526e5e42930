package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Environment is what a run acts in: one registered environment with its
// options, or a mixture of several.
type Environment struct {
	// Name is the registered name; empty if there is a Mixture.
	Name string `json:"name,omitempty"`
	// Options is a JSON object in canonical form, "{}" if none are written;
	// the environment checks it.
	Options json.RawMessage `json:"options,omitempty"`
	// Mixture are the environments of a run with several.
	Mixture []Part `json:"mixture,omitempty"`
	// BrokenShare and TimeoutSeconds are about foreign environments, whose episodes may break
	// and whose answers may be late; 0 in specs without one.
	BrokenShare float64 `json:"broken_share,omitempty"`
	// OnBroken is Drop, Redraw, or "" for Drop.
	OnBroken       string `json:"on_broken,omitempty"`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty"`
	// Tools are what the policy may call while it plays; nil for none.
	Tools []Tool `json:"tools,omitempty"`
	// ToolCalls is the form of calls, the name of a calls.Form; "" is the one of the chat template.
	ToolCalls string `json:"tool_calls,omitempty"`
	// CallsPerTurn is the most calls of a turn that are answered, ResultTokens the most tokens of an answer; 0 without
	// tools.
	CallsPerTurn int `json:"calls_per_turn,omitempty"`
	ResultTokens int `json:"result_tokens,omitempty"`
}

// Foreign is the name of all environments outside this program: the option "name" says which.
const Foreign = "foreign"

// ByAgent is the name of the environment that stands for the task of an agent: rollout.agent says which.
const ByAgent = "agent"

// What happens to a training episode in which a foreign environment breaks.
const (
	Drop   = "drop"   // it is left out
	Redraw = "redraw" // it is played again with other chance, at most twice, and left out if it breaks still
)

// The defaults of the fields about foreign environments.
const (
	defaultBrokenShare    = 0.05
	defaultTimeoutSeconds = 60
)

// Foreign reports whether a part is an environment outside this program.
func (e Environment) Foreign() bool {
	return slices.ContainsFunc(e.Parts(), func(p Part) bool { return p.Name == Foreign })
}

// ByAgent reports whether the environment is the task of an agent.
func (e Environment) ByAgent() bool { return e.Name == ByAgent }

// Timeout is how long a foreign environment may take for one answer.
func (e Environment) Timeout() time.Duration { return time.Duration(e.TimeoutSeconds) * time.Second }

// withForeignDefaults fills in the fields about foreign environments if this is one. seconds is
// limits.activity_seconds.
func (e Environment) withForeignDefaults(seconds int) Environment {
	if e.Foreign() || e.ByAgent() {
		e.BrokenShare = cmp.Or(e.BrokenShare, defaultBrokenShare)
		e.TimeoutSeconds = cmp.Or(e.TimeoutSeconds, min(defaultTimeoutSeconds, seconds))
	}
	return e
}

// checkForeign reports the fields about foreign environments where there is none.
func (e Environment) checkForeign(path string) Problems {
	if e.Foreign() {
		return nil
	}
	var problems Problems
	for key, value := range map[string]float64{"broken_share": e.BrokenShare, "timeout_seconds": float64(e.TimeoutSeconds)} {
		if value != 0 && !e.ByAgent() {
			problems = append(problems, Problem{Path: strict.Join(path, key), Found: formatNumber(value),
				Allowed: "this field only with the environment " + strict.Quote(Foreign) + " or " + strict.Quote(ByAgent), Hint: "leave it out"})
		}
	}
	if e.OnBroken != "" {
		problems = append(problems, Problem{Path: strict.Join(path, "on_broken"), Found: strict.Quote(e.OnBroken),
			Allowed: "this field only with the environment " + strict.Quote(Foreign), Hint: "leave it out"})
	}
	slices.SortFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Path, b.Path) })
	return problems
}

// Part is one environment of a mixture.
type Part struct {
	// Name and Options are as in Environment.
	Name    string          `json:"name"`
	Options json.RawMessage `json:"options,omitempty"`
	// Share is the part's weight: it plays Share / Σ shares of the groups.
	Share float64 `json:"share"`
	// Label is the part's name in metrics and tables; by default Name.
	Label string `json:"label"`
}

// maxParts bounds a mixture.
const maxParts = 16

// minShare is the least share of all that a part may have: groups are dealt out in
// finite rounds.
const minShare = 1e-6

// partRules are the fields of a part, in the order of its type.
var partRules = []*rule{
	{path: "name", typ: typeString, required: true, text: checkEnvironmentName, textAllowed: "the name of an environment", source: fromOurs,
		doc: "The environment, by its registered name."},
	{path: "options", typ: typeOptions, source: fromOurs, doc: "Its options."},
	{path: "share", typ: typeNumber, value: 1.0, span: span{low: 0, high: 1e6, openLow: true}, source: fromOurs,
		doc: "The weight of the part: it plays share / Σ shares of the groups, spread over the groups' order as evenly as whole groups allow."},
	{path: "label", typ: typeString, text: checkLabel, textAllowed: labelAllowed, source: fromOurs,
		doc: "Its name in metrics and tables. Default: `name`."},
}

const labelAllowed = "1 to 64 lower-case letters, digits, dots, dashes and underscores, beginning with a letter or a digit"

// checkLabel allows names that can be part of metrics and of S3 keys.
func checkLabel(s string) string {
	if s == "" || len(s) > 64 {
		return fmt.Sprintf("it has %d characters", len(s))
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '.' && r != '-' && r != '_') {
			return fmt.Sprintf("%q is not allowed at its place %d", r, i+1)
		}
	}
	return ""
}

// Parts are the environments of a run: the parts of its mixture, or the one it names,
// with the whole share.
func (e Environment) Parts() []Part {
	if len(e.Mixture) > 0 {
		return e.Mixture
	}
	return []Part{{Name: e.Name, Options: e.Options, Share: 1, Label: e.Name}}
}

// String names the environments: "sokoban", "sokoban + frozenlake".
func (e Environment) String() string {
	text := ""
	for i, p := range e.Parts() {
		if i > 0 {
			text += " + "
		}
		text += p.Label
	}
	return text
}

// WithOptions is the environment with the options of each part replaced.
func (e Environment) WithOptions(replace func(name string, options json.RawMessage) (json.RawMessage, error)) (Environment, error) {
	if len(e.Mixture) == 0 {
		options, err := replace(e.Name, e.Options)
		if err == nil {
			e.Options = options
		}
		return e, err
	}
	parts := slices.Clone(e.Mixture)
	for i, p := range parts {
		options, err := replace(p.Name, p.Options)
		if err != nil {
			return e, fmt.Errorf("mixture[%d]: %w", i, err)
		}
		parts[i].Options = options
	}
	e.Mixture = parts
	return e, nil
}
