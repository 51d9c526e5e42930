package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// turns is what follows from a chat template for conversations of several turns: a system's
// message perhaps, a user's, and then an assistant's and a user's for each further turn.
type turns struct {
	// closing is the special token that the template writes after an assistant's content, or -1.
	closing int32
	// tail is the template's text between that token and the next assistant's content, before
	// and after the user's content.
	tail [2]string
	// trims says that the template trims white space off a user's content.
	trims bool
	// system says that the probes begin with a system's message.
	system bool
	// refused says why there is no continuation, or is nil.
	refused error
}

// probedTurns is how many turns a template is probed with.
const probedTurns = 4

// learnTurns renders conversations of one to four turns, to find what the template writes
// between an assistant's content and the next one's. It must be the same in each turn and in
// each rendering, because a context only grows: what was sent stays, whatever the template
// would write later. What stands before an assistant's content may change in later renderings;
// Rewrites reports that.
func (t *Tokenizer) learnTurns() turns {
	with, err := t.probe(true)
	without, errWithout := t.probe(false)
	switch {
	case err != nil && (errWithout != nil || errors.Is(err, errOrder)):
		return turns{closing: -1, refused: fmt.Errorf("%w: a conversation of %d turns: %w", ErrTemplate, probedTurns, err)}
	case err != nil:
		return t.compareTurns(without, false)
	}
	found := t.compareTurns(with, true)
	if other := t.compareTurns(without, false); errWithout == nil && found.refused == nil &&
		(other.refused != nil || other.closing != found.closing || other.tail != found.tail || other.trims != found.trims) {
		found.refused = fmt.Errorf("%w: between turns it writes %q if the conversation begins with a system message, and something else if not",
			ErrTemplate, found.tail)
	}
	return found
}

// errOrder is the kind of the error about a rendering that does not show each message once.
var errOrder = errors.New("it does not write each message once and in order")

// rendering is the template's own text in a conversation: before each message's content, and
// after the last.
type rendering []string

// probe renders conversations of one, two and more turns, and the longest again with white space
// around the last user's content, which is what spaced says it keeps.
func (t *Tokenizer) probe(system bool) (rendered []rendering, err error) {
	messages := []Message{{Role: "user"}}
	if system {
		messages = slices.Insert(messages, 0, Message{Role: "system"})
	}
	for range probedTurns {
		masked, marks := mask(messages)
		r, err := t.own(masked, marks)
		if err != nil {
			return nil, err
		}
		rendered = append(rendered, r)
		messages = append(messages, Message{Role: "assistant"}, Message{Role: "user"})
	}
	masked, marks := mask(messages[:len(messages)-2])
	masked[len(masked)-1].Content = spaceBefore + marks[len(marks)-1] + spaceAfter
	r, err := t.own(masked, marks)
	return append(rendered, r), err
}

// White space around a content, to see whether the template trims it.
const spaceBefore, spaceAfter = " \n", "\n "

// own is the template's own text around the placeholders of a conversation.
func (t *Tokenizer) own(masked []Message, marks []string) (rendering, error) {
	text, err := t.template.render(masked, true)
	if err != nil {
		return nil, err
	}
	var r rendering
	if masked[0].Role == "system" && !strings.Contains(text, marks[0]) {
		r, marks = rendering{""}, marks[1:] // the template drops it
	}
	parts, ok := fill(text, marks, marks)
	if !ok {
		return nil, fmt.Errorf("%w: %s: %q", errOrder, disorder(text, masked[len(masked)-len(marks):], marks), unmasked(text, marks))
	}
	for _, p := range parts {
		if p.own {
			r = append(r, p.text)
		}
	}
	return r, nil
}

// disorder says which message is missing or stands twice.
func disorder(text string, masked []Message, marks []string) string {
	for i, m := range marks {
		switch n := strings.Count(text, m); n {
		case 1:
		case 0:
			return fmt.Sprintf("‹message %d›, the %s's, is missing", i+1, masked[i].Role)
		default:
			return fmt.Sprintf("‹message %d›, the %s's, stands there %d times after %d messages", i+1, masked[i].Role, n, len(marks))
		}
	}
	return "another order"
}

// unmasked names the placeholders in a text.
func unmasked(text string, marks []string) string {
	for i, m := range marks {
		text = strings.ReplaceAll(text, m, fmt.Sprintf("‹message %d›", i+1))
	}
	return text
}

