package envs

import (
	"slices"
	"strings"
)

// Tags of a thought.
const (
	openThink  = "<think>"
	closeThink = "</think>"
)

// open appends the protocol's opening tag to a context, whose last message is this text of a
// user's. A chat template may have opened a thought already, after that message (DeepSeek-R1's,
// Qwen3's of 2507): then a thought is not opened again, and an answer begins after the thought
// has been closed, empty as Qwen3's template writes it for enable_thinking false. So a context
// has at most one open <think>, and <answer> never stands within one.
func (p Protocol) open(tok Tokenizer, ids []int32, user string) []int32 {
	thought, ok := openThought(tok.Decode(ids), strings.TrimSpace(user))
	switch {
	case !ok:
		return slices.Concat(ids, tok.EncodeTag(p.Opening()))
	case p.Think:
		return ids
	}
	const empty = openThink + "\n\n" + closeThink + "\n\n"
	if tail := tok.EncodeTag(thought); strings.TrimSpace(thought) == openThink && len(tail) <= len(ids) {
		if rest := ids[:len(ids)-len(tail)]; slices.Equal(ids[len(rest):], tail) {
			return slices.Concat(rest, tok.EncodeTag(empty+p.Opening()))
		}
	}
	return slices.Concat(ids, tok.EncodeTag(strings.TrimPrefix(empty, openThink)+p.Opening()))
}

// openThought is the text from the <think> on that a template has opened and not closed after
// the user's message.
func openThought(context, user string) (string, bool) {
	own := context
	if i := strings.LastIndex(context, user); i >= 0 && user != "" {
		own = context[i+len(user):]
	} else { // the template has changed the message: only what stands at the end is surely its own
		own = own[max(strings.LastIndex(strings.TrimSpace(own), openThink), 0):]
		if strings.TrimSpace(own) != openThink {
			return "", false
		}
	}
	i := strings.LastIndex(own, openThink)
	if i < 0 || strings.Contains(own[i:], closeThink) {
		return "", false
	}
	return own[i:], true
}
