// Package chat defines the message type shared by environments, which write
// conversations, and tokenizers, which encode them.
package chat

import "encoding/json"

// Message is one message of a conversation, with the keys chat templates expect.
type Message struct {
	// Role is "system", "user", "assistant" or "tool", which says what a tool answered.
	Role string `json:"role"`
	// Content is plain text; none of it becomes a special token.
	Content string `json:"content"`
	// ToolCalls are calls of tools as transformers has them, which chat templates write in their family's form:
	// [{"type":"function","function":{"name":…,"arguments":{…}}}]. A sampled reply has its calls in Content.
	ToolCalls json.RawMessage `json:"tool_calls,omitempty"`
}

// Tool is what a policy may call, as chat templates get it: {"type":"function","function":{…}}.
type Tool struct {
	// Name is 1 to 64 letters, digits, dashes and underscores.
	Name string `json:"name"`
	// Description says what it does. It is text from outside: a tokenizer refuses a tool whose texts contain a special
	// token of its own.
	Description string `json:"description"`
	// Parameters is the JSON Schema of the arguments, of type object.
	Parameters json.RawMessage `json:"parameters"`
}
