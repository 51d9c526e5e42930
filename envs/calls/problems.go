package calls

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reprise-rl/reprise/infra/strict"
)

// problems are what does not fit in arguments, in words for a policy. The common keywords have their own words. What
// only the library finds is said of the argument as a whole.
func (s *schema) problems(arguments strict.Node) []string {
	var p problemList
	p.object(s.root, arguments, "")
	if len(p.found) > 0 || fits(s.resolved, arguments.Raw()) {
		return p.found
	}
	for _, m := range inOrder(s.root, arguments) {
		if !fits(s.loose, fmt.Sprintf("{%s:%s}", encode(m.Key), m.Value.Raw())) {
			p.add("argument %s does not fit the tool's schema", strict.Quote(m.Key))
		}
	}
	if len(p.found) == 0 {
		p.add("the arguments do not fit the tool's schema together")
	}
	return p.found
}

// maxProblems bounds the work on a long list of wrong values. No sentence holds as many.
const maxProblems = 100

type problemList struct{ found []string }

func (p *problemList) add(format string, args ...any) {
	if len(p.found) < maxProblems {
		p.found = append(p.found, fmt.Sprintf(format, args...))
	}
}

// inOrder are the members of an object: those that are required in their order, then the others as they stand.
func inOrder(s *jsonschema.Schema, n strict.Node) []strict.Member {
	rank := func(m strict.Member) int {
		if i := slices.Index(s.Required, m.Key); i >= 0 {
			return i
		}
		return len(s.Required)
	}
	members := slices.Clone(n.Members())
	slices.SortStableFunc(members, func(a, b strict.Member) int { return rank(a) - rank(b) })
	return members
}

func (p *problemList) object(s *jsonschema.Schema, n strict.Node, path string) {
	members := inOrder(s, n)
	for i, key := range s.Required {
		has := slices.ContainsFunc(members, func(m strict.Member) bool { return m.Key == key })
		if !has && !slices.Contains(s.Required[:i], key) {
			p.add("argument %s is missing", argument(strict.Join(path, key)))
		}
	}
	for _, m := range members {
		at := strict.Join(path, m.Key)
		property := s.Properties[m.Key]
		switch {
		case property != nil:
			p.value(property, m.Value, at)
		case closed(s):
			p.add("%s", unknownArgument(s, m.Key, at))
		}
	}
}

// argument shows the path of an argument.
func argument(path string) string { return strict.Quote(path) }

// closed reports whether an object has no other properties than those that its schema lists.
func closed(s *jsonschema.Schema) bool {
	if s.AdditionalProperties != nil {
		return reflect.DeepEqual(s.AdditionalProperties, &jsonschema.Schema{Not: &jsonschema.Schema{}}) // false
	}
	combined := s.AllOf != nil || s.AnyOf != nil || s.OneOf != nil || s.If != nil || s.Ref != "" || s.DependentSchemas != nil
	return s.Properties != nil && s.PatternProperties == nil && s.UnevaluatedProperties == nil && !combined
}

func unknownArgument(s *jsonschema.Schema, key, path string) string {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	text := fmt.Sprintf("there is no argument %s", argument(path))
	if hint := strict.DidYouMean(key, names); hint != "" {
		return text + ", " + hint
	}
	if len(names) == 0 {
		return text
	}
	return text + ": the arguments are " + strings.Join(names, ", ")
}

func (p *problemList) value(s *jsonschema.Schema, n strict.Node, path string) {
	allowed := s.Types
	if s.Type != "" {
		allowed = []string{s.Type}
	}
	if want := wants(s, allowed); want != "" && !isOneOf(n, s, allowed) {
		p.add("argument %s is %s, want %s", argument(path), found(n), want)
		return
	}
	switch n.Kind() {
	case strict.Object:
		p.object(s, n, path)
	case strict.Array:
		p.between(len(n.Items()), s.MinItems, s.MaxItems, path, "values")
		for i, item := range n.Items() {
			if s.Items != nil && s.PrefixItems == nil && len(p.found) < maxProblems {
				p.value(s.Items, item, strict.Index(path, i))
			}
		}
	case strict.String:
		text, _ := n.Text()
		p.between(utf8.RuneCountInString(text), s.MinLength, s.MaxLength, path, "characters")
	case strict.Number:
		p.number(s, n, path)
	}
}

// wants says which values a schema takes: of some types, or those of its enum.
func wants(s *jsonschema.Schema, allowed []string) string {
	values := s.Enum
	if s.Const != nil {
		values = []any{*s.Const}
	}
	var words []string
	for _, v := range values {
		words = append(words, string(encode(v)))
	}
	if words == nil {
		for _, t := range allowed {
			words = append(words, typeWords[t])
		}
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

var typeWords = map[string]string{
	"array": "an array", "boolean": "true or false", "integer": "an integer", "null": "null", "number": "a number",
	"object": "an object", "string": "a string",
}

// isOneOf reports whether a value has one of the types, and is in the enum if there is one.
func isOneOf(n strict.Node, s *jsonschema.Schema, allowed []string) bool {
	if allowed != nil && !slices.ContainsFunc(allowed, func(t string) bool { return hasType(n, t) }) {
		return false
	}
	values := s.Enum
	if s.Const != nil {
		values = []any{*s.Const}
	}
	if values == nil {
		return true
	}
	var value any
	if json.Unmarshal([]byte(n.Raw()), &value) != nil {
		return false
	}
	return slices.ContainsFunc(values, func(v any) bool { return reflect.DeepEqual(v, value) })
}

func hasType(n strict.Node, t string) bool {
	switch n.Kind() {
	case strict.Object:
		return t == "object"
	case strict.Array:
		return t == "array"
	case strict.String:
		return t == "string"
	case strict.Bool:
		return t == "boolean"
	case strict.Null:
		return t == "null"
	}
	if t == "integer" {
		_, ok := n.Integer()
		return ok
	}
	return t == "number"
}

func (p *problemList) between(n int, least, most *int, path, of string) {
	switch {
	case least != nil && n < *least:
		p.add("argument %s has %d %s, want at least %d", argument(path), n, of, *least)
	case most != nil && n > *most:
		p.add("argument %s has %d %s, want at most %d", argument(path), n, of, *most)
	}
}

func (p *problemList) number(s *jsonschema.Schema, n strict.Node, path string) {
	value, ok := n.Float()
	if !ok {
		p.add("argument %s is %s, a number that is too large", argument(path), found(n))
		return
	}
	for _, b := range []struct {
		limit   *float64
		outside func(limit float64) bool
		want    string
	}{
		{s.Minimum, func(l float64) bool { return value < l }, "at least"},
		{s.Maximum, func(l float64) bool { return value > l }, "at most"},
		{s.ExclusiveMinimum, func(l float64) bool { return value <= l }, "more than"},
		{s.ExclusiveMaximum, func(l float64) bool { return value >= l }, "less than"},
	} {
		if b.limit != nil && b.outside(*b.limit) {
			p.add("argument %s is %s, want %s %s", argument(path), found(n), b.want, strconv.FormatFloat(*b.limit, 'g', -1, 64))
			return
		}
	}
}
