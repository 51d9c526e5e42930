package envs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// OptionsError is everything wrong with an environment's options. A problem's
// Path is the option, "low_reward"; "" for the options as a whole.
type OptionsError struct {
	Environment string
	// Tool says that Environment is the name of a tool.
	Tool     bool
	Problems strict.Problems
}

// Error lists the problems in one line.
func (e *OptionsError) Error() string {
	kind := "environment"
	if e.Tool {
		kind = "tool"
	}
	return fmt.Sprintf("options of %s %q: %s", kind, e.Environment, inLine(e.Problems))
}

// inLine lists problems in one line.
func inLine(problems strict.Problems) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		if p.Path != "" {
			lines[i] = p.Path + ": "
		}
		lines[i] += fmt.Sprintf("found %s, want %s", p.Found, p.Allowed)
	}
	return strings.Join(lines, "; ")
}

// Options is the table of an environment's options, and the options a person gave.
// An environment declares each option by one call of Int, Number, Bool, Text, Choice or Object.
// The call reads the option's value, or its default, into a variable at once, so later
// declarations may depend on it. The table is also the option's description and the order
// in which JSON writes them.
//
// Options are read strictly: names count with their case; unknown and repeated
// names, null and values of another type or out of range are problems. All of them
// are reported.
type Options struct {
	members  []strict.Member
	rows     []row
	misread  map[int]strict.Problem // by member
	problems strict.Problems
}

// row is an option that has been declared, with its value.
type row struct {
	Option
	value any
}

// parseOptions reads the text of options, which may be absent.
func parseOptions(text json.RawMessage) *Options {
	o := &Options{misread: map[int]strict.Problem{}}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return o
	}
	n, err := strict.Parse(text, strict.Limits{})
	if bad := (*strict.Unreadable)(nil); errors.As(err, &bad) && text[0] == '{' {
		o.WrongFound("", strict.Shorten(string(text)), "valid JSON and nothing after the object ("+bad.Found+")")
	} else if n.Kind() != strict.Object {
		o.WrongFound("", strict.Shorten(string(text)), "a JSON object")
	}
	o.members = n.Written()
	return o
}

// ReadOptions reads options that are not an environment's: declare declares them. It gives
// their descriptions and what is wrong with them, with the option as its path.
func ReadOptions(text json.RawMessage, declare func(*Options)) ([]Option, strict.Problems) {
	o := parseOptions(text)
	declare(o)
	described := make([]Option, len(o.rows))
	for i, r := range o.rows {
		described[i] = r.Option
	}
	return described, o.all()
}

// Int declares an integer from least to most. In doc, {range} is replaced by these.
func (o *Options) Int(name string, into *int, fallback, least, most int, doc string) {
	doc = strings.ReplaceAll(doc, "{range}", fmt.Sprintf("%d to %d", least, most))
	declare(o, Option{Name: name, Type: "integer", Doc: doc}, "an integer", into, fallback, func(n strict.Node) (int, bool) {
		i, ok := n.Integer()
		return int(i), ok
	})
	if *into < least || *into > most {
		o.Wrong(name, fmt.Sprintf("from %d to %d", least, most))
	}
}

// Number declares a number from least to most.
func (o *Options) Number(name string, into *float64, fallback, least, most float64, doc string) {
	declare(o, Option{Name: name, Type: "number", Doc: doc}, "a number", into, fallback, strict.Node.Float)
	if *into < least || *into > most {
		o.Wrong(name, fmt.Sprintf("from %v to %v", least, most))
	}
}

// Bool declares a truth value.
func (o *Options) Bool(name string, into *bool, fallback bool, doc string) {
	declare(o, Option{Name: name, Type: "boolean", Doc: doc}, "true or false", into, fallback, strict.Node.Truth)
}

// Text declares a text.
func (o *Options) Text(name string, into *string, fallback, doc string) {
	declare(o, Option{Name: name, Type: "string", Doc: doc}, "a string", into, fallback, strict.Node.Text)
}

