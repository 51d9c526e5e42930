package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxBytes is the largest spec Decode reads.
	MaxBytes = 1 << 20
	// MaxDepth is the deepest nesting of objects and arrays Decode reads.
	MaxDepth = 32
)

type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// node is a parsed JSON value that keeps what encoding/json's maps lose: the
// order of the keys and the numbers as they were written.
type node struct {
	kind    kind
	text    string // a number or a boolean as written; a string decoded
	members []member
	items   []node
}

type member struct {
	key   string
	value node
}

// found shows the value as a problem's Found.
func (n node) found() string {
	switch n.kind {
	case kindNull:
		return "null"
	case kindString:
		return quote(n.text)
	case kindArray:
		return fmt.Sprintf("an array of %d", len(n.items))
	case kindObject:
		return "an object"
	}
	return shorten(n.text)
}

// parser turns a document into nodes and collects what JSON allows and a spec
// does not: duplicate keys and null.
type parser struct {
	decoder  *json.Decoder
	problems Problems
}

// parse reads one JSON value and nothing after it. The second result is false
// when there is nothing to go on with.
func parse(b []byte) (node, Problems, bool) {
	fatal := func(found, allowed, hint string) (node, Problems, bool) {
		return node{}, Problems{{Path: wholeSpec, Found: found, Allowed: allowed, Hint: hint}}, false
	}
	if len(b) > MaxBytes {
		return fatal(fmt.Sprintf("%d bytes", len(b)), fmt.Sprintf("at most %d bytes", MaxBytes), "")
	}
	if !utf8.Valid(b) {
		return fatal("bytes that are not UTF-8", "JSON in UTF-8", "")
	}
	if bytes.HasPrefix(b, []byte("\ufeff")) {
		return fatal("a byte order mark", "JSON in UTF-8 without one", "")
	}
	var raw json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		var syntax *json.SyntaxError
		where := ""
		if errors.As(err, &syntax) {
			where = " at " + position(b, syntax.Offset)
		}
		return fatal(err.Error()+where, "one JSON object and nothing after it", "")
	}
	p := parser{decoder: json.NewDecoder(bytes.NewReader(b))}
	p.decoder.UseNumber()
	n, err := p.value("", 0)
	if err != nil {
		return fatal(shorten(err.Error()), fmt.Sprintf("at most %d levels of nesting", MaxDepth), "")
	}
	return n, p.problems, true
}

var errDepth = fmt.Errorf("more than %d levels", MaxDepth)

// value reads the next value. The document is known to be well formed, so that
// the only error is errDepth.
func (p *parser) value(path string, depth int) (node, error) {
	if depth > MaxDepth {
		return node{}, errDepth
	}
	token, err := p.decoder.Token()
	if err != nil {
		return node{}, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return p.array(path, depth)
		}
		return p.object(path, depth)
	case string:
		return node{kind: kindString, text: token}, nil
	case json.Number:
		return node{kind: kindNumber, text: token.String()}, nil
	case bool:
		return node{kind: kindBool, text: strconv.FormatBool(token)}, nil
	}
	return node{kind: kindNull}, nil
}

func (p *parser) array(path string, depth int) (node, error) {
	n := node{kind: kindArray}
	for p.decoder.More() {
		item, err := p.value(joinIndex(path, len(n.items)), depth+1)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, item)
	}
	_, err := p.decoder.Token()
	return n, err
}

func (p *parser) object(path string, depth int) (node, error) {
	n := node{kind: kindObject}
	seen := make(map[string]bool)
	for p.decoder.More() {
		token, err := p.decoder.Token()
		if err != nil {
			return node{}, err
		}
		key, _ := token.(string)
		at := join(path, key)
		value, err := p.value(at, depth+1)
		if err != nil {
			return node{}, err
		}
		if seen[key] {
			p.problems = append(p.problems, Problem{Path: at, Found: "the key a second time", Allowed: "each key once"})
			continue
		}
		seen[key] = true
		n.members = append(n.members, member{key, value})
	}
	_, err := p.decoder.Token()
	return n, err
}

// position is a byte offset as a person finds it in an editor.
func position(b []byte, offset int64) string {
	before := b[:min(max(int(offset)-1, 0), len(b))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d", line, column)
}

// canonical writes a value with sorted keys, no spaces, integers as written
// and other numbers as the shortest float64 that reads back the same.
func (n node) canonical(b *bytes.Buffer) {
	switch n.kind {
	case kindNull:
		b.WriteString("null")
	case kindBool:
		b.WriteString(n.text)
	case kindNumber:
		b.WriteString(canonicalNumber(n.text))
	case kindString:
		writeString(b, n.text)
	case kindArray:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.canonical(b)
		}
		b.WriteByte(']')
	case kindObject:
		members := append([]member(nil), n.members...)
		sort.SliceStable(members, func(i, j int) bool { return members[i].key < members[j].key })
		b.WriteByte('{')
		for i, m := range members {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, m.key)
			b.WriteByte(':')
			m.value.canonical(b)
		}
		b.WriteByte('}')
	}
}

func writeString(b *bytes.Buffer, s string) {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	// A string always encodes: what is not UTF-8 becomes U+FFFD.
	_ = encoder.Encode(s)
	b.Truncate(b.Len() - 1) // Encode ends with a newline
}

func isInteger(literal string) bool { return !strings.ContainsAny(literal, ".eE") }

func canonicalNumber(literal string) string {
	if isInteger(literal) {
		if literal == "-0" {
			return "0"
		}
		return literal
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return literal // reported by unusable, for what is read as a number
	}
	return formatNumber(f)
}

// formatNumber is the shortest text of a finite f, as encoding/json writes it.
func formatNumber(f float64) string {
	if f == 0 {
		return "0" // −0 too
	}
	text, err := json.Marshal(f)
	if err != nil {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return string(text)
}
