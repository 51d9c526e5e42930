package spec

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Reward is a part of the reward beside the environment's own.
type Reward struct {
	// Name is a module's.
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
	// Options is a JSON object in canonical form; the module checks it.
	Options json.RawMessage `json:"options,omitempty"`
}

const maxRewards = 16

// rewardRules are the fields of a reward, in the order of its type.
var rewardRules = []*rule{
	{path: "name", typ: typeString, required: true, text: func(string) string { return "" }, textAllowed: "the name of a module", source: fromOurs,
		doc: "The module; docs/rewards.md lists them. Each at most once."},
	{path: "weight", typ: typeNumber, value: 1.0, span: between(-1e6, 1e6), source: fromOurs,
		doc: "What its values are multiplied by before they are added to the environment's rewards."},
	{path: "options", typ: typeOptions, source: fromOurs, doc: "Its options."},
}

func assembleRewards(values map[string]any) []Reward {
	var rewards []Reward
	read, _ := values["rewards"].([]map[string]any)
	for _, v := range read {
		r := Reward{Weight: 1, Options: json.RawMessage(`{}`)}
		r.Name, _ = v["name"].(string)
		if w, ok := v["weight"].(float64); ok {
			r.Weight = w
		}
		if o, ok := v["options"].(json.RawMessage); ok {
			r.Options = o
		}
		rewards = append(rewards, r)
	}
	return rewards
}

// rewards checks the modules against what is known, and that the environment has what they
// read.
func (d *decoder) rewards(t Train) {
	if d.isBad("rewards") {
		return
	}
	names := sorted(d.known.Rewards)
	for i, r := range t.Rewards {
		path := strict.Index("rewards", i)
		switch {
		case names != nil && !slices.Contains(names, r.Name):
			d.add(path, Problem{Path: strict.Join(path, "name"), Found: strict.Quote(r.Name), Allowed: oneOf(names), Hint: strict.DidYouMean(r.Name, names)})
		case slices.ContainsFunc(t.Rewards[:i], func(o Reward) bool { return o.Name == r.Name }):
			d.add(path, Problem{Path: strict.Join(path, "name"), Found: fmt.Sprintf("%s a second time", strict.Quote(r.Name)), Allowed: "each module once"})
		case d.known.Reward != nil && !d.isBad("environment") && !d.isBad("environment.name") && !d.isBad("environment.options") && !d.isBad("rollout.think"):
			for _, p := range d.known.Reward(r, t.Environment, t.Rollout.Think) {
				p.Path = strict.Within(path, p.Path)
				d.add(path, p)
			}
		}
	}
}

// Judged reports whether a judge outside this program is asked about the episodes of a rollout.
func (t Train) Judged() bool {
	return slices.ContainsFunc(t.Rewards, func(r Reward) bool { return r.Name == Foreign })
}

// judgeSeconds is how long the spec lets a judge take for one call; 0 without a judge, or where the
// spec leaves it open.
func (t Train) judgeSeconds() int {
	for _, r := range t.Rewards {
		var options struct {
			Seconds int `json:"timeout_seconds"`
		}
		if r.Name == Foreign && json.Unmarshal(r.Options, &options) == nil {
			return options.Seconds
		}
	}
	return 0
}
