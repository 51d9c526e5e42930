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
	"maps"
	"unicode/utf8"
)

// Pair is a key of a Map and its value.
type Pair struct {
	Key   string
	Value any
}

// Map is a mapping given to a template. Its keys are distinct and keep their order.
type Map []Pair

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
	maps.Copy(context.variables, functions)
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