// compareTurns compares the renderings of probe turn by turn.
func (t *Tokenizer) compareTurns(rendered []rendering, system bool) turns {
	found := turns{closing: -1, system: system}
	if rendered == nil {
		return found
	}
	refuse := func(format string, a ...any) turns {
		found.refused = fmt.Errorf("%w: "+format, append([]any{ErrTemplate}, a...)...)
		return found
	}
	first := 1 // the assistant's first message
	if system {
		first = 2
	}
	last := rendered[probedTurns-1]
	between, after := rendered[1][first+1], rendered[1][first+2]
	rest, token := between, ""
	text := strings.TrimLeftFunc(between, unicode.IsSpace)
	for _, a := range slices.Concat(t.added, t.addedNormalized) {
		if strings.HasPrefix(text, a.content) && len(a.content) > len(token) {
			found.closing, token, rest = a.id, a.content, text[len(a.content):]
		}
	}
	for n, r := range rendered[:probedTurns] { // n+1 turns
		for i := range first + 2*n {
			turn := (i - first + 3) / 2
			switch assistant := i >= first && (i-first)%2 == 0; {
			case i < first && r[i] != last[i]:
				return refuse("before message %d it writes %q in a conversation of %d turns, and %q in one of %d", i+1, r[i], n+1, last[i], probedTurns)
			case i > first && !assistant && r[i] != between:
				return refuse("before the user's message of turn %d it writes %q in a conversation of %d turns, and in turn 2 %q", turn, r[i], n+1, between)
			}
		}
		if end := r[len(r)-1]; n > 0 && end != after {
			return refuse("after the user's message of turn %d it writes %q, and in turn 2 %q", n+1, end, after)
		}
	}
	if found.closing < 0 {
		return refuse("it does not close an assistant's message with a special token: between it and the next user's message stands %q", between)
	}
	found.tail = [2]string{rest, after}
	spaced := rendered[probedTurns]
	before, behind := spaced[len(spaced)-2], spaced[len(spaced)-1]
	switch {
	case before == between && behind == after:
		found.trims = true
	case before != between+spaceBefore || behind != spaceAfter+after:
		return refuse("it changes the white space around a user's message: %q becomes %q",
			between+spaceBefore+"…"+spaceAfter+after, before+"…"+behind)
	}
	return found
}

// user is how the template writes a user's content.
func (t turns) user() writing {
	if t.trims {
		return trimmed
	}
	return asIs
}

// opening are the messages with which a conversation begins in a probe.
func (t *Tokenizer) opening() []Message {
	if t.turns.system {
		return []Message{{Role: "system"}, {Role: "user"}}
	}
	return []Message{{Role: "user"}}
}

// Rewritten is an earlier turn that the chat template renders in another way than the context
// keeps it.
type Rewritten struct {
	// Kept is the text of the context from the user's message on: the template's prompt of an
	// assistant's message, and what was sampled. The closing token follows.
	Kept string
	// Rendered is the text that the template writes there once another message follows.
	Rendered string
}

// Rewrites reports whether the chat template renders an assistant's earlier message in
// another way than the text that it was sampled in: Qwen3's drops the reasoning of earlier
// turns, Llama 2's sets a space before the closing token. said is what is sampled in the
// probe. Nil means that it does not.
func (t *Tokenizer) Rewrites(said string) (*Rewritten, error) {
	if t.template == nil {
		return nil, ErrNoTemplate
	}
	closing, err := t.Closing()
	if err != nil {
		return nil, err
	}
	masked, marks := mask(append(t.opening(), Message{Role: "assistant"}, Message{Role: "user"}))
	user := len(masked) - 3
	masked[user+1].Content = said
	prompt, err := t.template.render(masked[:user+1], true)
	if err != nil {
		return nil, err
	}
	whole, err := t.template.render(masked, true)
	if err != nil {
		return nil, err
	}
	kept := prompt + said
	if strings.HasPrefix(whole, kept+t.text[closing]) {
		return nil, nil
	}
	_, kept, _ = strings.Cut(kept, marks[user])
	_, rendered, _ := strings.Cut(whole, marks[user])
	rendered, _, _ = strings.Cut(rendered, marks[user+2])
	return &Rewritten{Kept: kept, Rendered: rendered}, nil
}
