package spec

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
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

// OwnJudge is how the run's own engine judges episodes: by the policy, or by another model.
type OwnJudge struct {
	// PromptTokens and MaxTokens are the most tokens of a question and of a reply.
	PromptTokens, MaxTokens int
	// ByTurn says that each turn is a question; Current that the version judges with which an iteration begins, and not
	// version 0.
	ByTurn, Current bool
	// Model is the model that judges; nil where the policy does.
	Model *Frozen
}

// The defaults of the reward judge.
const (
	judgePromptTokens = 1024
	judgeMaxTokens    = 512
)

// OwnJudge is how the run's own engine judges; nil if it does not.
func (t Train) OwnJudge() *OwnJudge {
	for _, r := range t.Rewards {
		o := struct {
			Judge        string `json:"judge"`
			Model        string `json:"model"`
			Level        string `json:"level"`
			PromptTokens int    `json:"prompt_tokens"`
			MaxTokens    int    `json:"max_tokens"`
		}{PromptTokens: judgePromptTokens, MaxTokens: judgeMaxTokens}
		if r.Name != Judge || json.Unmarshal(r.Options, &o) != nil {
			continue
		}
		own := &OwnJudge{PromptTokens: o.PromptTokens, MaxTokens: o.MaxTokens, ByTurn: o.Level == "turn"}
		switch {
		case isModel(o.Judge):
			own.Model = &Frozen{From: o.Judge, Model: o.Model, Network: r.Network}
			return own
		case o.Judge == "run":
			own.Current = o.Model == "current"
			return own
		}
	}
	return nil
}

// isModel reports whether the option judge names a model, and no server: no server's name has a colon.
func isModel(judge string) bool { return strings.Contains(judge, ":") }

// JudgeModel is the model beside the policy that judges episodes; nil without one.
func (t Train) JudgeModel() *Frozen {
	if own := t.OwnJudge(); own != nil {
		return own.Model
	}
	return nil
}

// WithJudgeModel is a spec whose JudgeModel has the digest and the shape of a model. A spec without one stays as it is.
func (t Train) WithJudgeModel(f Frozen) Train {
	if t.JudgeModel() == nil {
		return t
	}
	t.Rewards = slices.Clone(t.Rewards)
	for i := range t.Rewards {
		r := &t.Rewards[i]
		if r.Name != Judge {
			continue
		}
		var options map[string]json.RawMessage
		if r.Network = f.Network; f.Model == "" || json.Unmarshal(r.Options, &options) != nil {
			continue
		}
		options["model"] = json.RawMessage(strconv.Quote(f.Model))
		if b, err := canonicalJSON(options); err == nil { // else the whole spec is too large, as its JSON says
			r.Options = b
		}
	}
	return t
}

// Questions is the most questions of a round to the run's own engine; 0 without.
func (t Train) Questions() int {
	own := t.OwnJudge()
	switch {
	case own == nil:
		return 0
	case own.ByTurn:
		return t.Rollout.Trajectories() * t.Rollout.Turns
	}
	return t.Rollout.Trajectories()
}

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
