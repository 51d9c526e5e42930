package rewards

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/judge"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/strict"
)

// The only component of a judge whose spec names none, and what is asked about it.
const (
	onlyComponent = "score"
	onlyOfEpisode = "has the agent done its task?"
	onlyOfTurn    = "has this turn brought the agent nearer to the end of its task?"
)

// modelJudge pays what a language model says, behind an address or on the run's own engine: of an episode at its last turn, of a
// turn there.
func modelJudge(o *envs.Options) Module {
	var j Judge
	var f judge.Form
	var written, scale, level string
	var asks json.RawMessage
	o.Text("judge", &f.Judge, "", "who judges: the NAME of the worker's --judge NAME=URL; run, the run itself; or a model that the run's own engine serves, as teacher.from names one: \"hf:NAME\", \"folder:PATH\", \"model:DIGEST\", \"run:ID@VERSION\"")
	o.Text("model", &f.Model, "", "the model that the server is asked for, as it calls it; of run: first (absent: version 0 of the policy) or current (the version with which the iteration begins); of a model: leave it out, the start of the run writes its digest down")
	o.Text("components", &written, onlyComponent+" 1", "the criteria of a verdict and their weights: \"correct 0.7, polite 0.3\"")
	o.Object("criteria", &asks, "what the judge is told of each criterion: {\"correct\": \"is the last answer right?\"}")
	o.Text("scale", &scale, judge.YesNo, "which values the judge may give: "+judge.Scales+". What is paid lies from 0 (no, LEAST) to 1 (yes, MOST)")
	o.Choice("level", &level, "episode", []string{"episode", levelTurn},
		"what a question is about: an episode, paid at its last turn, or each turn by itself, paid there")
	o.Text("prompt", &f.Prompt, "", "the question, a text with {conversation} (or, by turn, {reply}) and {form}, and where wanted {task}, {criteria} and {turn}; absent: Reprise's")
	o.Number("temperature", &f.Temperature, 0, 0, 2, "of the judge's replies")
	o.Int("max_tokens", &f.MaxTokens, 512, 1, 4096, "the most tokens of a reply")
	o.Int("prompt_tokens", &f.PromptTokens, 1024, 16, 1<<16, "of run or a model: the most tokens of a question; an episode with a longer one has no verdict")
	o.Number("unreadable", &f.Unreadable, 0, 0, 1, "the value of each criterion where the judge's reply cannot be read, and neither can its second one at temperature 0")
	o.Int("timeout_seconds", &j.TimeoutSeconds, 0, 0, 3600, "how long one question may take, three times in a row; 0 is 60, or limits.activity_seconds if that is less")
	o.Number("failed_share", &j.FailedShare, 0.05, 0, 1, "the largest share of a rollout's episodes whose questions the server may refuse; beyond it the run pauses")
	if want := judge.BadName(f.Judge); want != "" {
		o.Wrong("judge", want)
	}
	switch {
	case judge.IsModel(f.Judge):
		if f.Model != "" && !canon.IsDigest(f.Model) {
			o.Wrong("model", "absent, or the SHA-256 of the model's folder in the store")
		}
	case !f.Own():
		f.PromptTokens = 0
		if f.Model == "" || len(f.Model) > 200 {
			o.Wrong("model", "the name of a model, of at most 200 bytes")
		}
	case f.Model == "":
		f.Model = judge.First
	case f.Model != judge.First && f.Model != judge.Current:
		o.Wrong("model", "first or current, with the judge run")
	}
	if f.Own() && f.Temperature != 0 {
		o.Wrong("temperature", "0 with the judge run or a model, which write the likeliest tokens")
	}
	var ok bool
	if f.Scale, ok = judge.ParseScale(scale); !ok {
		o.Wrong("scale", judge.Scales)
	}
	f.ByTurn = level == levelTurn
	if f.Prompt == "" {
		f.Prompt = map[bool]string{false: judge.OfEpisode, true: judge.OfTurn}[f.ByTurn]
	}
	if found, allowed := judge.CheckPrompt(f.Prompt, f.ByTurn); found != "" {
		o.WrongFound("prompt", found, allowed)
	}
	var weights []float64
	j.Components, weights = componentsOf(o, written)
	f.Criteria = criteriaOf(o, j.Components, asks, f.ByTurn)
	options, err := json.Marshal(f)
	if err != nil {
		o.WrongFound("", err.Error(), "options that can be written down") // texts and finite numbers always can
	}
	j.Name, j.Options, j.Form, j.ByTurn, j.Episodes = f.Judge, options, &f, f.ByTurn, 1
	return judged(&j, weights)
}

// criteriaOf reads the option criteria: a text for each component. A component of the default's name needs none.
func criteriaOf(o *envs.Options, names []string, asks json.RawMessage, byTurn bool) []judge.Criterion {
	out := make([]judge.Criterion, len(names))
	for i, name := range names {
		out[i].Name = name
		if name == onlyComponent {
			out[i].Asks = map[bool]string{false: onlyOfEpisode, true: onlyOfTurn}[byTurn]
		}
	}
	n, err := strict.Parse(asks, strict.Limits{})
	if err != nil {
		return out // reported by the options
	}
	for _, m := range n.Written() {
		text, isText := m.Value.Text()
		i := slices.Index(names, m.Key)
		switch {
		case i < 0 || m.Again:
			o.WrongFound("criteria", strict.Quote(m.Key), "the names of components, each once: "+strings.Join(names, ", "))
		case !isText || strings.TrimSpace(text) == "" || len(text) > judge.MaxPrompt || !utf8.ValidString(text):
			o.WrongFound("criteria", m.Value.Found()+" of "+strict.Quote(m.Key), fmt.Sprintf("a text of 1 to %d bytes", judge.MaxPrompt))
		default:
			out[i].Asks = text
		}
	}
	for _, c := range out {
		if c.Asks == "" && len(n.Written()) == len(n.Members()) {
			o.WrongFound("criteria", "nothing about "+strict.Quote(c.Name), "a text for each of components: what the judge is told of it")
		}
	}
	return out
}
