package tokenizer

import (
	"maps"
	"strings"

	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Variables are what a chat template reads besides the conversation.
type Variables = chat.Variables

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
