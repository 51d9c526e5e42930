package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits bound what Parse reads; 0 sets no limit except encoding/json's own.
type Limits struct {
	// Bytes is the most bytes of a text.
	Bytes int
	// Depth is the most objects and arrays in each other.
	Depth int
}

// Unreadable is the error of a text that Parse does not read.
type Unreadable struct {
	// Found and Allowed are as in a Problem.
	Found, Allowed string
	// Err is encoding/json's error if the text is not JSON, otherwise nil.
	Err error
}

// Error says what was found and what is allowed.
func (u *Unreadable) Error() string { return u.Found + ", want " + u.Allowed }

// Unwrap is the error of encoding/json, if it is one.
func (u *Unreadable) Unwrap() error { return u.Err }

// Parse reads one JSON value in UTF-8 and nothing after it. The error is an
// *Unreadable. Repeated keys are not an error: see Member.Again.
func Parse(b []byte, limits Limits) (Node, error) {
	switch {
	case limits.Bytes > 0 && len(b) > limits.Bytes:
		return Node{}, &Unreadable{Found: fmt.Sprintf("%d bytes", len(b)), Allowed: fmt.Sprintf("at most %d bytes", limits.Bytes)}
	case !utf8.Valid(b):
		return Node{}, &Unreadable{Found: "bytes that are not UTF-8", Allowed: "JSON in UTF-8"}
	case bytes.HasPrefix(b, []byte("\ufeff")):
		return Node{}, &Unreadable{Found: "a byte order mark", Allowed: "JSON in UTF-8 without one"}
	}
	if err := json.Unmarshal(b, new(json.RawMessage)); err != nil {
		found := err.Error()
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			found += " at " + position(b, syntax.Offset)
		}
		return Node{}, &Unreadable{Found: found, Allowed: "one JSON object and nothing after it", Err: err}
	}
	s := scanner{text: string(b), most: limits.Depth}
	n := s.value(0)
	if s.tooDeep {
		return Node{}, &Unreadable{Found: fmt.Sprintf("more than %d levels", limits.Depth), Allowed: fmt.Sprintf("at most %d levels of nesting", limits.Depth)}
	}
	return n, nil
}

// scanner cuts a text that is known to be well-formed JSON into nodes.
type scanner struct {
	text    string
	at      int
	most    int
	tooDeep bool
}

// space skips white space.
func (s *scanner) space() {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
}

// ends skips white space and reports whether the array or object ends here; it
// reads the bracket that ends it, or the comma before the next element.
func (s *scanner) ends() bool {
	s.space()
	switch s.text[s.at] {
	case ']', '}':
		s.at++
		return true
	case ',':
		s.at++
	}
	return false
}

func (s *scanner) value(depth int) Node {
	s.tooDeep = s.tooDeep || s.most > 0 && depth > s.most
	s.space()
	start := s.at
	var in *inside
	switch s.text[s.at] {
	case '{':
		in = s.object(depth)
	case '[':
		in = s.array(depth)
	case '"':
		s.quoted()
	default:
		for s.at < len(s.text) && strings.IndexByte(" \t\r\n,]}", s.text[s.at]) < 0 {
			s.at++
		}
	}
	return Node{raw: s.text[start:s.at], inside: in}
}

func (s *scanner) array(depth int) *inside {
	s.at++
	in := &inside{}
	for !s.ends() {
		in.items = append(in.items, s.value(depth+1))
	}
	return in
}

func (s *scanner) object(depth int) *inside {
	s.at++
	in := &inside{}
	seen := map[string]bool{}
	for !s.ends() {
		s.space()
		key := unquote(s.quoted())
		s.space()
		s.at++ // the colon
		in.members = append(in.members, Member{Key: key, Value: s.value(depth + 1), Again: seen[key]})
		in.repeated = in.repeated || seen[key]
		seen[key] = true
	}
	return in
}

// quoted reads a string and gives it as it is written.
func (s *scanner) quoted() string {
	start := s.at
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
	return s.text[start:s.at]
}

// position is a byte offset as a person finds it in an editor.
func position(b []byte, offset int64) string {
	before := b[:min(max(int(offset)-1, 0), len(b))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d", line, column)
}
