package openenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/strict"
)

// Options are what a spec says of an environment, since OpenEnv does not: environment.options.options.
type Options struct {
	Instructions           string
	Actions, Examples      []string
	Action, Observation    string
	MaxActions, MaxPerTurn int
	Instances              int
	Widest                 []string
	SuccessReward          float64
	Seed                   string
	Reset                  json.RawMessage
}

// What the option seed may be.
const (
	seedInstance = "instance"
	seedChance   = "chance"
)

// wholeObservation is the option observation for all fields of an observation.
const wholeObservation = "*"

// declare declares the options.
func (p *Options) declare(o *envs.Options) {
	o.Text("instructions", &p.Instructions, "", "the rules, for the first message; without them, the description that the server has in /metadata")
	o.Texts("actions", &p.Actions, "the names of the actions, if every state has the same; other texts are then invalid")
	o.Texts("examples", &p.Examples, "actions as a policy may write them, if any text is one: in place of actions")
	o.Text("action", &p.Action, "", "the field of an action that gets the text, a string or an integer; without it, the one that the schema requires, or the only string")
	o.Text("observation", &p.Observation, "", "the field of an observation that is shown, * for all as JSON; without it, the only string")
	o.Int("max_actions", &p.MaxActions, 10, 1, foreign.MaxSteps, "the most actions of an episode, {range}; 10 if left out")
	o.Int("max_actions_per_turn", &p.MaxPerTurn, 1, 1, foreign.MaxSteps, "the most actions of a turn, {range}; 1 if left out")
	o.Int("instances", &p.Instances, 0, 0, maxSeed, "how many seeds are used, from 0 on; 0: all")
	o.Texts("widest", &p.Widest, "observations, one of them as wide as any that occurs")
	o.Number("success_reward", &p.SuccessReward, 1, -foreign.MaxReward, foreign.MaxReward, "an episode is solved if it ends with a reward of at least this; 1 if left out")
	o.Choice("seed", &p.Seed, seedInstance, []string{seedInstance, seedChance}, "what the seed of reset comes from: instance (if left out), the same for all members of a group; or chance, where the seed does not change the beginning")
	o.Object("reset", &p.Reset, "parameters of reset besides seed and episode_id")
	switch {
	case len(p.Actions) > 0 && len(p.Examples) > 0:
		o.Wrong("examples", "no such option beside actions")
	case len(p.Actions)+len(p.Examples) == 0:
		o.Wrong("actions", "the names of the actions, or examples of them in the option examples")
	}
	if len(p.Widest) == 0 {
		o.Wrong("widest", "at least one observation that is as wide as any")
	}
}

// maxSeed is the greatest seed: NumPy's generators take 32 bits, and others a signed integer.
const maxSeed = 1<<31 - 1

// game is an environment with its options.
type game struct {
	Options
	// version has the server's name and version and a digest of its schemas.
	version string
	// integer says that an action is an integer.
	integer bool
}

// game reads what the server says of itself, and the options.
func (c *Client) game(ctx context.Context, options json.RawMessage) (*game, error) {
	g := &game{}
	if _, problems := envs.ReadOptions(options, g.declare); len(problems) > 0 {
		return nil, fmt.Errorf("%w: options of an environment of OpenEnv's: %w", foreign.ErrAnswer, problems)
	}
	metadata, _, err := c.get(ctx, "/metadata")
	if err != nil {
		return nil, err
	}
	schema, digest, err := c.get(ctx, "/schema")
	if err != nil {
		return nil, err
	}
	name, _ := member(metadata, "name").Text()
	version, _ := member(metadata, "version").Text()
	g.version = fmt.Sprintf("%.80s %.80s %s", name, version, digest)
	if g.Instructions == "" {
		g.Instructions, _ = member(metadata, "description").Text()
	}
	if err := g.actionField(member(schema, "action")); err != nil {
		return nil, err
	}
	return g, g.observationField(member(schema, "observation"))
}

// get reads a JSON object that the server has under a path, and 12 digits of its digest.
func (c *Client) get(ctx context.Context, path string) (strict.Node, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return strict.Node{}, "", fmt.Errorf("%w: %w", foreign.ErrAnswer, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return strict.Node{}, "", fmt.Errorf("%w: %w", errLost, err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMessage+1))
	switch {
	case err != nil:
		return strict.Node{}, "", fmt.Errorf("%w: %w", errLost, err)
	case response.StatusCode/100 == 5:
		return strict.Node{}, "", fmt.Errorf("%w: GET %s: %s", errLost, c.base+path, response.Status)
	case response.StatusCode != http.StatusOK:
		return strict.Node{}, "", fmt.Errorf("%w: GET %s: %s, want an environment of OpenEnv's", foreign.ErrAnswer, c.base+path, response.Status)
	case len(body) > maxMessage:
		return strict.Node{}, "", fmt.Errorf("%w: GET %s: more than %d bytes", foreign.ErrFlood, c.base+path, maxMessage)
	}
	n, err := strict.Parse(body, strict.Limits{Bytes: maxMessage, Depth: 64})
	if err != nil || n.Kind() != strict.Object {
		return strict.Node{}, "", fmt.Errorf("%w: GET %s: %s, want a JSON object", foreign.ErrAnswer, c.base+path, strict.Quote(string(body)))
	}
	sum := sha256.Sum256(body)
	return n, hex.EncodeToString(sum[:6]), nil
}

