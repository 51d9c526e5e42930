package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// measured is the run that an environment is checked for: it decides how wide prompts are.
type measured struct {
	document []byte
	name     string
	options  json.RawMessage
	train    spec.Train
	given    bool // by a spec of one's own, so that its limits hold
	files    map[string][]byte
	tok      *tokenizer.Tokenizer
}

// measureFor is the run of a spec, or without one a run with a model and defaults. options are the
// environment's; if they are empty, the spec's hold.
func measureFor(ctx context.Context, name string, options json.RawMessage, document []byte, model string) (*measured, error) {
	m := &measured{document: document, name: name, options: options, given: document != nil}
	if document == nil {
		b, err := json.Marshal(map[string]any{
			"environment": map[string]any{"name": foreign.Name, "options": map[string]any{"name": name}},
			"policy":      map[string]any{"from": model, "warm_start": map[string]any{"steps": 0}},
		})
		if err != nil {
			return nil, err
		}
		m.document = b
	}
	t, err := m.decode()
	if err != nil {
		return nil, err
	}
	part := m.part(t)
	if part == nil {
		return nil, fmt.Errorf("the spec has no environment foreign whose option name is %q", name)
	}
	if len(m.options) == 0 {
		_, m.options = part.Server()
	}
	m.train = t
	if m.files, err = host.TokenizerFiles(ctx, t.Policy); err != nil {
		return nil, err
	}
	m.tok, err = run.Tokenizer(t, m.files)
	return m, err
}

// decode reads the spec as the start of a run does.
func (m *measured) decode() (spec.Train, error) {
	t, err := spec.Decode(m.document, run.Known())
	if problems, ok := errors.AsType[spec.Problems](err); ok && !m.given {
		return t, fmt.Errorf("a run in environment %q: %w", m.name, problems)
	}
	return t, err
}

// part is the environment of the spec that is checked; nil if there is none.
func (m *measured) part(t spec.Train) *foreign.Environment {
	for _, p := range t.Environment.Parts() {
		env, err := envs.New(p.Name, p.Options)
		if e, ok := env.(*foreign.Environment); ok && err == nil {
			if name, _ := e.Server(); name == m.name {
				return e
			}
		}
	}
	return nil
}

// widths are those of the contexts, as the start of a run computes them from a description.
func (m *measured) widths(d foreign.Description) ([]int, error) {
	options, err := m.part(m.train).Described(d)
	if err != nil {
		return nil, err
	}
	t := m.train
	t.Environment = spec.Environment{Name: foreign.Name, Options: options}
	t.Evaluation.Suites, t.Rollout.PromptTokens = nil, nil
	t, err = run.WithWidths(t, m.files)
	return t.Rollout.PromptTokens, err
}

// prompts compares the contexts that were met with those that a run has room for, and the longest action
// with the length of a reply.
func (m *measured) prompts(d foreign.Description, met foreign.Met) (note, problem string) {
	room, err := m.widths(d)
	if err != nil {
		return "", err.Error()
	}
	seen := d
	seen.Widest = met.Widest
	needed, err := m.widths(seen)
	if err != nil {
		return "", err.Error()
	}
	if fixed := m.train.Rollout.PromptTokens; fixed != nil {
		room = fixed
	}
	turns := len(room)
	note = fmt.Sprintf("%d turns: the contexts need %d to %d tokens, of %d to %d", turns, needed[0], needed[turns-1], room[0], room[turns-1])
	for i := range room {
		if needed[i] > room[i] {
			return note, fmt.Sprintf("turn %d needs a context of %d tokens, and a run has room for %d: add the widest observation to widest", i+1, needed[i], room[i])
		}
	}
	longest, tokens := m.longest(met.Actions)
	if longest == "" {
		return note, ""
	}
	note += fmt.Sprintf("; an answer with the longest action, %s, has %d", strict.Quote(longest), tokens)
	if most := m.train.Rollout.MaxNewTokens; m.given && tokens > most {
		problem = fmt.Sprintf("no reply can hold the action %s: its answer has %d tokens, rollout.max_new_tokens is %d", strict.Quote(longest), tokens, most)
	}
	return note, problem
}

// longest is the action whose answer has most tokens, with the end of the turn.
func (m *measured) longest(actions []string) (action string, tokens int) {
	for _, a := range actions {
		ids := slices.Concat(m.tok.EncodePlain(" "+a+" "), m.tok.EncodeTag("</answer>"))
		if len(ids)+1 > tokens {
			action, tokens = a, len(ids)+1
		}
	}
	return action, tokens
}
