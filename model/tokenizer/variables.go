package tokenizer

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Variables are what a chat template reads besides the conversation, by name, as transformers'
// chat_template_kwargs: texts, booleans and numbers (string, bool, int64, float64).
type Variables map[string]any

// ErrVariables is the kind of errors about variables that no template can be given.
var ErrVariables = errors.New("chat template variables")

const (
	maxVariables = 16
	maxVariable  = 1 << 10 // bytes of a text
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// reserved are names that a conversation gives itself.
var reserved = []string{"messages", "add_generation_prompt"}

// ParseVariables reads a JSON object of texts, booleans and numbers. Nothing is the same as
// an empty object.
func ParseVariables(b []byte) (Variables, error) {
	if len(b) == 0 {
		return nil, nil
	}
	n, err := strict.Parse(b, strict.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVariables, err)
	}
	return ReadVariables(n)
}

// ReadVariables is ParseVariables of a JSON value that has been parsed.
func ReadVariables(n strict.Node) (Variables, error) {
	if n.Kind() != strict.Object {
		return nil, fmt.Errorf("%w: found %s, want an object", ErrVariables, n.Found())
	}
	if len(n.Written()) > maxVariables {
		return nil, fmt.Errorf("%w: %d, at most %d are read", ErrVariables, len(n.Written()), maxVariables)
	}
	v := Variables{}
	for _, m := range n.Written() {
		switch {
		case m.Again:
			return nil, fmt.Errorf("%w: %q stands twice", ErrVariables, m.Key)
		case !variableName.MatchString(m.Key) || slices.Contains(reserved, m.Key):
			return nil, fmt.Errorf("%w: %s is no name of a variable", ErrVariables, strict.Quote(m.Key))
		}
		if text, ok := m.Value.Text(); ok && len(text) <= maxVariable {
			v[m.Key] = text
		} else if truth, ok := m.Value.Truth(); ok {
			v[m.Key] = truth
		} else if i, ok := m.Value.Integer(); ok {
			v[m.Key] = i
		} else if f, ok := m.Value.Float(); ok {
			v[m.Key] = f
		} else {
			return nil, fmt.Errorf("%w: %s: found %s, want true, false, a number, or a text of at most %d bytes", ErrVariables, m.Key, m.Value.Found(), maxVariable)
		}
	}
	return v, nil
}

// With is the tokenizer whose chat template reads these variables. Errors are of kind
// ErrRenderer.
func (t *Tokenizer) With(v Variables) (*Tokenizer, error) {
	if len(v) == 0 || t.template == nil {
		return t, nil
	}
	other, with := *t, *t.template
	with.Variables = maps.Clone(v)
	other.template = &with
	return &other, other.learnTail()
}

// Rewritten is an earlier turn that the chat template renders in another way than the context
// keeps it.
type Rewritten struct {
	// Kept is the text of the context from the user's message on: the template's prompt of an
	// assistant's message, and what was sampled.
	Kept string
	// Rendered is the text that the template writes there once another message follows.
	Rendered string
}

// Rewrites reports whether the chat template renders an assistant's earlier message in
// another way than the text that it was sampled in: Qwen3's drops the reasoning of earlier
// turns. said is what is sampled in the probe. Nil means that it does not.
func (t *Tokenizer) Rewrites(said string) (*Rewritten, error) {
	if t.template == nil {
		return nil, ErrNoTemplate
	}
	masked, marks := mask([]Message{{Role: "user"}, {Role: "assistant"}, {Role: "user"}})
	masked[1].Content = said
	prompt, err := t.template.render(masked[:1], true)
	if err != nil {
		return nil, err
	}
	whole, err := t.template.render(masked, true)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(whole, prompt+said) {
		return nil, nil
	}
	_, kept, _ := strings.Cut(prompt, marks[0])
	_, rendered, _ := strings.Cut(whole, marks[0])
	rendered, _, _ = strings.Cut(rendered, marks[2])
	return &Rewritten{Kept: kept + said, Rendered: rendered}, nil
}
