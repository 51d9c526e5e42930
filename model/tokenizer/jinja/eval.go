package jinja

import (
	"slices"
	"strings"
)

// eval evaluates a node.
func (r *run) eval(e expression, s *scope) any {
	r.step(1)
	if r.level++; r.level > maxLevel {
		r.fail("more than %d nodes are evaluated for one another: does a macro call itself?", maxLevel)
	}
	v := e.eval(r, s)
	r.level--
	return v
}

func (n *constant) eval(*run, *scope) any { return n.value }

func (n *variable) eval(_ *run, s *scope) any {
	if v, ok := s.get(n.name); ok {
		return v
	}
	return &undefined{reason: quoted(n.name) + " is undefined"}
}

func (n *display) eval(r *run, s *scope) any {
	r.alloc(valueBytes * (1 + len(n.items)))
	items := make([]any, len(n.items))
	for i, e := range n.items {
		items[i] = r.eval(e, s)
	}
	if n.tuple {
		return &tuple{items: items}
	}
	return &list{items}
}

func (n *dictDisplay) eval(r *run, s *scope) any {
	d := newDict()
	for i := range n.keys {
		key, value := r.eval(n.keys[i], s), r.eval(n.values[i], s)
		r.at(n.line, "mapping")
		d.set(r, key, value)
	}
	return d
}

func (n *attribute) eval(r *run, s *scope) any {
	v := r.eval(n.value, s)
	r.at(n.line, "field "+n.name)
	return r.attribute(v, n.name)
}

func (n *item) eval(r *run, s *scope) any {
	v, index := r.eval(n.value, s), r.eval(n.index, s)
	r.at(n.line, "index")
	return r.item(v, index)
}

func (n *slice) eval(r *run, s *scope) any {
	v := r.eval(n.value, s)
	var bounds [3]any
	for i, e := range []expression{n.from, n.to, n.step} {
		if e != nil {
			bounds[i] = r.eval(e, s)
		}
	}
	r.at(n.line, "slice")
	return r.slice(v, bounds)
}

func (n *logical) eval(r *run, s *scope) any {
	left := r.eval(n.left, s)
	if truth(left) == n.or {
		return left
	}
	return r.eval(n.right, s)
}

func (n *conditional) eval(r *run, s *scope) any {
	if truth(r.eval(n.condition, s)) {
		return r.eval(n.value, s)
	}
	if n.other == nil {
		return &undefined{reason: "the inline if has no else, and its condition is false"}
	}
	return r.eval(n.other, s)
}

func (n *concatenation) eval(r *run, s *scope) any {
	values := make([]any, len(n.parts))
	for i, e := range n.parts {
		values[i] = r.eval(e, s)
	}
	r.at(n.line, "operator ~")
	var text strings.Builder
	for _, v := range values {
		part := r.str(v)
		r.alloc(2 * len(part))
		text.WriteString(part)
	}
	return text.String()
}

func (n *comparison) eval(r *run, s *scope) any {
	left := r.eval(n.first, s)
	for i, operator := range n.operators {
		right := r.eval(n.operands[i], s)
		r.at(n.line, "operator "+operator)
		if !r.compare(operator, left, right) {
			return false
		}
		left = right
	}
	return true
}

func (n *unary) eval(r *run, s *scope) any {
	v := r.eval(n.value, s)
	r.at(n.line, "operator "+n.operator)
	if n.operator == "not" {
		return !truth(v)
	}
	switch x := plain(v).(type) {
	case int64:
		if n.operator == "-" {
			return r.subtract(0, x)
		}
		return x
	case float64:
		if n.operator == "-" {
			return -x
		}
		return x
	case *undefined:
		r.fail("%s", x.reason)
	}
	r.fail("%s is no number", typeName(v))
	return nil
}

func (n *binary) eval(r *run, s *scope) any {
	left, right := r.eval(n.left, s), r.eval(n.right, s)
	r.at(n.line, "operator "+n.operator)
	return r.arithmetic(n.operator, left, right)
}

func (r *run) arguments(a *arguments, s *scope) (g given) {
	for _, e := range a.positional {
		g.positional = append(g.positional, r.eval(e, s))
	}
	if a.star != nil {
		g.positional = append(g.positional, r.elements(r.eval(a.star, s))...)
	}
	g.names = slices.Clone(a.names)
	for _, e := range a.keywords {
		g.keywords = append(g.keywords, r.eval(e, s))
	}
	if a.stars == nil {
		return g
	}
	d, ok := r.eval(a.stars, s).(*dict)
	if !ok {
		r.fail("what follows ** is no mapping")
	}
	for i, k := range d.keys {
		n, ok := k.(string)
		if !ok || slices.Contains(g.names, n) {
			r.fail("the argument %s is no name or stands twice", r.repr(k))
		}
		g.names, g.keywords = append(g.names, n), append(g.keywords, d.values[i])
	}
	return g
}

func (n *call) eval(r *run, s *scope) any { return n.with(r, s, nil) }

// with calls with a caller, which may be nil.
func (n *call) with(r *run, s *scope, caller *macro) any {
	callee := r.eval(n.callee, s)
	construct := "call"
	switch c := n.callee.(type) {
	case *variable:
		construct = "call of " + c.name
	case *attribute:
		construct = "method " + c.name
	}
	r.at(n.line, construct)
	g := r.arguments(&n.arguments, s)
	if caller != nil {
		if slices.Contains(g.names, "caller") {
			r.fail("the argument caller stands twice")
		}
		g.names, g.keywords = append(g.names, "caller"), append(g.keywords, any(caller))
	}
	r.at(n.line, construct)
	switch c := callee.(type) {
	case *function:
		return c.call(r, g)
	case *macro:
		return c.call(r, g)
	case *loopContext:
		return c.call(r, g)
	case *undefined:
		r.fail("%s", c.reason)
	}
	r.fail("%s is not called", typeName(callee))
	return nil
}

func (n *filter) eval(r *run, s *scope) any { return n.apply(r, s, r.eval(n.value, s)) }

func (n *filter) apply(r *run, s *scope, v any) any {
	g := r.arguments(&n.arguments, s)
	r.at(n.line, "filter "+n.name)
	f, ok := filters[n.name]
	if !ok {
		refuseFilter(n.line, n.name)
	}
	return f(r, v, g)
}

func (n *test) eval(r *run, s *scope) any {
	v := r.eval(n.value, s)
	g := r.arguments(&n.arguments, s)
	r.at(n.line, "test "+n.name)
	f, ok := tests[n.name]
	if !ok {
		refuseTest(n.line, n.name)
	}
	return f(r, v, g)
}
