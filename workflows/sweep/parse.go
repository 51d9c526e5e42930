package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
)

const (
	wholeSweep = "(sweep)"
	// longestGuess bounds the words a guess is made for.
	longestGuess = 64
	foundBytes   = 60
	// maxProblems bounds what is reported: the base's spec may be wrong in as many
	// ways as there are settings.
	maxProblems = 100
)

// document reads one JSON object strictly: UTF-8, at most spec.MaxBytes, each key
// once, nothing behind it.
func document(b []byte) ([]member, spec.Problems) {
	fatal := func(found, allowed string) ([]member, spec.Problems) {
		return nil, spec.Problems{{Path: wholeSweep, Found: found, Allowed: allowed}}
	}
	switch {
	case len(b) > spec.MaxBytes:
		return fatal(fmt.Sprintf("%d bytes", len(b)), fmt.Sprintf("at most %d bytes", spec.MaxBytes))
	case !utf8.Valid(b):
		return fatal("bytes that are not UTF-8", "JSON in UTF-8")
	}
	if _, err := canon.Format(b); err != nil {
		return fatal(shorten(err.Error()), "one JSON object, each key once, and nothing after it")
	}
	m, ok := members(b)
	if !ok {
		return fatal(found(b), "an object with the keys "+strings.Join(topKeys, ", "))
	}
	return m, nil
}

// member is a key of an object with its value, in the order they were written:
// by it trials are named and started.
type member struct {
	key   string
	value json.RawMessage
}

// members are those of a well-formed object; false for any other value.
func members(raw json.RawMessage) ([]member, bool) {
	if kindOf(raw) != '{' {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	var out []member
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, false
		}
		var m member
		m.key, _ = key.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, false
		}
		out = append(out, m)
	}
	return out, true
}

// items are those of a well-formed array; false for any other value.
func items(raw json.RawMessage) ([]json.RawMessage, bool) {
	var out []json.RawMessage
	if kindOf(raw) != '[' || json.Unmarshal(raw, &out) != nil {
		return nil, false
	}
	return out, true
}

// kindOf is the first letter of a JSON value, '0' for a number.
func kindOf(raw json.RawMessage) byte {
	t := bytes.TrimLeft(raw, " \t\r\n")
	if len(t) == 0 {
		return 0
	}
	if t[0] == '-' || t[0] >= '0' && t[0] <= '9' {
		return '0'
	}
	return t[0]
}

// canonical is a well-formed value's canonical form.
func canonical(raw json.RawMessage) json.RawMessage {
	if c, err := canon.Format(raw); err == nil {
		return c
	}
	return raw
}

// reader collects what is wrong with a document.
type reader struct{ problems spec.Problems }

func (r *reader) add(path, found, allowed, hint string) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, spec.Problem{Path: path, Found: found, Allowed: allowed, Hint: hint})
	}
}

// unknown reports a key that is none of those known.
func (r *reader) unknown(path, key string, known []string) {
	hint := ""
	if c := nearest(key, known); c != "" {
		hint = fmt.Sprintf("did you mean %q?", c)
	}
	r.add(within(path, key), "an unknown key", strings.Join(known, ", "), hint)
}

// text reads a string of at most limit bytes without control characters.
func (r *reader) text(path string, raw json.RawMessage, limit int) (string, bool) {
	var s string
	allowed := fmt.Sprintf("a text of at most %d bytes without control characters", limit)
	if kindOf(raw) != '"' || json.Unmarshal(raw, &s) != nil || len(s) > limit || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.add(path, found(raw), allowed, "")
		return "", false
	}
	return s, true
}

// one reads a string that is one of a few.
func (r *reader) one(path string, raw json.RawMessage, of ...string) string {
	var s string
	if kindOf(raw) == '"' && json.Unmarshal(raw, &s) == nil {
		for _, v := range of {
			if s == v {
				return v
			}
		}
	}
	hint := ""
	if c := nearest(s, of); c != "" {
		hint = fmt.Sprintf("did you mean %q?", c)
	}
	r.add(path, found(raw), `one of "`+strings.Join(of, `", "`)+`"`, hint)
	return of[0]
}

// integer reads an integer from low to high, written as one.
func (r *reader) integer(path string, raw json.RawMessage, low, high int) int {
	v, err := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64)
	if err != nil || v < int64(low) || v > int64(high) {
		hint := ""
		if kindOf(raw) == '"' {
			hint = "a number stands without quotes"
		}
		r.add(path, found(raw), fmt.Sprintf("an integer from %d to %d", low, high), hint)
		return low
	}
	return int(v)
}

// number reads a finite number.
func (r *reader) number(path string, raw json.RawMessage) (float64, bool) {
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(raw)), 64)
	if kindOf(raw) != '0' || err != nil {
		r.add(path, found(raw), "a number", "")
		return 0, false
	}
	return f, true
}

// truth reads true or false.
func (r *reader) truth(path string, raw json.RawMessage) bool {
	switch text := string(bytes.TrimSpace(raw)); text {
	case "true", "false":
		return text == "true"
	}
	hint := ""
	if kindOf(raw) == '"' {
		hint = "true and false stand without quotes"
	}
	r.add(path, found(raw), "true or false", hint)
	return false
}

func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return r.problems
}

// found shows a value as a problem's Found.
func found(raw json.RawMessage) string {
	switch kindOf(raw) {
	case '{':
		if of, _ := members(raw); len(of) == 0 {
			return "an empty object"
		}
		return "an object"
	case '[':
		list, _ := items(raw)
		return fmt.Sprintf("an array of %d", len(list))
	}
	return shorten(string(bytes.TrimSpace(raw)))
}

func shorten(s string) string {
	if len(s) <= foundBytes {
		return s
	}
	return strings.ToValidUTF8(s[:foundBytes], "") + "…"
}

func within(path, key string) string {
	if path == "" {
		return shorten(key)
	}
	return path + "." + shorten(key)
}

// nearest is the word most likely meant: at most a third of its letters away, at
// least two; "" where there is none.
func nearest(word string, known []string) string {
	if word == "" || len(word) > longestGuess {
		return ""
	}
	best, limit := "", max(2, len(word)/3)+1
	for _, c := range known {
		if d := levenshtein.Distance(strings.ToLower(word), strings.ToLower(c), nil); d < limit && d < len(c) {
			best, limit = c, d
		}
	}
	return best
}

// asProblems are an error's problems; one that has none is a problem itself.
func asProblems(err error, path string) spec.Problems {
	var ps spec.Problems
	if errors.As(err, &ps) {
		return ps
	}
	return spec.Problems{{Path: path, Found: shorten(err.Error()), Allowed: "a spec that can be read"}}
}
