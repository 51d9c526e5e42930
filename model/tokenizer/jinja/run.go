package jinja

import "strings"

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
