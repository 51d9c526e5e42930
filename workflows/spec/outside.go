package spec

import (
	"encoding/json"
	"slices"
)

// Foreign reports whether the run or one of its suites plays an environment outside this program.
func (t Train) Foreign() bool {
	return t.Environment.Foreign() || slices.ContainsFunc(t.Evaluation.Suites, func(s Suite) bool { return s.Environment.Foreign() })
}

// Judged reports whether a judge outside this program is asked about the episodes of a rollout.
func (t Train) Judged() bool {
	return slices.ContainsFunc(t.Rewards, Reward.judged)
}

// judged reports whether a reward asks a judge outside this program.
func (r Reward) judged() bool { return r.Name == Foreign || r.Name == Judge }

// Judge is the name of the reward that asks a language model; Foreign is that of a judge that is a program.
const Judge = "judge"

// Checklist is the name of the reward whose criteria are rules.
const Checklist = "checklist"

// hasCriteria reports whether a reward says of each turn which criteria hold: a checklist, or a judge by turn.
func (r Reward) hasCriteria() bool {
	var options struct {
		Level string `json:"level"`
	}
	return r.Name == Checklist || r.judged() && json.Unmarshal(r.Options, &options) == nil && options.Level == "turn"
}

// judgeSeconds is how long the spec lets a judge take for one call; 0 without a judge, or where the
// spec leaves it open.
func (t Train) judgeSeconds() int {
	for _, r := range t.Rewards {
		var options struct {
			Seconds int `json:"timeout_seconds"`
		}
		if r.judged() && json.Unmarshal(r.Options, &options) == nil {
			return options.Seconds
		}
	}
	return 0
}