// field is a property of a schema.
type field struct {
	name     string
	kinds    []string // the JSON types that it may have
	required bool
}

// fields are the properties of a schema, without those that every action or observation has.
func fields(schema strict.Node) []field {
	var required []string
	for _, n := range member(schema, "required").Items() {
		name, _ := n.Text()
		required = append(required, name)
	}
	var out []field
	for _, m := range member(schema, "properties").Members() {
		if m.Key == "metadata" || m.Key == "done" || m.Key == "reward" {
			continue
		}
		f := field{name: m.Key, required: slices.Contains(required, m.Key)}
		for _, n := range append([]strict.Node{m.Value}, member(m.Value, "anyOf").Items()...) {
			if kind, ok := member(n, "type").Text(); ok {
				f.kinds = append(f.kinds, kind)
			}
		}
		out = append(out, f)
	}
	return out
}

// only is the only one of some fields that is as wanted.
func only(all []field, wanted func(field) bool) (field, bool) {
	var found []field
	for _, f := range all {
		if wanted(f) {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		return field{}, false
	}
	return found[0], true
}

func (f field) text() bool  { return slices.Contains(f.kinds, "string") }
func (f field) whole() bool { return slices.Contains(f.kinds, "integer") }

// names lists fields.
func names(all []field) string {
	var out []string
	for _, f := range all {
		out = append(out, f.name)
	}
	return strings.Join(out, ", ")
}

// actionField finds the field of an action that gets the text.
func (g *game) actionField(schema strict.Node) error {
	all := fields(schema)
	f, ok := only(all, func(f field) bool { return f.name == g.Action })
	if g.Action == "" {
		if f, ok = only(all, func(f field) bool { return f.required }); !ok {
			f, ok = only(all, field.text)
		}
	}
	if !ok || !f.text() && !f.whole() {
		return fmt.Errorf("%w: which field of an action gets the text? The option action names one that is a string or an integer; the schema has %s", foreign.ErrAnswer, names(all))
	}
	g.Action, g.integer = f.name, !f.text()
	return nil
}

// observationField finds the field of an observation that is shown.
func (g *game) observationField(schema strict.Node) error {
	all := fields(schema)
	if g.Observation == wholeObservation {
		return nil
	}
	f, ok := only(all, func(f field) bool { return f.name == g.Observation })
	if g.Observation == "" {
		f, ok = only(all, field.text)
	}
	if !ok {
		return fmt.Errorf("%w: which field of an observation is shown? The option observation names one, or * for all; the schema has %s", foreign.ErrAnswer, names(all))
	}
	g.Observation = f.name
	return nil
}

// describe is the answer to EnvDescribe. It resets the environment twice with each of two seeds: one
// whose beginning differs under one seed drops it.
func (c *Client) describe(ctx context.Context, options json.RawMessage) (any, error) {
	g, err := c.game(ctx, options)
	if err != nil {
		return nil, err
	}
	for _, seed := range []uint64{1, 2} {
		var begun [2]string
		for i := range begun {
			if err := c.with(ctx, func(s *session) (err error) {
				begun[i], _, err = g.reset(ctx, s, asked{Instance: seed, Chance: seed})
				return err
			}); err != nil {
				return nil, err
			}
		}
		if begun[0] != begun[1] {
			return nil, fmt.Errorf("%w: its chance does not depend on the seed: reset with seed %d showed %s, and then %s. OpenEnv drops a seed that the environment's reset does not declare: write reset(self, seed=None, episode_id=None), and draw from random.Random(seed)",
				foreign.ErrAnswer, seed, strict.Quote(begun[0]), strict.Quote(begun[1]))
		}
	}
	return map[string]any{
		"protocol": foreign.Version, "version": g.version, "instructions": g.Instructions, "actions": g.actions(),
		"max_actions": g.MaxActions, "max_actions_per_turn": g.MaxPerTurn, "instances": g.Instances, "widest": g.Widest, "replayable": true,
	}, nil
}

// actions are the names of the actions; nil if any text is one.
func (g *game) actions() []string {
	if len(g.Actions) == 0 {
		return nil
	}
	return g.Actions
}

// choices are what an answer names as legal actions.
func (g *game) choices() []string {
	if len(g.Actions) > 0 {
		return nil
	}
	return g.Examples
}

// reset begins an episode and gives its first observation.
func (g *game) reset(ctx context.Context, s *session, e asked) (observation string, done bool, err error) {
	from := e.Instance
	if g.Seed == seedChance {
		from = e.Chance
	}
	count := uint64(maxSeed)
	if g.Instances > 0 {
		count = uint64(g.Instances)
	}
	data := map[string]any{}
	for _, m := range optionsOf(g.Reset) {
		data[m.Key] = json.RawMessage(m.Value.Raw())
	}
	data["seed"] = from % count
	data["episode_id"] = fmt.Sprintf("%d-%d", e.Instance, e.Chance)
	begun, err := s.ask(ctx, "reset", data)
	if r := (*refused)(nil); errors.As(err, &r) && r.code == codeInvalid {
		return "", false, fmt.Errorf("%w: reset: %s; the option reset has its other parameters", foreign.ErrAnswer, r)
	}
	if err != nil {
		return "", false, err
	}
	observation, err = g.shown(begun)
	return observation, begun.done, err
}

func optionsOf(object json.RawMessage) []strict.Member {
	n, err := strict.Parse(object, strict.Limits{})
	if err != nil { // it was read before
		return nil
	}
	return n.Members()
}

// shown is what a policy sees of a state.
func (g *game) shown(s state) (string, error) {
	n := s.observation
	if g.Observation != wholeObservation {
		n = member(n, g.Observation)
	}
	text := n.Raw()
	switch n.Kind() {
	case strict.Null:
		text = ""
	case strict.String:
		text, _ = n.Text()
	}
	if len(text) > foreign.MaxText {
		return "", fmt.Errorf("%w: an observation of %d bytes, at most %d are taken", foreign.ErrFlood, len(text), foreign.MaxText)
	}
	return text, nil
}

// action is the message of an action, and its name; false if it is not legal.
func (g *game) action(text string) (data map[string]any, name string, ok bool) {
	name = strings.TrimSpace(text)
	if len(g.Actions) > 0 {
		at := slices.IndexFunc(g.Actions, func(a string) bool { return strings.EqualFold(a, name) })
		if at < 0 {
			return nil, "", false
		}
		name = g.Actions[at]
	}
	if !envs.Writable(name) || len(name) > foreign.MaxAction {
		return nil, "", false
	}
	if !g.integer {
		return map[string]any{g.Action: name}, name, true
	}
	n, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return nil, "", false
	}
	return map[string]any{g.Action: n}, strconv.FormatInt(n, 10), true
}

