package calls

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/strict"
)

// wrapDepth is the most objects and arrays around the arguments of a call: a list of calls, and the call.
const wrapDepth = 2

// span finds the end of the JSON value with which text begins, after blanks. fault says in words what is wrong with it;
// "" if it is JSON. encoding/json's own texts are not used: policies read these words, so that they must not change
// with a version of Go.
func span(text string) (end int, fault string) {
	r := reader{text: text}
	if !r.value(0) {
		return r.at, r.fault
	}
	if !utf8.ValidString(text[:r.at]) {
		return r.at, "bytes that are not UTF-8 stand in the JSON"
	}
	return r.at, ""
}

// reader walks over JSON up to its first fault. Its methods report whether there was none.
type reader struct {
	text  string
	at    int
	fault string
}

const (
	cutOff       = "the JSON ends before it is complete"
	singleQuotes = "JSON takes double quotes, not single quotes"
)

func (r *reader) fail(format string, args ...any) bool {
	r.fault = fmt.Sprintf(format, args...)
	return false
}

func (r *reader) blanks() {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
}

// next is the byte that follows after blanks, 0 at the end.
func (r *reader) next() byte {
	r.blanks()
	if r.at == len(r.text) {
		return 0
	}
	return r.text[r.at]
}

// unexpected is the fault of what stands where something else is wanted.
func (r *reader) unexpected(want string) bool {
	rest := r.text[r.at:]
	switch {
	case rest == "":
		return r.fail(cutOff)
	case rest[0] == '\'':
		return r.fail(singleQuotes)
	case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "/*"), rest[0] == '#':
		return r.fail("JSON has no comments")
	case strings.HasPrefix(rest, "&quot;"), strings.HasPrefix(rest, "&#34;"):
		return r.fail("JSON takes quotes, not those of HTML (&quot;)")
	case strings.HasPrefix(rest, "\ufeff"):
		return r.fail("a byte order mark stands before the JSON")
	case strings.HasPrefix(rest, "“"), strings.HasPrefix(rest, "”"):
		return r.fail("JSON takes straight quotes")
	}
	return r.fail("the JSON has %s where %s belongs", strict.Quote(word(rest)), want)
}

// word is the beginning of a text, up to a blank or a sign of JSON, at most 20 bytes and at least one character.
func word(text string) string {
	_, first := utf8.DecodeRuneInString(text)
	if i := strings.IndexAny(text[first:], " \t\r\n,:{}[]\"<"); i >= 0 {
		text = text[:first+i]
	}
	for len(text) > 20 {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	return text
}

func (r *reader) value(depth int) bool {
	if depth > maxDepth+wrapDepth {
		return r.fail("the JSON has more than %d levels", maxDepth)
	}
	switch c := r.next(); {
	case c == '{':
		return r.list('}', func() bool { return r.member(depth) })
	case c == '[':
		return r.list(']', func() bool { return r.value(depth + 1) })
	case c == '"':
		return r.quoted()
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	rest := r.text[r.at:]
	for _, w := range literals {
		if w.json == "" && rest != "" && len(rest) < len(w.text) && strings.HasPrefix(w.text, rest) {
			return r.fail(cutOff)
		}
		if after, ok := strings.CutPrefix(rest, w.text); ok && word("x"+after) == "x" {
			if w.json != "" {
				return r.fail("JSON takes %s, not %s", w.json, w.text)
			}
			r.at += len(w.text)
			return true
		}
	}
	return r.unexpected("a value")
}

// literals are JSON's, and those of other languages with what JSON has for them.
var literals = []struct{ text, json string }{
	{text: "true"}, {text: "false"}, {text: "null"}, {"True", "true"}, {"False", "false"}, {"None", "null"}, {"undefined", "null"},
	{"nil", "null"}, {"NaN", "null"}, {"Infinity", "numbers"},
}

// list reads elements up to the closing bracket.
func (r *reader) list(closing byte, element func() bool) bool {
	r.at++
	if r.next() == closing {
		r.at++
		return true
	}
	for {
		if r.next() == closing {
			return r.fail("a comma stands before \"%c\"", closing)
		}
		if !element() {
			return false
		}
		switch r.next() {
		case ',':
			r.at++
		case closing:
			r.at++
			return true
		default:
			return r.unexpected(fmt.Sprintf("a comma or \"%c\"", closing))
		}
	}
}

func (r *reader) member(depth int) bool {
	if c := r.next(); c != '"' {
		if c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return r.fail("the key %s stands without quotes", strict.Quote(word(r.text[r.at:])))
		}
		return r.unexpected("a key")
	}
	if !r.quoted() {
		return false
	}
	if r.next() != ':' {
		return r.unexpected("a colon")
	}
	r.at++
	return r.value(depth + 1)
}

func (r *reader) quoted() bool {
	for r.at++; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return true
		case c < ' ':
			return r.fail("a string has a raw line break or control character: escape it, as in \\n")
		case c == '\\':
			r.at++
			if !r.escape() {
				return false
			}
		}
	}
	return r.fail(cutOff)
}

// escape reads what follows a backslash, up to its last byte.
func (r *reader) escape() bool {
	rest := r.text[r.at:]
	switch {
	case rest == "":
		return r.fail(cutOff)
	case strings.IndexByte(`"\/bfnrt`, rest[0]) >= 0:
		return true
	case rest[0] != 'u':
		_, size := utf8.DecodeRuneInString(rest)
		return r.fail("JSON has no escape %s", strict.Quote(`\`+rest[:size]))
	}
	for i := 1; i <= 4; i++ {
		if i == len(rest) {
			return r.fail(cutOff)
		}
		if strings.IndexByte("0123456789abcdefABCDEF", rest[i]) < 0 {
			return r.fail("four hexadecimal digits follow \\u in JSON")
		}
	}
	r.at += 4
	return true
}

func (r *reader) number() bool {
	start := r.at
	for r.at < len(r.text) && strings.IndexByte("+-.0123456789eE", r.text[r.at]) >= 0 {
		r.at++
	}
	digits := func(s string) string { return strings.TrimLeft(s, "0123456789") }
	rest := strings.TrimPrefix(r.text[start:r.at], "-")
	switch whole := rest[:len(rest)-len(digits(rest))]; {
	case whole == "" && strings.HasPrefix(r.text[r.at:], "Infinity"):
		return r.fail("JSON takes numbers, not -Infinity")
	case whole == "" || len(whole) > 1 && whole[0] == '0':
		return r.notNumber(start)
	}
	rest = digits(rest)
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		if rest = digits(fraction); rest == fraction {
			return r.notNumber(start)
		}
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		exponent := strings.TrimPrefix(strings.TrimPrefix(rest[1:], "+"), "-")
		if strings.HasPrefix(rest[1:], "+-") {
			return r.notNumber(start)
		}
		if rest = digits(exponent); rest == exponent {
			return r.notNumber(start)
		}
	}
	if rest != "" {
		return r.notNumber(start)
	}
	return true
}

func (r *reader) notNumber(start int) bool {
	if r.at == len(r.text) {
		return r.fail(cutOff)
	}
	number := r.text[start:r.at]
	r.at = start
	return r.fail("%s is not a number in JSON", strict.Quote(number[:min(20, len(number))]))
}
