package tokenizer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/model/tokenizer/jinja"
)

// template is a chat template that can be parsed. It can read the messages,
// add_generation_prompt, the tools, the special tokens and its variables; documents are none, as
// transformers passes them. strftime_now, which some templates ask for, is not defined: a prompt
// does not depend on the day.
type template struct {
	source    string
	parsed    *jinja.Template
	tokens    map[string]string // bos_token, eos_token, pad_token
	variables Variables
	tools     []any // as transformers passes them; nil without tools
}

// newTemplate returns an error if the template cannot be parsed.
func newTemplate(source string, tokens map[string]string) (*template, error) {
	parsed, err := jinja.Parse(source)
	if err != nil {
		return nil, err
	}
	return &template{source: source, parsed: parsed, tokens: tokens}, nil
}

// render writes the conversation as text. Errors are of kind ErrTemplate.
func (t *template) render(messages []Message, addGenerationPrompt bool) (string, error) {
	list := make([]any, len(messages))
	for i, m := range messages {
		message := jinja.Map{{Key: "role", Value: m.Role}, {Key: "content", Value: m.Content}}
		if len(m.ToolCalls) > 0 {
			calls, err := toolCalls(m.ToolCalls)
			if err != nil {
				return "", fmt.Errorf("%w: message %d: %w", ErrTemplate, i, err)
			}
			message = append(message, jinja.Pair{Key: "tool_calls", Value: calls})
		}
		list[i] = message
	}
	var tools any // none is no empty list
	if len(t.tools) > 0 {
		tools = t.tools
	}
	given := jinja.Map{
		{Key: "messages", Value: list},
		{Key: "add_generation_prompt", Value: addGenerationPrompt},
		{Key: "tools", Value: tools},
		{Key: "documents", Value: nil},
	}
	for _, name := range slices.Sorted(maps.Keys(t.tokens)) {
		given = append(given, jinja.Pair{Key: name, Value: t.tokens[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(t.variables)) {
		given = append(given, jinja.Pair{Key: name, Value: t.variables[name]})
	}
	text, err := t.parsed.Render(given)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	return text, nil
}
