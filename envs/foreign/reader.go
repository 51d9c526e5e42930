package foreign

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/filekind"
	"github.com/reprise-rl/reprise/infra/strict"
)

// reader collects what is wrong with an answer.
type reader struct{ problems strict.Problems }

// open parses an answer, which must be an object without repeated keys.
func open(b []byte) (*reader, strict.Node, error) {
	n, err := strict.Parse(b, strict.Limits{Bytes: MaxAnswer, Depth: depth})
	if found := filekind.Mistaken(b, int64(len(b))); err != nil && found != nil {
		return nil, n, fmt.Errorf("%w: the answer is %s", ErrAnswer, found.Is)
	}
	if err != nil {
		return nil, n, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	r := &reader{problems: n.Repeated("")}
	return r, n, nil
}

// err is nil or wraps ErrAnswer.
func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrAnswer, r.problems)
}

func (r *reader) wrong(path, found, allowed string) {
	r.problems = append(r.problems, strict.Problem{Path: path, Found: found, Allowed: allowed})
}

// members are an object's, by their key.
type members struct {
	*reader
	path string
	at   map[string]strict.Node
}

// object reads an object that has exactly these keys.
func (r *reader) object(n strict.Node, path string, keys ...string) members {
	m := members{reader: r, path: path, at: map[string]strict.Node{}}
	if n.Kind() != strict.Object {
		r.wrong(path, n.Found(), "an object with "+strings.Join(keys, ", "))
		return m
	}
	for _, member := range n.Members() {
		if !slices.Contains(keys, member.Key) {
			p := strict.Problem{Path: strict.Join(path, member.Key), Found: member.Value.Found(), Allowed: "one of " + strings.Join(keys, ", ")}
			p.Hint = strict.DidYouMean(member.Key, keys)
			r.problems = append(r.problems, p)
			continue
		}
		m.at[member.Key] = member.Value
	}
	for _, key := range keys {
		if _, ok := m.at[key]; !ok {
			r.wrong(strict.Join(path, key), "nothing", "this field in every answer")
		}
	}
	return m
}

// text is a string of at most so many bytes. A missing field has been reported.
func (m members) text(key string, most int) string {
	n, ok := m.at[key]
	if !ok {
		return ""
	}
	return m.checked(n, strict.Join(m.path, key), most)
}

// checked is the text of a node.
func (r *reader) checked(n strict.Node, path string, most int) string {
	text, ok := n.Text()
	switch {
	case !ok:
		r.wrong(path, n.Found(), "a string")
		return ""
	case len(text) > most:
		r.wrong(path, fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d bytes", most))
		return ""
	case strings.ContainsAny(text, "\x00\uFFFD"):
		r.wrong(path, n.Found(), "text without U+0000 and U+FFFD")
		return ""
	}
	return text
}

// identity is which episode an answer is about.
func (m members) identity() identity { return identity{m.text("instance", 20), m.text("chance", 20)} }

func (m members) truth(key string) bool {
	n, ok := m.at[key]
	if !ok {
		return false
	}
	value, ok := n.Truth()
	if !ok {
		m.wrong(strict.Join(m.path, key), n.Found(), "true or false")
	}
	return value
}

func (m members) integer(key string, least, most int64) int64 {
	n, ok := m.at[key]
	if !ok {
		return 0
	}
	value, ok := n.Integer()
	if !ok || value < least || value > most {
		m.wrong(strict.Join(m.path, key), n.Found(), fmt.Sprintf("an integer from %d to %d", least, most))
		return 0
	}
	return value
}

// number is a finite number of at most this absolute value, and how it is written.
func (m members) number(key string, most float64) (float64, string) {
	n, ok := m.at[key]
	if !ok {
		return 0, ""
	}
	return m.bounded(n, strict.Join(m.path, key), most)
}

// bounded is a node's finite number of at most this absolute value, and how it is written.
func (r *reader) bounded(n strict.Node, path string, most float64) (float64, string) {
	value, ok := n.Float()
	if !ok || math.Abs(value) > most || len(n.Raw()) > 40 {
		r.wrong(path, n.Found(), fmt.Sprintf("a number from %v to %v", -most, most))
		return 0, ""
	}
	return value, n.Raw()
}

// numbers are an array's, which has one for each of so many turns. They are finite, of at most this
// absolute value.
func (m members) numbers(key string, most float64, turns int) []float64 {
	n, ok := m.at[key]
	if !ok {
		return nil
	}
	path := strict.Join(m.path, key)
	if n.Kind() != strict.Array || len(n.Items()) != turns {
		found := n.Found()
		if n.Kind() == strict.Array {
			found = fmt.Sprintf("an array of %d", len(n.Items()))
		}
		m.wrong(path, found, fmt.Sprintf("an array of %d, a number for each turn of the episode", turns))
		return nil
	}
	values := make([]float64, turns)
	for k, item := range n.Items() {
		values[k], _ = m.bounded(item, strict.Index(path, k), most)
	}
	return values
}

// items are an array's.
func (m members) items(key string, most int) []strict.Node {
	n, ok := m.at[key]
	if !ok {
		return nil
	}
	if n.Kind() != strict.Array || len(n.Items()) > most {
		m.wrong(strict.Join(m.path, key), n.Found(), fmt.Sprintf("an array of at most %d", most))
		return nil
	}
	return n.Items()
}

func (m members) texts(key string, most, bytes int) []string {
	var texts []string
	for i, n := range m.items(key, most) {
		texts = append(texts, m.checked(n, strict.Index(strict.Join(m.path, key), i), bytes))
	}
	return texts
}

// names are the names of actions: each once, case ignored, and such that a reply can have
// them; nil for null.
func (m members) names(key string) []string {
	if n, ok := m.at[key]; !ok || n.Kind() == strict.Null {
		return nil
	}
	names := m.texts(key, MaxNames, MaxAction)
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		if folded := strings.ToLower(name); !envs.Writable(name) || seen[folded] {
			m.wrong(strict.Index(strict.Join(m.path, key), i), strict.Quote(name), "a name that is not empty, occurs once (case ignored), and has no blanks around it, no "+envs.Separator+" and no tags of the protocol")
		} else {
			seen[folded] = true
		}
	}
	return append([]string{}, names...)
}
