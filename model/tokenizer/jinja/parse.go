package jinja

import (
	"slices"
	"strings"
)

// parser makes nodes of tokens, as Jinja2's.
type parser struct {
	tokens []token
	at     int
	depth  int
	// soft counts the conditions around: there an unknown filter or test fails only when it is
	// used, as in Jinja2.
	soft int
	// loops says how many loops are around that break may end; macros start from 0.
	loops  int
	frame  *frame
	frames []*frame // all
	// reads collects the special variables that a macro's body reads.
	reads map[string]bool
}

func (p *parser) token() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

func (p *parser) is(k kind) bool { return p.token().kind == k }

func (p *parser) isName(names ...string) bool {
	return p.is(name) && slices.Contains(names, p.token().text)
}

func (p *parser) skip(k kind) bool {
	if p.is(k) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(n string) bool {
	if p.isName(n) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(k kind) token {
	if !p.is(k) {
		fail(p.token().line, "syntax", "found %s, want %q", p.token(), string(k))
	}
	return p.next()
}

func (p *parser) expectName(n string) {
	if !p.skipName(n) {
		fail(p.token().line, "syntax", "found %s, want %q", p.token(), n)
	}
}

// nested bounds the depth of the tree.
func (p *parser) nested() func() {
	if p.depth++; p.depth > MaxDepth {
		fail(p.token().line, "syntax", "nested deeper than %d", MaxDepth)
	}
	return func() { p.depth-- }
}

// within parses a body with a frame of its own, in which these targets are given.
func (p *parser) within(given []target, parse func()) *frame {
	f := &frame{around: p.frame, known: map[string]bool{}}
	for i := range given {
		f.assign(&given[i])
	}
	f.assigned = nil
	p.frames = append(p.frames, f)
	p.frame = f
	parse()
	p.frame = f.around
	return f
}

func (p *parser) parseTemplate() (body []statement, f *frame) {
	f = p.within(nil, func() { body = p.body() })
	if !p.is(end) {
		fail(p.token().line, "syntax", "unexpected %s", p.token())
	}
	for _, f := range p.frames {
		f.finish()
	}
	return body, f
}

// body reads statements up to a statement with one of these names, which is the next token, or
// to the end of the template.
func (p *parser) body(until ...string) []statement {
	defer p.nested()()
	var list []statement
	for !p.is(end) {
		switch t := p.next(); t.kind {
		case data:
			list = append(list, &text{t.text})
		case variableBegin:
			list = append(list, &print{[]expression{p.tuple(true)}, t.line})
			p.expect(variableEnd)
		case blockBegin:
			if p.isName(until...) {
				return list
			}
			list = append(list, p.statement())
			p.expect(blockEnd)
		default:
			fail(t.line, "syntax", "unexpected %s", t)
		}
	}
	return list
}

// statements reads the rest of a tag and statements up to one of these, whose name it returns.
// The tag of the last is left open.
func (p *parser) statements(opened token, until ...string) ([]statement, string) {
	p.skip(":")
	p.expect(blockEnd)
	list := p.body(until...)
	if p.is(end) {
		fail(opened.line, "statement "+opened.text, "it does not end: no %s", strings.Join(until, " or "))
	}
	return list, p.next().text
}

func (p *parser) statement() statement {
	t := p.token()
	if t.kind != name {
		fail(t.line, "syntax", "found %s, want a statement's name", t)
	}
	p.next()
	switch t.text {
	case "if":
		return p.ifs(t)
	case "for":
		return p.loop(t)
	case "set":
		return p.set(t)
	case "macro":
		return p.macro(t)
	case "call":
		return p.callBlock(t)
	case "filter":
		f := &filterBlock{filters: p.filters(true)}
		f.frame = p.within(nil, func() { f.body, _ = p.statements(t, "endfilter") })
		return f
	case "with":
		return p.with(t)
	case "generation":
		g := &generation{}
		g.frame = p.within(nil, func() {
			g.body = p.apart(func() []statement {
				body, _ := p.statements(t, "endgeneration")
				return body
			})
		})
		return g
	case "print":
		s := &print{line: t.line}
		for !p.is(blockEnd) {
			if s.values != nil {
				p.expect(",")
			}
			s.values = append(s.values, p.expression())
		}
		return s
	case "break", "continue":
		if p.loops == 0 {
			fail(t.line, "statement "+t.text, "no loop is around it")
		}
		if t.text == "break" {
			return &jump{breaks}
		}
		return &jump{continues}
	case "include", "import", "from", "extends", "block":
		fail(t.line, "statement "+t.text, "a chat template reads no other template and has no blocks")
	case "do":
		fail(t.line, "statement do", "transformers does not have it: write {%% set _ = … %%}")
	}
	fail(t.line, "statement "+t.text, "it is unknown here, or ends nothing")
	return nil
}

// apart parses a body that break cannot leave.
func (p *parser) apart(parse func() []statement) []statement {
	loops := p.loops
	p.loops = 0
	defer func() { p.loops = loops }()
	return parse()
}

func (p *parser) ifs(opened token) statement {
	s := &ifs{}
	p.soft++
	defer func() { p.soft-- }()
	for {
		condition := p.tuple(false)
		p.frame.conditional++
		body, ended := p.statements(opened, "elif", "else", "endif")
		s.branches = append(s.branches, branch{condition, body})
		if ended == "else" {
			s.other, ended = p.statements(opened, "endif")
		}
		p.frame.conditional--
		if ended == "endif" {
			return s
		}
	}
}

func (p *parser) loop(opened token) statement {
	s := &loop{line: opened.line}
	s.target = p.target(false, "in")
	p.expectName("in")
	s.over = p.tuple(false, "recursive")
	if p.skipName("if") {
		p.within([]target{s.target}, func() { s.condition = p.expression() })
	}
	s.recursive = p.skipName("recursive")
	p.loops++
	ended := ""
	s.frame = p.within([]target{s.target}, func() { s.body, ended = p.statements(opened, "endfor", "else") })
	p.loops--
	if ended == "else" {
		s.otherFrame = p.within(nil, func() { s.other, _ = p.statements(opened, "endfor") })
	}
	return s
}

func (p *parser) set(opened token) statement {
	to := p.target(true)
	if p.skip("=") {
		value := p.tuple(true)
		p.frame.assign(&to)
		return &set{to, value, opened.line}
	}
	p.frame.assign(&to)
	s := &setBlock{target: to, line: opened.line}
	s.frame = p.within(nil, func() {
		s.filters = p.filters(false)
		s.body, _ = p.statements(opened, "endset")
	})
	return s
}

func (p *parser) with(opened token) statement {
	s := &with{}
	for !p.is(blockEnd) {
		if s.targets != nil {
			p.expect(",")
		}
		s.targets = append(s.targets, p.target(false))
		p.expect("=")
		s.values = append(s.values, p.expression())
	}
	s.frame = p.within(s.targets, func() { s.body, _ = p.statements(opened, "endwith") })
	return s
}

func (p *parser) macro(opened token) statement {
	m := &macroNode{name: p.targetName(), line: opened.line}
	p.frame.assignName(m.name)
	m.frame = p.within(nil, func() {
		p.signature(m)
		p.macroBody(m, opened, "endmacro")
	})
	return &define{m}
}

func (p *parser) callBlock(opened token) statement {
	m := &macroNode{line: opened.line}
	m.frame = p.within(nil, func() {
		if p.is("(") {
			p.signature(m)
		}
	})
	c, ok := p.expression().(*call)
	if !ok {
		fail(opened.line, "statement call", "it calls nothing")
	}
	p.frame = m.frame
	p.macroBody(m, opened, "endcall")
	p.frame = m.frame.around
	return &callBlock{c, m}
}

func (p *parser) signature(m *macroNode) {
	p.expect("(")
	for !p.is(")") {
		if m.parameters != nil {
			p.expect(",")
		}
		parameter := p.targetName()
		if slices.Contains(m.parameters, parameter) {
			fail(m.line, "statement macro", "the parameter %s stands twice", parameter)
		}
		m.parameters = append(m.parameters, parameter)
		p.frame.known[parameter] = true
		if p.skip("=") {
			m.defaults = append(m.defaults, p.expression())
		} else if m.defaults != nil {
			fail(m.line, "statement macro", "a parameter without a default follows one with a default")
		}
	}
	p.expect(")")
}

func (p *parser) macroBody(m *macroNode, opened token, until string) {
	outer := p.reads
	p.reads = map[string]bool{}
	m.body = p.apart(func() []statement {
		body, _ := p.statements(opened, until)
		return body
	})
	m.caller, m.varargs, m.kwargs = p.reads["caller"], p.reads["varargs"], p.reads["kwargs"]
	for _, special := range []string{"caller", "varargs", "kwargs"} {
		if slices.Contains(m.parameters, special) {
			fail(m.line, "statement macro", "%s is no name for a parameter", special)
		}
	}
	for n := range p.reads {
		if outer != nil {
			outer[n] = true
		}
	}
	p.reads = outer
}

// target reads what is assigned to: a name, names with commas, or a namespace's field.
func (p *parser) target(fields bool, until ...string) target {
	first := p.token()
	var parts []target
	tuple := false
	for {
		if len(parts) > 0 && (p.is(blockEnd) || p.is(")") || p.isName(until...)) {
			break
		}
		parts = append(parts, p.onePart(fields, until))
		if !p.skip(",") {
			break
		}
		tuple = true
	}
	if !tuple {
		return parts[0]
	}
	return target{parts: parts, line: first.line}
}

func (p *parser) onePart(fields bool, until []string) target {
	defer p.nested()()
	if p.skip("(") {
		t := p.target(fields, until...)
		p.expect(")")
		return t
	}
	t := target{line: p.token().line, name: p.targetName()}
	if fields && p.skip(".") {
		t.field = p.expect(name).text
	}
	return t
}

func (p *parser) targetName() string {
	t := p.expect(name)
	if slices.Contains([]string{"true", "false", "none", "True", "False", "None", "loop"}, t.text) {
		fail(t.line, "assignment", "%s is no name", t.text)
	}
	return t.text
}
