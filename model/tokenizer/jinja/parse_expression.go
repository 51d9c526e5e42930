package jinja

import (
	"slices"
	"strconv"
)

// tuple reads an expression, or several with commas between. Without conditionals it stops
// before "if".
func (p *parser) tuple(conditionals bool, until ...string) expression {
	return p.tupleIn(conditionals, false, until...)
}

func (p *parser) tupleIn(conditionals, parentheses bool, until ...string) expression {
	var items []expression
	line, tuple := p.token().line, false
	for {
		if p.is(variableEnd) || p.is(blockEnd) || p.is(")") || p.isName(until...) {
			break
		}
		if conditionals {
			items = append(items, p.expression())
		} else {
			items = append(items, p.or())
		}
		if !p.skip(",") {
			break
		}
		tuple = true
	}
	if tuple || parentheses && items == nil {
		return &display{items, true}
	}
	if items == nil {
		fail(line, "syntax", "found %s, want an expression", p.token())
	}
	return items[0]
}

func (p *parser) expression() expression {
	defer p.nested()()
	line := p.token().line
	value := p.or()
	for p.skipName("if") {
		p.soft++
		c := &conditional{condition: p.or(), value: value, line: line}
		if p.skipName("else") {
			c.other = p.expression()
		}
		p.soft--
		value = c
	}
	return value
}

func (p *parser) or() expression {
	left := p.and()
	for p.skipName("or") {
		left = &logical{true, left, p.and()}
	}
	return left
}

func (p *parser) and() expression {
	left := p.not()
	for p.skipName("and") {
		left = &logical{false, left, p.not()}
	}
	return left
}

func (p *parser) not() expression {
	if line := p.token().line; p.skipName("not") {
		defer p.nested()()
		return &unary{"not", p.not(), line}
	}
	return p.compare()
}

func (p *parser) compare() expression {
	c := &comparison{line: p.token().line, first: p.sum()}
	for {
		operator := ""
		switch t := p.token(); {
		case slices.Contains([]kind{"==", "!=", "<", "<=", ">", ">="}, t.kind):
			operator = string(t.kind)
		case p.isName("in"):
			operator = "in"
		case p.isName("not") && p.tokens[p.at+1].kind == name && p.tokens[p.at+1].text == "in":
			p.next()
			operator = "not in"
		default:
			if c.operators == nil {
				return c.first
			}
			return c
		}
		p.next()
		c.operators = append(c.operators, operator)
		c.operands = append(c.operands, p.sum())
	}
}

// infix reads operators of one rank, the left first.
func (p *parser) infix(operand func() expression, operators ...kind) expression {
	line := p.token().line
	left := operand()
	for slices.Contains(operators, p.token().kind) {
		operator := string(p.next().kind)
		left = &binary{operator, left, operand(), line}
	}
	return left
}

func (p *parser) sum() expression { return p.infix(p.concatenation, "+", "-") }

func (p *parser) concatenation() expression {
	c := &concatenation{line: p.token().line, parts: []expression{p.product()}}
	for p.skip("~") {
		c.parts = append(c.parts, p.product())
	}
	if len(c.parts) == 1 {
		return c.parts[0]
	}
	return c
}

func (p *parser) product() expression { return p.infix(p.power, "*", "/", "//", "%") }

func (p *parser) power() expression { return p.infix(func() expression { return p.unary(true) }, "**") }

func (p *parser) unary(filters bool) expression {
	defer p.nested()()
	t := p.token()
	var value expression
	switch {
	case p.skip("-"), p.skip("+"):
		value = &unary{string(t.kind), p.unary(false), t.line}
	default:
		value = p.primary()
	}
	value = p.postfix(value)
	if filters {
		value = p.filtered(value)
	}
	return value
}

func (p *parser) primary() expression {
	t := p.next()
	switch t.kind {
	case name:
		switch t.text {
		case "true", "True", "false", "False":
			return &constant{t.text[0] == 't' || t.text[0] == 'T'}
		case "none", "None":
			return &constant{nil}
		case "self", "super":
			fail(t.line, "name "+t.text, "a chat template has no blocks")
		}
		if p.reads != nil {
			p.reads[t.text] = true
		}
		p.frame.read(t.text)
		return &variable{t.text, t.line}
	case stringLiteral:
		value := t.text
		for p.is(stringLiteral) {
			value += p.next().text
		}
		return &constant{value}
	case integer:
		n, err := strconv.ParseInt(t.text, 0, 64)
		if err != nil {
			fail(t.line, "number", "%s has more than 64 bits", t.text)
		}
		return &constant{n}
	case float:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			fail(t.line, "number", "%s is too large", t.text)
		}
		return &constant{f}
	case "(":
		value := p.tupleIn(true, true)
		p.expect(")")
		return value
	case "[":
		list := &display{}
		for !p.is("]") {
			list.items = append(list.items, p.expression())
			if !p.skip(",") {
				break
			}
		}
		p.expect("]")
		return list
	case "{":
		d := &dictDisplay{line: t.line}
		for !p.is("}") {
			d.keys = append(d.keys, p.expression())
			p.expect(":")
			d.values = append(d.values, p.expression())
			if !p.skip(",") {
				break
			}
		}
		p.expect("}")
		return d
	}
	fail(t.line, "syntax", "unexpected %s", t)
	return nil
}

