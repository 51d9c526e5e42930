package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/infra/strict"
)

// rule describes a field of the spec: how it is read, what is allowed, its default, and
// why. Decode, Resolve, Settings.Apply and docs/spec.md all read the same rules.
type rule struct {
	path string
	typ  valueType
	// value is the default; nil if there is none. If the default of a run from the
	// starter differs from the default for any other policy, starter and loaded replace
	// it.
	value, starter, loaded any
	// decided is the default of another policy than the starter in words, if other fields decide it;
	// loaded is then where they leave it.
	decided string
	// required fields have no default and must be written.
	required bool
	span     span
	enum     []string
	// text checks a string; it answers what is wrong, "" when all is well.
	text func(string) string
	// node checks an object of typeOptions, as text does.
	node func(strict.Node) string
	// textAllowed is what text or node allows, in words.
	textAllowed string
	// knob fields can be changed during a run: no shape and no program depends on them.
	knob   bool
	source string
	doc    string
	// elements are the fields of the objects of a typeObjects, which has at most most
	// objects. An element that is a string sets the field short alone. Of a typeNames, short is
	// the string that stands for all names.
	elements []*rule
	most     int
	short    string
	tree     *object
	// inherits is the path of the rule that an element's field is read as.
	inherits string
}

type valueType int

const (
	typeInteger valueType = iota
	typeSeed
	typeNumber
	typeBool
	typeString
	typeIntegers
	typeNames
	typeTexts
	typeOptions
	typeObjects
	typeCollapse
)

// String is the type's name in the documentation.
func (t valueType) String() string {
	switch t {
	case typeInteger, typeSeed:
		return "integer"
	case typeNumber:
		return "number"
	case typeBool:
		return "boolean"
	case typeIntegers:
		return "array of integers"
	case typeNames, typeTexts:
		return "array of strings"
	case typeOptions, typeCollapse:
		return "object"
	case typeObjects:
		return "array of objects"
	}
	return "string"
}

// span is an interval of numbers; its ends belong to it unless open.
type span struct {
	low, high         float64
	openLow, openHigh bool
	// zero also allows 0, and says what it means.
	zero string
}

func (s span) holds(v float64) bool {
	if s.zero != "" && v == 0 {
		return true
	}
	return (v > s.low || !s.openLow && v == s.low) && (v < s.high || !s.openHigh && v == s.high)
}

func (s span) describe(noun string) string {
	form := "%s from %s to %s"
	switch {
	case s.openLow && s.openHigh:
		form = "%s greater than %s and less than %s"
	case s.openLow:
		form = "%s greater than %s and at most %s"
	case s.openHigh:
		form = "%s at least %s and less than %s"
	}
	text := fmt.Sprintf(form, noun, formatNumber(s.low), formatNumber(s.high))
	if s.zero != "" {
		text = fmt.Sprintf("0 (%s) or %s", s.zero, text)
	}
	return text
}

// allowed says in words what the field may be.
func (r *rule) allowed() string {
	switch r.typ {
	case typeInteger, typeSeed:
		return r.span.describe("an integer")
	case typeNumber:
		return r.span.describe("a number")
	case typeBool:
		return "true or false"
	case typeIntegers:
		return fmt.Sprintf("an array of 1 to %d integers, each from %s to %s",
			maxTurns, formatNumber(r.span.low), formatNumber(r.span.high))
	case typeNames:
		return fmt.Sprintf("%q or an array of some of %s", r.short, strings.Join(quoted(r.enum), ", "))
	case typeTexts:
		return fmt.Sprintf("an array of up to %d different texts, each of 1 to %d bytes", maxStopTexts, maxStopBytes)
	case typeCollapse:
		return "an object, as docs/collapse.md describes"
	case typeOptions:
		if r.node != nil {
			return r.textAllowed
		}
		return "an object, as the environment documents it"
	case typeObjects:
		each := "objects with the keys " + strings.Join(r.tree.keys, ", ")
		if r.short != "" {
			each = "names or " + each
		}
		return fmt.Sprintf("an array of 1 to %d %s", r.most, each)
	}
	if r.enum != nil {
		return oneOf(r.enum)
	}
	return r.textAllowed
}

func oneOf(values []string) string {
	switch len(values) {
	case 0:
		return "nothing: no method has it"
	case 1:
		return strconv.Quote(values[0])
	}
	return "one of " + strings.Join(quoted(values), ", ")
}

func quoted(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strconv.Quote(v)
	}
	return out
}

// problem is the rule broken by a value.
func (r *rule) problem(found, hint string) Problems {
	return Problems{{Path: r.path, Found: found, Allowed: r.allowed(), Hint: hint}}
}

// read checks a value and converts it to the field's Go type: int, uint64,
// float64, bool, string, []int, []string or json.RawMessage.
func (r *rule) read(n strict.Node) (any, Problems) {
	if n.Kind() == strict.Null {
		return nil, r.problem("null", "leave the key out for its default")
	}
	switch r.typ {
	case typeBool:
		truth, ok := n.Truth()
		if !ok {
			return nil, r.problem(n.Found(), "")
		}
		return truth, nil
	case typeString:
		return r.readString(n)
	case typeNumber:
		return r.readNumber(n)
	case typeInteger, typeSeed:
		return r.readInteger(n)
	case typeIntegers:
		return r.readIntegers(n)
	case typeNames:
		return r.readNames(n)
	case typeTexts:
		return r.readTexts(n)
	case typeCollapse:
		return r.readCollapse(n)
	default:
		return r.readOptions(n)
	}
}

