package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// The roles of messages.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// ErrMessages is the kind of errors about messages that cannot follow an assistant's.
var ErrMessages = errors.New("messages after an assistant's")

// maxAnswers is how many answers of tools may follow a reply.
const maxAnswers = 64

// shape says which messages follow an assistant's: answers of tools, then perhaps a user's.
type shape struct {
	tools int
	user  bool
}

// onlyUser is the shape that Continuation has.
var onlyUser = shape{user: true}

func shapeOf(messages []Message) (s shape, err error) {
	for i, m := range messages {
		switch {
		case len(m.ToolCalls) > 0:
			return s, fmt.Errorf("%w: message %d, the %s's, has calls of tools", ErrMessages, i, m.Role)
		case m.Role == roleTool && !s.user:
			s.tools++
		case m.Role == roleUser && i == len(messages)-1:
			s.user = true
		default:
			return s, fmt.Errorf("%w: message %d is of role %q; those of tools come first, and a user's is the last", ErrMessages, i, m.Role)
		}
	}
	if len(messages) == 0 || s.tools > maxAnswers {
		return s, fmt.Errorf("%w: %d, want 1 to %d", ErrMessages, len(messages), maxAnswers)
	}
	return s, nil
}

// String describes a shape in errors.
func (s shape) String() string {
	text := fmt.Sprintf("%d answers of tools", s.tools)
	switch {
	case s == onlyUser:
		return "a user's message"
	case s.tools == 1:
		text = "an answer of a tool"
	}
	if s.user {
		text += " and a user's message"
	}
	return text
}

// messages are those of a shape, without contents.
func (s shape) messages() []Message {
	list := slices.Repeat([]Message{{Role: roleTool}}, s.tools)
	if s.user {
		list = append(list, Message{Role: roleUser})
	}
	return list
}

// answers are the shapes that a template has been probed with. It may be used by several goroutines.
type answers struct{ found sync.Map } // shape: *answer

// answer is what a template writes for a shape.
type answer struct {
	// own is the template's text after the closing token of the assistant's message: before each content, and after
	// the last one.
	own []string
	// write is how it writes contents.
	write manner
	// refused says why there is no continuation, or is nil.
	refused error
}

// ContinuationOf returns the ids that follow the closing token of an assistant's message, up to the next assistant's
// content: the template's text, and the contents of these messages as plain text. They are one or more answers of role
// "tool", perhaps with a user's message after them, or a user's alone, as in Continuation. A template that writes
// contents as JSON, or trims them, gets them so.
//
// A template is refused that writes other text in the second and third turn than in the first, that does not write
// each content once and in order, that changes contents in other ways, or that refuses the role: an error of kind
// ErrTemplate, which says so. Other messages are an error of kind ErrMessages.
func (t *Tokenizer) ContinuationOf(messages []Message) ([]int32, error) {
	switch {
	case t.template == nil:
		return nil, ErrNoTemplate
	case t.turns.refused != nil:
		return nil, t.turns.refused
	}
	s, err := shapeOf(messages)
	if err != nil {
		return nil, err
	}
	if s == onlyUser {
		return t.Continuation(messages[0].Content)
	}
	a := t.answer(s)
	if a.refused != nil {
		return nil, a.refused
	}
	parts := []part{{a.own[0], true}}
	for i, content := range a.write.contents(messages) {
		parts = append(parts, part{content, false}, part{a.own[i+1], true})
	}
	return t.encodeParts(parts, false), nil
}

// answer is what the template writes for a shape. It probes the template the first time.
func (t *Tokenizer) answer(s shape) *answer {
	found, ok := t.answers.found.Load(s)
	if !ok {
		a := t.learnAnswer(s)
		if a.refused != nil {
			a.refused = fmt.Errorf("%w: %s after an assistant's message: %w", ErrTemplate, s, a.refused)
		}
		found, _ = t.answers.found.LoadOrStore(s, a) // two goroutines that probe at once find the same
	}
	return found.(*answer)
}

// orders are the conversations in which a shape is probed: alone, twice and three times, and beside a user's messages.
func (s shape) orders() [][]shape {
	return [][]shape{{s}, {s, s}, {s, s, s}, {onlyUser, s}, {s, onlyUser}, {onlyUser, s, onlyUser}}
}

