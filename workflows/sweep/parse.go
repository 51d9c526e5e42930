package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/spec"
)

const (
	wholeSweep = "(sweep)"
	// maxProblems bounds what is reported: the base's spec may be wrong in as many
	// ways as there are settings.
	maxProblems = 100
)

// document reads one JSON object strictly: UTF-8, at most spec.MaxBytes, each key once,
// nothing after it. Its members are in the order they were written: by it trials are
// named and started.
func document(b []byte) ([]strict.Member, strict.Problems) {
	fatal := func(found, allowed string) ([]strict.Member, strict.Problems) {
		return nil, strict.Problems{{Path: wholeSweep, Found: found, Allowed: allowed}}
	}
	n, err := strict.Parse(b, strict.Limits{Bytes: spec.MaxBytes})
	if bad := (*strict.Unreadable)(nil); errors.As(err, &bad) && bad.Err == nil {
		return fatal(bad.Found, bad.Allowed)
	}
	if _, err := canon.Format(b); err != nil {
		return fatal(strict.Shorten(err.Error()), "one JSON object, each key once, and nothing after it")
	}
	if n.Kind() != strict.Object {
		return fatal(found(n), "an object with the keys "+strings.Join(topKeys, ", "))
	}
	return n.Members(), nil
}

// canonical is a well-formed value's canonical form.
func canonical(raw string) json.RawMessage {
	if c, err := canon.Format([]byte(raw)); err == nil {
		return c
	}
	return json.RawMessage(raw)
}

// reader collects what is wrong with a document.
type reader struct{ problems strict.Problems }

func (r *reader) add(path, found, allowed, hint string) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, strict.Problem{Path: path, Found: found, Allowed: allowed, Hint: hint})
	}
}

// unknown reports an unknown key.
func (r *reader) unknown(path, key string, known []string) {
	r.add(within(path, key), "an unknown key", strings.Join(known, ", "), strict.DidYouMean(key, known))
}

// text reads a string of at most limit bytes without control characters.
func (r *reader) text(path string, n strict.Node, limit int) (string, bool) {
	s, ok := n.Text()
	if !ok || len(s) > limit || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.add(path, found(n), fmt.Sprintf("a text of at most %d bytes without control characters", limit), "")
		return "", false
	}
	return s, true
}

// one reads a string that is one of a few.
func (r *reader) one(path string, n strict.Node, of ...string) string {
	s, _ := n.Text()
	if slices.Contains(of, s) {
		return s
	}
	r.add(path, found(n), `one of "`+strings.Join(of, `", "`)+`"`, strict.DidYouMean(s, of))
	return of[0]
}

// integer reads an integer from low to high, written as one.
func (r *reader) integer(path string, n strict.Node, low, high int) int {
	v, ok := n.Integer()
	if !ok || v < int64(low) || v > int64(high) {
		r.add(path, found(n), fmt.Sprintf("an integer from %d to %d", low, high), ifText(n, "a number stands without quotes"))
		return low
	}
	return int(v)
}

// number reads a finite number.
func (r *reader) number(path string, n strict.Node) float64 {
	f, ok := n.Float()
	if !ok {
		r.add(path, found(n), "a number", "")
	}
	return f
}

// truth reads true or false.
func (r *reader) truth(path string, n strict.Node) bool {
	truth, ok := n.Truth()
	if !ok {
		r.add(path, found(n), "true or false", ifText(n, "true and false stand without quotes"))
	}
	return truth
}

// ifText is the hint if a value is a text and should not be.
func ifText(n strict.Node, hint string) string {
	if n.Kind() != strict.String {
		return ""
	}
	return hint
}

// found shows a value as a problem's Found.
func found(n strict.Node) string {
	switch n.Kind() {
	case strict.Object:
		if len(n.Members()) == 0 {
			return "an empty object"
		}
	case strict.String:
		return strict.Shorten(n.Raw())
	}
	return n.Found()
}

func within(path, key string) string {
	if path == "" {
		return strict.Shorten(key)
	}
	return path + "." + strict.Shorten(key)
}

// asProblems returns an error's problems; an error without problems is a problem itself.
func asProblems(err error, path string) strict.Problems {
	if ps, ok := errors.AsType[strict.Problems](err); ok {
		return ps
	}
	return strict.Problems{{Path: path, Found: strict.Shorten(err.Error()), Allowed: "a spec that can be read"}}
}
