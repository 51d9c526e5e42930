// Package chat is the one type that environments, which write conversations,
// and tokenizers, which encode them, have in common.
package chat

// Message is one message of a conversation, with the keys chat templates expect.
type Message struct {
	// Role is "system", "user" or "assistant".
	Role string `json:"role"`
	// Content is plain text: whatever it says, it never becomes a special token.
	Content string `json:"content"`
}
