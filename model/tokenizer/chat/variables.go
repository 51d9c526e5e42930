package chat

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Variables are what a chat template reads besides the conversation, by name, as transformers'
// chat_template_kwargs: texts, booleans and numbers (string, bool, int64, float64).
type Variables map[string]any

// ErrVariables is the kind of errors about variables that no template can be given.
var ErrVariables = errors.New("variables of the chat template")

const (
	maxVariables = 16
	maxVariable  = 1 << 10 // bytes of a text
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// reserved are the names of what a conversation itself gives to a template.
var reserved = []string{"messages", "add_generation_prompt", "tools"}

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
	members := n.Written()
	if len(members) > maxVariables {
		return nil, fmt.Errorf("%w: found %d, at most %d are read", ErrVariables, len(members), maxVariables)
	}
	v := Variables{}
	for _, m := range members {
		switch {
		case m.Again:
			return nil, fmt.Errorf("%w: %s stands twice", ErrVariables, strict.Quote(m.Key))
		case !variableName.MatchString(m.Key) || slices.Contains(reserved, m.Key):
			return nil, fmt.Errorf("%w: %s is not a variable's name", ErrVariables, strict.Quote(m.Key))
		}
		value, ok := variable(m.Value)
		if !ok {
			return nil, fmt.Errorf("%w: %s: found %s, want true, false, a number, or a text of at most %d bytes", ErrVariables, m.Key, m.Value.Found(), maxVariable)
		}
		v[m.Key] = value
	}
	return v, nil
}

func variable(n strict.Node) (any, bool) {
	if text, ok := n.Text(); ok {
		return text, len(text) <= maxVariable
	}
	if truth, ok := n.Truth(); ok {
		return truth, true
	}
	if i, ok := n.Integer(); ok {
		return i, true
	}
	f, ok := n.Float()
	return f, ok
}
