package tokenizer

import (
	"slices"
	"strings"
	"unicode"

	"github.com/reprise-rl/reprise/model/tokenizer/jinja"
)

// writing is how a template writes a message's content.
type writing int

const (
	asIs writing = iota
	trimmed
	// asJSON is a JSON string without its quotes, which are the template's own text: Llama 3 writes tools' answers so.
	asJSON
	trimmedJSON
)

// of is the content as the template writes it.
func (w writing) of(content string) string {
	if w == trimmed || w == trimmedJSON {
		content = strings.TrimFunc(content, isSpace)
	}
	if w == asJSON || w == trimmedJSON {
		quoted := jinja.Quote(lossyUTF8(content))
		content = quoted[1 : len(quoted)-1]
	}
	return content
}

// isSpace is white space as Python's strip has it: Unicode's, and four separators of ASCII.
func isSpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f }

// manner is how a template writes contents: those of tools, and all others.
type manner struct{ tools, others writing }

// manners are all that can be told apart in a conversation.
func manners(messages []Message) []manner {
	if !slices.ContainsFunc(messages, func(m Message) bool { return m.Role == roleTool }) {
		return []manner{{others: asIs}, {others: trimmed}}
	}
	var all []manner
	for _, tools := range []writing{asIs, trimmed, asJSON, trimmedJSON} {
		all = append(all, manner{tools, asIs}, manner{tools, trimmed})
	}
	return all
}

// contents are those of the messages as they are written.
func (w manner) contents(messages []Message) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		by := w.others
		if m.Role == roleTool {
			by = w.tools
		}
		out[i] = by.of(m.Content)
	}
	return out
}
