package tokenizer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// part is a part of a rendered conversation: text of the template or a message's content.
type part struct {
	text string
	own  bool // text of the template, in which special tokens are recognised
}

// Template renders a conversation and encodes the text, as transformers'
// apply_chat_template does: it recognises special tokens everywhere, also in contents. Use
// EncodeChat for conversations that contain text from outside.
func (t *Tokenizer) Template(messages []Message, addGenerationPrompt bool) (text string, ids []int32, err error) {
	if t.template == nil {
		return "", nil, ErrNoTemplate
	}
	if text, err = t.template.render(messages, addGenerationPrompt); err != nil {
		return "", nil, err
	}
	return text, t.encodeSpecial([]int32{}, text), nil
}

// EncodeChat returns the ids of a rendered conversation. It recognises special tokens only
// in the template's own text: a content that contains the text of one stays plain text.
// If no content does, the ids are the same as Template's.
//
// The conversation is rendered twice, with its contents and with placeholders, to find
// which text is the template's own. Between two special tokens of the template, its text
// and the contents are encoded as one piece. This works for contents that the template leaves as
// they are or trims, and for answers of tools that it writes as JSON strings. A conversation whose
// contents it changes in another way is encoded as a whole if no content contains the text of an
// added token and both renderings have the same special tokens; otherwise the result is an
// ErrRewritten. Calls of tools (Message.ToolCalls) are the template's own text: the result is an
// ErrRewritten if one of their texts contains an added token.
func (t *Tokenizer) EncodeChat(messages []Message, addGenerationPrompt bool) ([]int32, error) {
	if t.template == nil {
		return nil, ErrNoTemplate
	}
	text, err := t.template.render(messages, addGenerationPrompt)
	if err != nil {
		return nil, err
	}
	for i, m := range messages {
		if err := t.checkCalls(m); err != nil {
			return nil, fmt.Errorf("%w: message %d: %w", ErrRewritten, i, err)
		}
	}
	masked, marks := mask(messages)
	pattern, err := t.template.render(masked, addGenerationPrompt)
	if err != nil {
		return nil, err
	}
	for _, w := range manners(messages) {
		if parts, ok := fill(pattern, marks, w.contents(messages)); ok && joined(parts) == text {
			return t.encodeParts(parts, true), nil
		}
	}
	for i, m := range messages {
		if len(t.specials(m.Content)) > 0 {
			return nil, fmt.Errorf("%w, and message %d spells a special token", ErrRewritten, i)
		}
	}
	if !slices.Equal(t.specials(text), t.specials(pattern)) {
		return nil, fmt.Errorf("%w: their contents change its special tokens", ErrRewritten)
	}
	return t.encodeSpecial([]int32{}, text), nil
}

// Continuation returns the ids that follow the closing token of an assistant's message:
// the template's text after it, the user's message (plain text), and the prompt of the next
// assistant's message. A conversation that starts with EncodeChat never encodes an earlier
// turn again.
func (t *Tokenizer) Continuation(user string) ([]int32, error) {
	if t.template == nil {
		return nil, ErrNoTemplate
	}
	if t.turns.refused != nil {
		return nil, t.turns.refused
	}
	user = t.turns.user().of(user)
	return t.encodeParts([]part{{t.turns.tail[0], true}, {user, false}, {t.turns.tail[1], true}}, false), nil
}

// Closing returns the special token with which the chat template closes an assistant's
// message ("<|im_end|>"), or an error that says why no turn can follow another.
func (t *Tokenizer) Closing() (int32, error) {
	switch {
	case t.template == nil:
		return 0, ErrNoTemplate
	case t.turns.refused != nil:
		return 0, t.turns.refused
	}
	return t.turns.closing, nil
}

// mask replaces the contents by placeholders that occur in none of them. A message with calls and without a content
// keeps that, because templates ask for it; its placeholder is "".
func mask(messages []Message) (masked []Message, marks []string) {
	for salt := 0; ; salt++ {
		masked, marks = make([]Message, len(messages)), make([]string, len(messages))
		free := true
		for i, m := range messages {
			// These are private-use runes, which no template trims, splits or compares.
			marks[i] = "\ue000" + strconv.Itoa(salt) + "\ue001" + strconv.Itoa(i) + "\ue002"
			if m.Content == "" && len(m.ToolCalls) > 0 {
				marks[i] = ""
			}
			masked[i] = Message{Role: m.Role, Content: marks[i], ToolCalls: m.ToolCalls}
			free = free && !strings.Contains(m.Content, "\ue000"+strconv.Itoa(salt)+"\ue001")
		}
		if free {
			return masked, marks
		}
	}
}

// fill replaces the placeholders by the contents, in order. It returns false if a
// placeholder is missing, repeated or out of order.
func fill(pattern string, marks, contents []string) ([]part, bool) {
	var parts []part
	for i, mark := range marks {
		if mark == "" {
			continue
		}
		if strings.Count(pattern, mark) != 1 {
			return nil, false
		}
		before, after, _ := strings.Cut(pattern, mark)
		parts = append(parts, part{before, true}, part{contents[i], false})
		pattern = after
	}
	return append(parts, part{pattern, true}), true
}

func joined(parts []part) string {
	var s strings.Builder
	for _, p := range parts {
		s.WriteString(p.text)
	}
	return s.String()
}