// play plays an episode from its beginning in a new session. An error is one of the session's.
func (g *game) play(ctx context.Context, s *session, e asked) (any, error) {
	out := answer{Instance: e.Instance, Chance: e.Chance, Choices: g.choices(), Steps: []step{}}
	var err error
	if out.Observation, out.Done, err = g.reset(ctx, s, e); err != nil {
		return nil, err
	}
	out.Chain = foreign.Begin(out.Observation)
	for _, text := range e.Played {
		if _, legal, err := g.take(ctx, s, &out, text); err != nil {
			return nil, err
		} else if !legal {
			break // what was played cannot be played: the chain differs
		}
	}
	if e.Chain != "" && e.Chain != out.Chain {
		away := drifted{Instance: e.Instance, Chance: e.Chance}
		away.Drift.Chain = out.Chain
		return away, nil
	}
	for _, text := range e.Next {
		if out.Done {
			break
		}
		taken, legal, err := g.take(ctx, s, &out, text)
		if err != nil {
			return nil, err
		}
		if legal {
			out.Steps = append(out.Steps, taken)
		} else {
			out.Invalid++
		}
	}
	return out, nil
}

// take plays an action, which may not be legal, and brings the answer up to date.
func (g *game) take(ctx context.Context, s *session, out *answer, text string) (taken step, legal bool, err error) {
	data, name, ok := g.action(text)
	if !ok || out.Done {
		return step{}, false, nil
	}
	after, err := s.ask(ctx, "step", data)
	if r := (*refused)(nil); errors.As(err, &r) && r.code == codeInvalid {
		return step{}, false, nil
	}
	if err != nil {
		return step{}, false, err
	}
	taken = step{Action: name, Reward: after.reward}
	if taken.Observation, err = g.shown(after); err != nil {
		return step{}, false, err
	}
	value, _ := strconv.ParseFloat(string(after.reward), 64) // it was a number
	taken.Effective = taken.Observation != out.Observation
	out.Observation, out.Done = taken.Observation, after.done
	out.Success = after.done && value >= g.SuccessReward
	out.Chain = foreign.Extend(out.Chain, foreign.Step{Action: name, RewardText: string(after.reward), Observation: taken.Observation},
		out.Done, out.Success)
	return taken, true, nil
}