// learnAnswer renders conversations with a shape. What the template writes for it must be the same in each.
func (t *Tokenizer) learnAnswer(s shape) *answer {
	a := &answer{}
	for _, opening := range openings {
		if _, err := t.probeAlone(opening); err != nil && len(opening) != len(t.opening()) {
			continue // a template that wants a system's message, or none
		}
		for _, order := range s.orders() {
			if a.refused = t.compareAnswers(opening, order, s, a); a.refused != nil {
				return a
			}
		}
	}
	a.write, a.refused = t.learnWriting(s)
	return a
}

// openings are the messages with which conversations begin.
var openings = [][]Message{{{Role: roleSystem}, {Role: roleUser}}, {{Role: roleUser}}}

// probeAlone renders a conversation that begins.
func (t *Tokenizer) probeAlone(opening []Message) (rendering, error) {
	masked, marks := mask(opening)
	return t.own(masked, marks)
}

// compareAnswers renders a conversation. It sets a.own if it is not set, and compares it with the rendering if it is.
func (t *Tokenizer) compareAnswers(opening []Message, order []shape, s shape, a *answer) error {
	begin, err := t.probeAlone(opening)
	if err != nil {
		return err
	}
	messages := slices.Clone(opening)
	for _, round := range order {
		messages = append(append(messages, Message{Role: roleAssistant}), round.messages()...)
	}
	masked, marks := mask(messages)
	r, err := t.own(masked, marks)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("in a conversation of %d turns that begins with a %s's message", len(order)+1, opening[0].Role)
	for i := range opening {
		if r[i] != begin[i] {
			return fmt.Errorf("before message %d it writes %q %s, and %q before", i+1, r[i], where, begin[i])
		}
	}
	at := len(opening) // the assistant's message
	for n, round := range order {
		size := len(round.messages())
		texts := slices.Clone(r[at+1 : at+size+1])
		after, ok := strings.CutPrefix(strings.TrimLeftFunc(texts[0], unicode.IsSpace), t.text[t.turns.closing])
		if !ok {
			return fmt.Errorf("between the assistant's content and the next stands %q, which does not begin with the closing token %q",
				texts[0], t.text[t.turns.closing])
		}
		texts[0] = after
		if n == len(order)-1 { // else what follows the last content stands before an assistant's, and may be rewritten
			texts = append(texts, r[len(r)-1])
		}
		want := t.turns.tail[:]
		if round == s {
			if a.own == nil {
				a.own = texts
			}
			want = a.own
		}
		for i, text := range texts {
			if text != want[i] {
				return fmt.Errorf("in turn %d it writes %q %s, and %q elsewhere", n+2, text, where, want[i])
			}
		}
		at += size + 1
	}
	return nil
}

// contentsToWrite show how a template writes contents.
var contentsToWrite = []string{
	spaceBefore + "\"a\" \\ b\\n é \U0001f600 <b>&amp;'c'</b>\t\r\n{x} %}" + spaceAfter,
	`{"a": [1, null, true], "b": {"c": 2.50}}`,
	"[1, 2]",
	"3.0",
	"true",
}

// learnWriting finds how the template writes the contents of a shape.
func (t *Tokenizer) learnWriting(s shape) (manner, error) {
	messages := append(append(t.opening(), Message{Role: roleAssistant}), s.messages()...)
	masked, marks := mask(messages)
	pattern, err := t.template.render(masked, true)
	if err != nil {
		return manner{}, err
	}
	first := len(messages) - len(s.messages())
	var rendered []string
	for _, content := range contentsToWrite {
		given := slices.Clone(masked)
		for i := first; i < len(given); i++ {
			given[i].Content = content
		}
		text, err := t.template.render(given, true)
		if err != nil {
			return manner{}, fmt.Errorf("with the content %q: %w", content, err)
		}
		rendered = append(rendered, text)
	}
	for _, tools := range []writing{asIs, trimmed, asJSON, trimmedJSON} {
		by := manner{tools, t.turns.user()}
		fits := true
		for i, content := range contentsToWrite {
			want := pattern
			for j := first; j < len(messages); j++ {
				written := by.contents([]Message{{Role: messages[j].Role, Content: content}})
				want = strings.Replace(want, marks[j], written[0], 1)
			}
			fits = fits && want == rendered[i]
		}
		if fits {
			return by, nil
		}
	}
	_, became, _ := strings.Cut(rendered[0], marks[first-1])
	return manner{}, fmt.Errorf("it writes contents neither as they are, nor trimmed, nor as JSON: %q becomes %q", contentsToWrite[0], became)
}
