package foreign

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the name under which foreign environments are registered: which one it is, is an
// option.
const Name = "foreign"

func init() {
	envs.RegisterOutside(Name, "An environment of your own, which a worker's process plays: see docs/own-environments.md.", newEnvironment)
}

// Environment is a foreign environment as its description has it. Its episodes are played
// elsewhere. What it knows of them is a recording; without one, its episodes are imagined: they
// show the widest texts in turn, whatever is done, and reward nothing. Imagined episodes measure
// the widths of prompts and teach a starter the form of a reply. Nothing else may use them.
type Environment struct {
	server      string
	options     json.RawMessage
	description Description
	described   bool
	recording   *Recording
}

// newEnvironment reads the options of a spec.
func newEnvironment(o *envs.Options) envs.Environment {
	var e Environment
	var description json.RawMessage
	o.Text("name", &e.server, "", "which environment: the NAME of the worker's --env-process NAME=COMMAND")
	o.Object("options", &e.options, "the options that the environment itself gets")
	o.Object("description", &description, "what the environment said of itself; leave it out: the start of the run writes it down")
	if problem := BadName(e.server); problem != "" {
		o.Wrong("name", problem)
	}
	if string(description) == `{}` {
		return &e
	}
	var err error
	if e.description, err = ReadDescription(description); err != nil {
		o.Wrong("description", "what the environment answers to EnvDescribe, or no such option: "+err.Error())
	}
	e.described = err == nil
	return &e
}

// BadName says what a name must be if it is not that; "" if it is.
func BadName(name string) string {
	const want = "the name of an environment that a worker serves: 1 to 64 lower-case letters, digits, dots, dashes and underscores"
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return want
	}
	return ""
}

// Server is the environment's own name and the options that it gets.
func (e *Environment) Server() (name string, options json.RawMessage) { return e.server, e.options }

// Description is what the environment said of itself. It is false if the options do not have
// that yet.
func (e *Environment) Description() (Description, bool) { return e.description, e.described }

// Described are the options of a spec with a description in them.
func (e *Environment) Described(d Description) (json.RawMessage, error) {
	b, err := json.Marshal(struct {
		Name        string          `json:"name"`
		Options     json.RawMessage `json:"options"`
		Description json.RawMessage `json:"description"`
	}{e.server, orEmpty(e.options), d.json()})
	if err != nil {
		return nil, fmt.Errorf("options of environment %s: %w", e.server, err)
	}
	return b, nil
}

// Undescribed are the options of a spec without a description in them.
func (e *Environment) Undescribed() (json.RawMessage, error) {
	b, err := json.Marshal(struct {
		Name    string          `json:"name"`
		Options json.RawMessage `json:"options"`
	}{e.server, orEmpty(e.options)})
	if err != nil {
		return nil, fmt.Errorf("options of environment %s: %w", e.server, err)
	}
	return b, nil
}

// json is the description as a server writes it.
func (d Description) json() json.RawMessage {
	return encode(struct {
		Protocol          int      `json:"protocol"`
		Version           string   `json:"version"`
		Instructions      string   `json:"instructions"`
		Actions           []string `json:"actions"`
		MaxActions        int      `json:"max_actions"`
		MaxActionsPerTurn int      `json:"max_actions_per_turn"`
		Instances         int64    `json:"instances"`
		Widest            []string `json:"widest"`
		Replayable        bool     `json:"replayable"`
	}{Version, d.Version, d.Instructions, d.Actions, d.MaxActions, d.MaxActionsPerTurn, d.Instances, d.Widest, d.Replayable})
}

// With is the environment with a recording.
func (e *Environment) With(r *Recording) *Environment {
	recorded := *e
	recorded.recording = r
	return &recorded
}

// Name implements envs.Environment.
func (e *Environment) Name() string { return Name }

// Instructions implements envs.Environment.
func (e *Environment) Instructions() string { return e.description.Instructions }

// Actions implements envs.Environment.
func (e *Environment) Actions() []string { return e.description.Actions }

// Examples implements envs.Exemplary: the actions, if every state has the same. Others are not known
// where prompts are measured.
func (e *Environment) Examples(envs.Episode) []string { return e.description.Actions }

// MaxActions implements envs.Environment.
func (e *Environment) MaxActions() int { return e.description.MaxActions }

// MaxActionsPerTurn implements envs.Environment.
func (e *Environment) MaxActionsPerTurn() int { return e.description.MaxActionsPerTurn }

// Reset implements envs.Environment: an episode of the recording, or an imagined one.
func (e *Environment) Reset(instance, chance draw.Address) envs.Episode {
	if e.recording != nil {
		return e.recording.episode(Number(instance), Number(chance))
	}
	return &imagined{env: e, at: int(Number(instance) % uint64(max(len(e.description.Widest), 1)))}
}

// Cases implements envs.Environment: an imagined episode for each of the widest texts.
func (e *Environment) Cases() []envs.Episode {
	var cases []envs.Episode
	for i := range e.description.Widest {
		cases = append(cases, &imagined{env: e, at: i})
	}
	return cases
}

// imagined is an episode that nobody plays.
type imagined struct {
	env *Environment
	at  int // of the widest texts
}

// Observation implements envs.Episode.
func (i *imagined) Observation() string {
	texts := i.env.description.Widest
	if len(texts) == 0 {
		return ""
	}
	return texts[i.at%len(texts)]
}

// Legal implements envs.Episode.
func (i *imagined) Legal(action string) (string, bool) {
	at := slices.IndexFunc(i.env.description.Actions, func(a string) bool { return strings.EqualFold(a, action) })
	if at < 0 {
		return "", false
	}
	return i.env.description.Actions[at], true
}

// Choices implements envs.Episode.
func (i *imagined) Choices() []string { return i.env.description.Actions }

// Step implements envs.Episode.
func (i *imagined) Step(string) envs.Outcome {
	i.at++
	return envs.Outcome{Effective: true}
}

// StateKey implements envs.Episode.
func (i *imagined) StateKey() string { return stateKey(i.Observation()) }

// Done implements envs.Episode.
func (i *imagined) Done() bool { return false }

// Success implements envs.Episode.
func (i *imagined) Success() bool { return false }

// stateKey names a state by what it shows: what else a foreign environment's state has is not
// known here. GiGPO's authors group the states of text environments so too.
func stateKey(observation string) string { return digest(observation)[:32] }