// Choice declares a text that is one of values.
func (o *Options) Choice(name string, into *string, fallback string, values []string, doc string) {
	o.Text(name, into, fallback, doc)
	if !slices.Contains(values, *into) {
		o.Wrong(name, orNearest("one of "+strings.Join(values, ", "), *into, values))
	}
}

// orNearest is a text with the hint for a word that is none of the known ones.
func orNearest(text, word string, known []string) string {
	if hint := strict.DidYouMean(word, known); hint != "" {
		return text + " (" + hint + ")"
	}
	return text
}

// Texts declares a list of texts; an absent one is empty.
func (o *Options) Texts(name string, into *[]string, doc string) {
	declare(o, Option{Name: name, Type: "array", Doc: doc}, "an array of strings", into, nil, func(n strict.Node) ([]string, bool) {
		texts := []string{}
		for _, item := range n.Items() {
			text, ok := item.Text()
			if !ok {
				return nil, false
			}
			texts = append(texts, text)
		}
		return texts, n.Kind() == strict.Array
	})
}

// Object declares a JSON object, whose form is the environment's to check; an absent one is {}.
func (o *Options) Object(name string, into *json.RawMessage, doc string) {
	declare(o, Option{Name: name, Type: "object", Doc: doc}, "an object", into, json.RawMessage(`{}`), func(n strict.Node) (json.RawMessage, bool) {
		return json.RawMessage(n.Raw()), n.Kind() == strict.Object
	})
}

// declare adds a row and reads its value.
func declare[T any](o *Options, option Option, kind string, into *T, fallback T, read func(strict.Node) (T, bool)) {
	option.Default, *into = fallback, fallback
	for i, m := range o.members {
		if m.Key != option.Name || m.Again {
			continue
		}
		if value, ok := read(m.Value); ok {
			*into = value
		} else if m.Value.Kind() == strict.Null {
			o.misread[i] = strict.Problem{Path: m.Key, Found: "null", Allowed: kind + ", or no such option for its default"}
		} else {
			o.misread[i] = strict.Problem{Path: m.Key, Found: strict.Shorten(m.Value.Raw()), Allowed: kind}
		}
	}
	o.rows = append(o.rows, row{Option: option, value: *into})
}

// Wrong reports the value of an option that has been declared; want says what is
// allowed.
func (o *Options) Wrong(name, want string) {
	for _, r := range o.rows {
		if r.Name == name {
			o.WrongFound(name, string(encode(r.value)), want)
		}
	}
}

// WrongFound reports what was found at an option, as in a file that it names.
func (o *Options) WrongFound(name, found, want string) {
	o.problems = append(o.problems, strict.Problem{Path: name, Found: found, Allowed: want})
}

// OK reports whether no problem was found so far. An environment that needs valid options
// calls it after its last declaration.
func (o *Options) OK() bool { return len(o.all()) == 0 }

// all is everything that is wrong: what was misread, in the order it is written,
// before what the options' values break.
func (o *Options) all() strict.Problems {
	names := make([]string, len(o.rows))
	for i, r := range o.rows {
		names[i] = r.Name
	}
	var problems strict.Problems
	for i, m := range o.members {
		p, misread := o.misread[i]
		switch {
		case m.Again:
			p = strict.Problem{Path: m.Key, Found: strict.Shorten(m.Value.Raw()), Allowed: "each option once"}
		case misread:
		case !slices.Contains(names, m.Key):
			p = strict.Problem{Path: m.Key, Found: strict.Shorten(m.Value.Raw()), Allowed: orNearest("one of the options "+strings.Join(names, ", "), m.Key, names)}
		default:
			continue
		}
		problems = append(problems, p)
	}
	return append(problems, o.problems...)
}

// JSON is all options with their values, in the order of the table; changes are
// other values for some of them.
func (o *Options) JSON(changes map[string]any) json.RawMessage {
	b := []byte{'{'}
	for _, r := range o.rows {
		value, changed := changes[r.Name]
		if !changed {
			value = r.value
		}
		if value == nil {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, encode(r.Name)...), ':'), encode(value)...)
	}
	return append(b, '}')
}

// encode is an option's value as JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("envs: option value %v: %v", v, err)) // texts, finite numbers and truth values
	}
	return b
}
