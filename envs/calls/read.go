package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/strict"
)

// What a reply may have at most.
const (
	// MaxCalls is the most calls of a reply that are read. One more, which is wrong, stands for all that follow.
	MaxCalls = 64
	// MaxBytes is the most bytes of a call.
	MaxBytes = 64 << 10
	// MaxWrong is the most characters of Call.Wrong.
	MaxWrong = 200

	maxName = 64
)

// tooLong says what MaxBytes refuses.
var tooLong = fmt.Sprintf("the call is longer than %d bytes", MaxBytes)

// none are the arguments of a call without arguments.
var none = json.RawMessage(`{}`)

// finding is what Read finds in a reply.
type finding struct {
	// example is the right form of a call, which every sentence about a broken one ends with.
	example string
	calls   []Call
	outside []string
}

// begin leaves out the thought of a reply: the text up to its last </think>. Calls in it are plans. vLLM's parsers of
// reasoning take it away before the parser of calls sees the reply, and Qwen3's template cuts at the last one.
func begin(reply, example string) (f *finding, text string) {
	if i := strings.LastIndex(reply, thoughtEnd); i >= 0 {
		reply = reply[i+len(thoughtEnd):]
	}
	return &finding{example: example}, reply
}

const thoughtEnd = "</think>"

// keep adds text outside of calls.
func (f *finding) keep(text string) { f.outside = append(f.outside, text) }

// add adds a call. It reports false if the reply has too many; then nothing more is read.
func (f *finding) add(c Call) bool {
	if len(f.calls) == MaxCalls {
		f.calls = append(f.calls, Call{Wrong: fmt.Sprintf("a reply has at most %d calls: the calls after them are not read", MaxCalls)})
		return false
	}
	f.calls = append(f.calls, c)
	return true
}

// wrong adds what is no call, with the reason.
func (f *finding) wrong(reason string) bool { return f.add(Call{Wrong: f.sentence(reason)}) }

// sentence is a reason and the right form. A reason that is too long loses its end.
func (f *finding) sentence(reason string) string {
	form := "; write " + f.example
	return shorten(reason, MaxWrong-utf8.RuneCountInString(form)) + form
}

// shorten cuts a text to so many characters.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-3]) + "..."
}

// emptyFence is a code block that had a call in it.
var emptyFence = regexp.MustCompile("```[a-zA-Z_]*\\s*```")

// result gives calls and rest. What stood around calls is joined by line breaks, without blanks around it.
func (f *finding) result() ([]Call, string) {
	var parts []string
	for _, part := range f.outside {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	rest := strings.Join(parts, "\n")
	if len(f.calls) > 0 {
		rest = strings.TrimSpace(emptyFence.ReplaceAllString(rest, ""))
	}
	return f.calls, rest
}

// json adds the calls of a JSON value that span has found good: an object is one call, an array several.
func (f *finding) json(text string) bool {
	n, err := strict.Parse([]byte(text), strict.Limits{Depth: maxDepth + wrapDepth})
	if err != nil { // span has read it
		return f.wrong("the JSON cannot be read")
	}
	return f.node(n)
}

func (f *finding) node(n strict.Node) bool {
	if n.Kind() != strict.Array {
		return f.object(n)
	}
	for _, item := range n.Items() {
		if !f.object(item) {
			return false
		}
	}
	return true
}

// object adds the call that a value is.
func (f *finding) object(n strict.Node) bool {
	c, reason := callOf(n)
	if reason != "" {
		c.Arguments, c.Wrong = nil, f.sentence(reason)
	}
	return f.add(c)
}

// callOf is the call that an object of JSON says, or the reason why it says none. Arguments may be called parameters,
// may be JSON in a text, and may be absent if there are none, as vLLM and SGLang read them. Other keys are not looked at.
func callOf(n strict.Node) (c Call, reason string) {
	if n.Kind() != strict.Object {
		return c, fmt.Sprintf("a call must be a JSON object, not %s", found(n))
	}
	var name, arguments strict.Node
	var named, argued string
	for _, m := range n.Written() {
		switch {
		case m.Again:
			return c, fmt.Sprintf("the key %s stands twice", strict.Quote(m.Key))
		case m.Key == "name":
			name, named = m.Value, m.Key
		case m.Key != "arguments" && m.Key != "parameters":
		case argued != "":
			return c, "\"arguments\" and \"parameters\" are both there: give one of them"
		default:
			arguments, argued = m.Value, m.Key
		}
	}
	if named == "" {
		return c, `the key "name" is missing`
	}
	text, ok := name.Text()
	switch {
	case ok && text == "":
		return c, "the name of a tool is empty"
	case !ok:
		return c, fmt.Sprintf("the name of a tool must be a string, not %s", found(name))
	case utf8.RuneCountInString(text) > maxName:
		return c, fmt.Sprintf("the name of a tool has at most %d characters, not %d", maxName, utf8.RuneCountInString(text))
	}
	c.Name = text
	c.Arguments, reason = argumentsOf(arguments)
	return c, reason
}

// argumentsOf are arguments in canonical form, or the reason why they are none.
func argumentsOf(n strict.Node) (json.RawMessage, string) {
	raw := n.Raw()
	switch n.Kind() {
	case strict.Null:
		return none, ""
	case strict.Object:
	case strict.String:
		text, _ := n.Text()
		raw = strings.TrimSpace(text)
		if raw == "" {
			return none, ""
		}
		end, fault := span(raw)
		switch {
		case fault != "":
			return nil, "the arguments are a string, and in it " + fault
		case end != len(raw) || raw[0] != '{':
			return nil, fmt.Sprintf("the arguments must be a JSON object, not the string %s", strict.Quote(raw))
		}
	default:
		return nil, fmt.Sprintf("the arguments must be a JSON object, not %s", found(n))
	}
	canonical, err := Canonical([]byte(raw))
	switch {
	case err == nil:
		return canonical, ""
	case isUnreadable(err): // all else that strict refuses has been refused before
		return nil, fmt.Sprintf("the arguments have more than %d levels", maxDepth)
	}
	return nil, "in the arguments, " + err.Error()
}

func isUnreadable(err error) bool {
	_, ok := errors.AsType[*strict.Unreadable](err)
	return ok
}

// found shows a value.
func found(n strict.Node) string {
	if n.Kind() == strict.Array {
		return "an array"
	}
	return n.Found()
}
