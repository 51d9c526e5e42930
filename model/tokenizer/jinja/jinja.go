// Package jinja renders chat templates as Jinja2 3.1 does in the environment that transformers
// makes for them: ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks, break and
// continue, the generation tag, and transformers' own tojson, dict, namespace and
// raise_exception. Values are Python's: what is printed, compared, indexed and sorted is so as
// CPython would.
//
// A template gives Jinja2's text or an error that names the line and the construct. It never
// gives another text: what this package lacks, it refuses. It lacks what reads files or
// other templates, what is random, the clock (strftime_now), and the rarer filters and methods.
//
// A template is a program from outside. It runs in this process, on a tree of its own nodes:
// nothing of Go is reachable from it. Its steps, the bytes that it makes, and its nesting are
// bounded (see Limits), and so is what is rendered at the same time, so that no template takes
// the memory, the stack or the time of the process.
package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a template and of one rendering.
const (
	// MaxSource is how many bytes a template may have.
	MaxSource = 256 << 10
	// MaxSteps bounds the work: a step is a node that is evaluated, an element that is looked
	// at, or 16 bytes of text that are read. All of them take less than a second.
	MaxSteps = 4 << 20
	// MaxBytes bounds all that a rendering ever makes: texts, elements of lists, its output.
	MaxBytes = 64 << 20
	// MaxDepth bounds the nesting of a template's text, and of the values that it makes.
	MaxDepth = 200
	// maxLevel bounds how many nodes are being evaluated at once, each for the one before:
	// a macro that calls itself ends here.
	maxLevel = 4000
	// maxAtOnce renderings run at the same time; others wait.
	maxAtOnce = 4
)

// Pair is a key of a Map and its value.
type Pair struct {
	Key   string
	Value any
}

// Map is a mapping given to a template. Its keys are distinct and keep their order.
type Map []Pair

// Error is why a template cannot be parsed or rendered.
type Error struct {
	// Line is where, counted from 1.
	Line int
	// Construct is what stands there: "filter join", "statement include".
	Construct string
	// Reason says what is wrong.
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Construct, e.Reason)
}

// Template is a parsed template. It may be rendered by several goroutines at once.
type Template struct {
	body  []statement
	frame *frame
}

// Parse parses a template. Errors are of type *Error.
func Parse(source string) (t *Template, err error) {
	defer catch(&err)
	if len(source) > MaxSource {
		fail(1, "template", "it has %d bytes, at most %d are read", len(source), MaxSource)
	}
	if !utf8.ValidString(source) {
		fail(1, "template", "it is not UTF-8")
	}
	p := &parser{tokens: lex(source)}
	body, f := p.parseTemplate()
	return &Template{body, f}, nil
}

// slots are held by the renderings that run.
var slots = make(chan struct{}, maxAtOnce)

// Render renders a template with variables: nil, bool, int, int64, float64, string, []any and Map.
// Errors are of type *Error.
func (t *Template) Render(variables Map) (text string, err error) {
	slots <- struct{}{}
	defer func() { <-slots }()
	defer catch(&err)
	r := &run{line: 1, construct: "template"}
	context := &scope{variables: map[string]any{}}
	for name, f := range functions {
		context.variables[name] = f
	}
	for _, v := range variables {
		context.variables[v.Key] = r.given(v.Value)
	}
	out := &output{run: r}
	r.block(t.body, r.inner(context, t.frame), out)
	return out.text.String(), nil
}

// given is a variable's value as this package holds it.
func (r *run) given(v any) any {
	r.alloc(valueBytes)
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return v
	case int:
		return int64(v)
	case []any:
		l := &list{}
		for _, e := range v {
			l.items = append(l.items, r.given(e))
		}
		return l
	case Map:
		d := newDict()
		for _, p := range v {
			d.set(r, p.Key, r.given(p.Value))
		}
		return d
	}
	panic(&Error{1, "variables", fmt.Sprintf("a value of type %T", v)})
}

// fail ends parsing or rendering; catch returns the error.
func fail(line int, construct, format string, a ...any) {
	reason := fmt.Sprintf(format, a...)
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	panic(&Error{line, construct, reason})
}

// maxReason bounds what an error repeats of a template.
const maxReason = 2 << 10

func catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case *Error:
		*err = e
	default:
		panic(e)
	}
}

// run is one rendering: what it has used, and where it is.
type run struct {
	steps, bytes, depth, level int

	line      int
	construct string
}

// at says which node is evaluated, for errors.
func (r *run) at(line int, construct string) { r.line, r.construct = line, construct }

func (r *run) fail(format string, a ...any) { fail(r.line, r.construct, format, a...) }

// step counts work.
func (r *run) step(n int) {
	if r.steps += n; r.steps > MaxSteps || n < 0 {
		r.fail("the template takes more than %d steps", MaxSteps)
	}
}

// read counts the work of reading a text.
func (r *run) read(texts ...string) {
	for _, s := range texts {
		r.step(len(s)/16 + 1)
	}
}

// valueBytes is about what an element of a list needs.
const valueBytes = 64

// alloc counts bytes before they are made.
func (r *run) alloc(n int) {
	if n < 0 || n > MaxBytes || r.bytes+n > MaxBytes {
		r.fail("the template makes more than %d MiB of text and values", MaxBytes>>20)
	}
	r.bytes += n
	r.step(n / 64)
}

// made counts a text.
func (r *run) made(s string) string {
	r.alloc(len(s))
	return s
}

// deeper goes into a value. Its caller counts down again.
func (r *run) deeper() {
	if r.depth++; r.depth > MaxDepth {
		r.fail("nested deeper than %d", MaxDepth)
	}
}

// output is what is written: the rendering's text, a set block's or a macro's.
type output struct {
	run  *run
	text strings.Builder
}

func (o *output) write(s string) {
	o.run.alloc(2 * len(s)) // it grows by doubling
	o.text.WriteString(s)
}

// scope holds variables. A name is looked up from the innermost scope outwards.
type scope struct {
	variables map[string]any
	parent    *scope
}

func (s *scope) get(name string) (any, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.variables[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (s *scope) set(name string, v any) {
	if s.variables == nil {
		s.variables = map[string]any{}
	}
	s.variables[name] = v
}