func (r *rule) readString(n strict.Node) (any, Problems) {
	text, ok := n.Text()
	if !ok {
		return nil, r.problem(n.Found(), "")
	}
	if r.enum != nil {
		if !slices.Contains(r.enum, text) {
			return nil, r.problem(n.Found(), Hint(text, r.enum))
		}
		return text, nil
	}
	if hint := r.text(text); hint != "" {
		return nil, r.problem(n.Found(), hint)
	}
	return text, nil
}

func (r *rule) readNumber(n strict.Node) (any, Problems) {
	if n.Kind() != strict.Number {
		return nil, r.problem(n.Found(), n.HintQuotes())
	}
	f, ok := n.Float()
	if !ok || !r.span.holds(f) {
		return nil, r.problem(n.Found(), "")
	}
	if f == 0 {
		f = 0 // −0: the same number must be the same bytes
	}
	return f, nil
}

func (r *rule) readInteger(n strict.Node) (any, Problems) {
	if n.Kind() != strict.Number {
		return nil, r.problem(n.Found(), n.HintQuotes())
	}
	if !n.IsInteger() {
		return nil, r.problem(n.Found(), "written without a point or an exponent")
	}
	// Every bound is within 2^53, so that float64 compares exactly.
	i, ok := n.Integer()
	if !ok || i > 1<<53 || !r.span.holds(float64(i)) {
		return nil, r.problem(n.Found(), "")
	}
	if r.typ == typeSeed {
		return uint64(i), nil
	}
	return int(i), nil
}

func (r *rule) readIntegers(n strict.Node) (any, Problems) {
	if n.Kind() != strict.Array || len(n.Items()) == 0 || len(n.Items()) > maxTurns {
		return nil, r.problem(n.Found(), "")
	}
	item := rule{typ: typeInteger, span: r.span}
	values := make([]int, len(n.Items()))
	var problems Problems
	for i, element := range n.Items() {
		item.path = strict.Index(r.path, i)
		v, broken := item.read(element)
		problems = append(problems, broken...)
		values[i], _ = v.(int)
	}
	return values, problems
}

// readNames reads a set of names, which it gives in the order of the rule.
func (r *rule) readNames(n strict.Node) (any, Problems) {
	if text, ok := n.Text(); ok && text == r.short {
		return slices.Clone(r.enum), nil
	}
	if n.Kind() != strict.Array || len(n.Items()) == 0 {
		return nil, r.problem(n.Found(), "")
	}
	item := rule{typ: typeString, enum: r.enum}
	var read []string
	var problems Problems
	for i, element := range n.Items() {
		item.path = strict.Index(r.path, i)
		v, broken := item.read(element)
		name, _ := v.(string)
		if len(broken) == 0 && slices.Contains(read, name) {
			broken = Problems{{Path: item.path, Found: n.Found(), Allowed: "each name once"}}
		}
		problems = append(problems, broken...)
		read = append(read, name)
	}
	return slices.DeleteFunc(slices.Clone(r.enum), func(name string) bool { return !slices.Contains(read, name) }), problems
}

func (r *rule) readOptions(n strict.Node) (any, Problems) {
	if n.Kind() != strict.Object {
		return nil, r.problem(n.Found(), "")
	}
	if problems := unusable(nil, n, r.path); len(problems) > 0 {
		return nil, problems
	}
	if r.node != nil {
		if wrong := r.node(n); wrong != "" {
			return nil, r.problem(wrong, "")
		}
	}
	b, err := canonical(n)
	if err != nil {
		return nil, r.problem(strict.Shorten(err.Error()), "") // no value that is usable
	}
	if len(b) > maxOptions {
		return nil, Problems{{Path: r.path, Found: fmt.Sprintf("%d bytes", len(b)), Allowed: fmt.Sprintf("at most %d bytes", maxOptions)}}
	}
	return json.RawMessage(b), nil
}

// unusable appends what no environment's options may hold: null, and numbers
// beyond float64.
func unusable(problems Problems, n strict.Node, path string) Problems {
	switch n.Kind() {
	case strict.Null:
		problems = append(problems, Problem{Path: path, Found: "null", Allowed: "a value", Hint: "leave the key out for its default"})
	case strict.Number:
		if _, ok := n.Float(); !ok {
			problems = append(problems, Problem{Path: path, Found: n.Found(), Allowed: "a number that fits in 64 bits"})
		}
	case strict.Array:
		for i, item := range n.Items() {
			problems = unusable(problems, item, strict.Index(path, i))
		}
	case strict.Object:
		for _, m := range n.Members() {
			problems = unusable(problems, m.Value, strict.Join(path, m.Key))
		}
	}
	return problems
}

// fallback is the field's default under a policy's origin, nil where it has none.
func (r *rule) fallback(from string) any {
	switch {
	case r.value != nil:
		return r.value
	case from == FromStarter:
		return r.starter
	}
	return r.loaded
}

// printable allows text of at most limit runes without control characters
// other than line breaks and tabs.
func printable(limit int) func(string) string {
	return func(s string) string {
		if n := utf8.RuneCountInString(s); n > limit {
			return fmt.Sprintf("it has %d", n)
		}
		for _, r := range s {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				return fmt.Sprintf("it has the control character %U", r)
			}
		}
		return ""
	}
}

// Where the defaults come from.
const (
	fromPaper = "paper (arXiv 2504.20073)"
	fromRagen = "RAGEN default"
	fromVerl  = "verl default, as RAGEN runs it"
	fromTorch = "PyTorch AdamW default"
	fromOurs  = "ours"
)

func between(low, high float64) span { return span{low: low, high: high} }

// object is a JSON object of the spec: its keys in order, each either a rule
// or an object itself.
type object struct {
	path    string
	keys    []string
	rules   map[string]*rule
	objects map[string]*object
}

func newObject(path string) *object {
	return &object{path: path, rules: make(map[string]*rule), objects: make(map[string]*object)}
}
