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
	other, with := *t, *t.template
	with.variables = maps.Clone(v)
	other.template = &with
	other.turns = other.learnTurns()
	return &other, nil
}