// postfix reads fields, indexes and calls.
func (p *parser) postfix(value expression) expression {
	for {
		t := p.token()
		switch {
		case p.skip("."):
			switch field := p.next(); field.kind {
			case name:
				value = &attribute{value, field.text, t.line}
			case integer:
				index, err := strconv.ParseInt(field.text, 0, 64)
				if err != nil {
					fail(t.line, "number", "%s has more than 64 bits", field.text)
				}
				value = &item{value, &constant{index}, t.line}
			default:
				fail(t.line, "syntax", "found %s, want the name of a field", field)
			}
		case p.skip("["):
			value = p.subscript(value, t.line)
		case p.is("("):
			value = &call{value, p.arguments(), t.line}
		default:
			return value
		}
	}
}

func (p *parser) subscript(value expression, line int) expression {
	s := &slice{value: value, line: line}
	if !p.is(":") {
		index := p.expression()
		if p.skip("]") {
			return &item{value, index, line}
		}
		if p.is(",") {
			fail(line, "index", "several indexes are not supported")
		}
		s.from = index
	}
	bound := func() expression {
		if p.skip(":"); p.is(":") || p.is("]") {
			return nil
		}
		return p.expression()
	}
	s.to = bound()
	if p.is(":") {
		s.step = bound()
	}
	p.expect("]")
	return s
}

// filtered reads filters, tests, and calls of their results.
func (p *parser) filtered(value expression) expression {
	for {
		switch {
		case p.is("|"):
			for _, f := range p.filters(false) {
				f.value = value
				value = f
			}
		case p.isName("is"):
			value = p.test(value)
		case p.is("("):
			line := p.token().line
			value = &call{value, p.arguments(), line}
		default:
			return value
		}
	}
}

// filters reads filters without their value. A filter block's first has no bar.
func (p *parser) filters(first bool) (list []*filter) {
	for first || p.skip("|") {
		first = false
		t := p.expect(name)
		f := &filter{name: p.dotted(t.text), line: t.line}
		if p.is("(") {
			f.arguments = p.arguments()
		}
		if _, ok := filters[f.name]; !ok && p.soft == 0 {
			refuseFilter(t.line, f.name)
		}
		list = append(list, f)
	}
	return list
}

// dotted reads the rest of a name with dots.
func (p *parser) dotted(n string) string {
	for p.skip(".") {
		n += "." + p.expect(name).text
	}
	return n
}

func (p *parser) test(value expression) expression {
	line := p.next().line
	negated := p.skipName("not")
	t := &test{value: value, name: p.dotted(p.expect(name).text), line: line}
	switch k := p.token().kind; {
	case k == "(":
		t.arguments = p.arguments()
	case slices.Contains([]kind{name, stringLiteral, integer, float, "[", "{"}, k) && !p.isName("else", "or", "and"):
		if p.isName("is") {
			fail(line, "test "+t.name, "tests do not follow one another")
		}
		t.positional = []expression{p.postfix(p.primary())}
	}
	if _, ok := tests[t.name]; !ok && p.soft == 0 {
		refuseTest(line, t.name)
	}
	if negated {
		return &unary{"not", t, line}
	}
	return t
}

func (p *parser) arguments() (a arguments) {
	line := p.expect("(").line
	check := func(ok bool) {
		if !ok {
			fail(line, "call", "its arguments are out of order")
		}
	}
	for !p.is(")") {
		switch {
		case p.skip("*"):
			check(a.star == nil && a.stars == nil)
			a.star = p.expression()
		case p.skip("**"):
			check(a.stars == nil)
			a.stars = p.expression()
		case p.is(name) && p.tokens[p.at+1].kind == "=":
			check(a.stars == nil)
			n := p.next().text
			p.next()
			check(!slices.Contains(a.names, n))
			a.names = append(a.names, n)
			a.keywords = append(a.keywords, p.expression())
		default:
			check(a.star == nil && a.stars == nil && a.names == nil)
			a.positional = append(a.positional, p.expression())
		}
		if !p.skip(",") {
			break
		}
	}
	p.expect(")")
	return a
}
