// Package chat defines the message type shared by environments, which write
// conversations, and tokenizers, which encode them.
package chat

// Message is one message of a conversation, with the keys chat templates expect.
type Message struct {
	// Role is "system", "user" or "assistant".
	Role string `json:"role"`
	// Content is plain text; none of it becomes a special token.
	Content string `json:"content"`
}
