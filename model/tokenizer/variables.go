package tokenizer

import (
	"maps"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Variables are what a chat template reads besides the conversation.
type Variables = chat.Variables

// With is the tokenizer whose chat template reads these variables.
func (t *Tokenizer) With(v Variables) (*Tokenizer, error) {
	if len(v) == 0 || t.template == nil {
		return t, nil
	}
	return t.derived(func(with *template) { with.variables = maps.Clone(v) }), nil
}

// derived is the tokenizer with a changed copy of its template, and what follows from it.
func (t *Tokenizer) derived(change func(*template)) *Tokenizer {
	other, with := *t, *t.template
	change(&with)
	other.template = &with
	other.learn()
	return &other
}

// learn finds what follows from the template.
func (t *Tokenizer) learn() {
	t.turns = t.learnTurns()
	t.answers = &answers{}
}

// ChatTemplate is the text of the chat template; "" if there is none.
func (t *Tokenizer) ChatTemplate() string {
	if t.template == nil {
		return ""
	}
	return t.template.source
}
