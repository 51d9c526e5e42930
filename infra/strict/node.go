package strict

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Kind is what a JSON value is.
type Kind int

// The kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Node is a JSON value as it is written. The zero Node is null.
type Node struct {
	raw    string
	inside *inside // of an array or an object
}

// inside is what an array or an object holds.
type inside struct {
	items    []Node
	members  []Member
	repeated bool // a repeated key
}

// Member is a key of an object and its value.
type Member struct {
	Key   string
	Value Node
	// Again says that the key stood before in the same object.
	Again bool
}

// NewObject is an object with these members.
func NewObject(members ...Member) Node { return Node{raw: "{}", inside: &inside{members: members}} }

// Kind is what the value is.
func (n Node) Kind() Kind {
	if n.raw == "" {
		return Null
	}
	switch n.raw[0] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// Raw is the value as it is written, without the space around it. An object from
// NewObject has no text: its Raw is "{}".
func (n Node) Raw() string {
	if n.raw == "" {
		return "null"
	}
	return n.raw
}

// Items are the values of an array, in order; nil of any other value.
func (n Node) Items() []Node {
	if n.inside == nil {
		return nil
	}
	return n.inside.items
}

// Members are the members of an object, in order, each key once: of a repeated key, the
// first. Nil of any other value.
func (n Node) Members() []Member {
	if n.inside == nil || !n.inside.repeated {
		return n.Written()
	}
	var members []Member
	for _, m := range n.inside.members {
		if !m.Again {
			members = append(members, m)
		}
	}
	return members
}

// Written are the members of an object as they are written, those with a key that
// stood before included.
func (n Node) Written() []Member {
	if n.inside == nil {
		return nil
	}
	return n.inside.members
}

// Text is the text of a string; false for any other value.
func (n Node) Text() (string, bool) {
	if n.Kind() != String {
		return "", false
	}
	return unquote(n.raw), true
}

// Truth is the value of true or false; false as the second result for any other value.
func (n Node) Truth() (value, ok bool) { return n.raw == "true", n.Kind() == Bool }

// Integer is the value of a number that is written without a point and an
// exponent and fits in 64 bits.
func (n Node) Integer() (int64, bool) {
	if n.Kind() != Number {
		return 0, false
	}
	i, err := strconv.ParseInt(n.raw, 10, 64)
	return i, err == nil
}

// Float is the value of a number within the range of float64. A negative zero
// stays one.
func (n Node) Float() (float64, bool) {
	if n.Kind() != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.raw, 64)
	return f, err == nil
}

// IsInteger reports whether a number is written without a point and an exponent.
func (n Node) IsInteger() bool { return n.Kind() == Number && !strings.ContainsAny(n.raw, ".eE") }

// HintQuotes is the hint if a number is wanted and a text with a number was found; empty
// otherwise.
func (n Node) HintQuotes() string {
	if text, ok := n.Text(); ok {
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return "a number stands without quotes"
		}
	}
	return ""
}

// Found shows the value as a problem's Found.
func (n Node) Found() string {
	switch n.Kind() {
	case String:
		return Quote(unquote(n.raw))
	case Array:
		return fmt.Sprintf("an array of %d", len(n.Items()))
	case Object:
		return "an object"
	}
	return Shorten(n.Raw())
}

// Repeated lists the repeated keys in the value at path.
func (n Node) Repeated(path string) Problems {
	var problems Problems
	for i, item := range n.Items() {
		problems = append(problems, item.Repeated(Index(path, i))...)
	}
	for _, m := range n.Written() {
		at := Join(path, m.Key)
		problems = append(problems, m.Value.Repeated(at)...)
		if m.Again {
			problems = append(problems, Problem{Path: at, Found: "the key a second time", Allowed: "each key once"})
		}
	}
	return problems
}

// unquote is the text of a well-formed JSON string.
func unquote(raw string) string {
	if !strings.Contains(raw, `\`) {
		return raw[1 : len(raw)-1]
	}
	var text string
	// A well-formed string always decodes: half a surrogate pair becomes U+FFFD.
	_ = json.Unmarshal([]byte(raw), &text)
	return text
}
