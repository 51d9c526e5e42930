package jinja

import "slices"

// block executes statements up to one that jumps.
func (r *run) block(body []statement, s *scope, out *output) signal {
	if r.level++; r.level > maxLevel {
		r.fail("more than %d nodes are evaluated for one another: does a macro call itself?", maxLevel)
	}
	defer func() { r.level-- }()
	for _, n := range body {
		r.step(1)
		if j := n.exec(r, s, out); j != goesOn {
			return j
		}
	}
	return goesOn
}

// capture is what statements write.
func (r *run) capture(body []statement, s *scope) (string, signal) {
	out := &output{run: r}
	j := r.block(body, s, out)
	return out.text.String(), j
}

// inner opens the scope of a body.
func (r *run) inner(s *scope, f *frame) *scope {
	in := &scope{parent: s}
	if f == nil {
		return in
	}
	r.alloc(valueBytes * (1 + len(f.unset)))
	for _, n := range f.unset {
		in.set(n, &undefined{reason: quoted(n) + " is undefined"})
	}
	return in
}

func (n *text) exec(_ *run, _ *scope, out *output) signal {
	out.write(n.text)
	return goesOn
}

func (n *print) exec(r *run, s *scope, out *output) signal {
	for _, e := range n.values {
		v := r.eval(e, s)
		r.at(n.line, "printed value")
		out.write(r.str(v))
	}
	return goesOn
}

func (n *set) exec(r *run, s *scope, _ *output) signal {
	v := r.eval(n.value, s)
	r.assign(&n.target, v, s)
	return goesOn
}

func (n *setBlock) exec(r *run, s *scope, _ *output) signal {
	inner := r.inner(s, n.frame)
	written, j := r.capture(n.body, inner)
	if j != goesOn {
		return j
	}
	r.assign(&n.target, r.filtered(n.filters, written, inner), s)
	return goesOn
}

func (r *run) filtered(list []*filter, v any, s *scope) any {
	for _, f := range list {
		v = f.apply(r, s, v)
	}
	return v
}

// assign gives a target its value.
func (r *run) assign(t *target, v any, s *scope) {
	r.alloc(valueBytes)
	r.at(t.line, "assignment")
	switch {
	case t.parts != nil:
		items := r.elements(v)
		if len(items) != len(t.parts) {
			r.fail("%d values for %d names", len(items), len(t.parts))
		}
		for i := range t.parts {
			r.assign(&t.parts[i], items[i], s)
		}
	case t.field != "":
		of, _ := s.get(t.name)
		ns, ok := of.(*namespace)
		if !ok {
			r.fail("%s is no namespace", t.name)
		}
		r.setField(ns, t.field, v)
	default:
		s.set(t.name, v)
	}
}

func (r *run) setField(ns *namespace, field string, v any) {
	if field[:min(1, len(field))] == "_" {
		r.fail("a namespace has no field that begins with an underscore")
	}
	ns.fields.set(r, field, v)
}

func (n *ifs) exec(r *run, s *scope, out *output) signal {
	for _, b := range n.branches {
		if truth(r.eval(b.condition, s)) {
			return r.block(b.body, s, out)
		}
	}
	return r.block(n.other, s, out)
}

func (n *jump) exec(*run, *scope, *output) signal { return n.signal }

func (n *define) exec(r *run, s *scope, _ *output) signal {
	r.alloc(valueBytes)
	s.set(n.macro.name, &macro{n.macro, s})
	return goesOn
}

func (n *callBlock) exec(r *run, s *scope, out *output) signal {
	v := n.call.with(r, s, &macro{n.macro, s})
	r.at(n.call.line, "printed value")
	out.write(r.str(v))
	return goesOn
}

func (n *filterBlock) exec(r *run, s *scope, out *output) signal {
	inner := r.inner(s, n.frame)
	written, j := r.capture(n.body, inner)
	if j != goesOn {
		return j
	}
	out.write(r.str(r.filtered(n.filters, written, inner)))
	return goesOn
}

func (n *with) exec(r *run, s *scope, out *output) signal {
	inner := r.inner(s, n.frame)
	values := make([]any, len(n.values))
	for i, e := range n.values {
		values[i] = r.eval(e, s)
	}
	for i := range n.targets {
		r.assign(&n.targets[i], values[i], inner)
	}
	return r.block(n.body, inner, out)
}

func (n *generation) exec(r *run, s *scope, out *output) signal {
	return r.block(n.body, r.inner(s, n.frame), out)
}

// call calls a macro: its result is what it writes.
func (m *macro) call(r *run, g given) any {
	n := m.node
	r.alloc(valueBytes * (2 + len(n.parameters)))
	s := r.inner(m.scope, n.frame)
	names, keywords := slices.Clone(g.names), slices.Clone(g.keywords)
	take := func(name string) (any, bool) {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, false
		}
		v := keywords[i]
		names, keywords = slices.Delete(names, i, i+1), slices.Delete(keywords, i, i+1)
		return v, true
	}
	title := "macro " + n.name
	for i, p := range n.parameters {
		v, ok := any(nil), i < len(g.positional)
		if ok {
			v = g.positional[i]
		} else if v, ok = take(p); !ok {
			if i >= len(n.parameters)-len(n.defaults) {
				v = r.eval(n.defaults[i-len(n.parameters)+len(n.defaults)], s)
			} else {
				v = &undefined{reason: "parameter " + quoted(p) + " was not provided"}
			}
		}
		s.set(p, v)
	}
	if n.caller {
		v, ok := take("caller")
		if !ok || v == nil {
			v = &undefined{reason: "No caller defined"}
		}
		s.set("caller", v)
	}
	if n.kwargs {
		rest := newDict()
		for i, name := range names {
			rest.set(r, name, keywords[i])
		}
		s.set("kwargs", rest)
	} else if len(names) > 0 {
		r.at(n.line, title)
		r.fail("it takes no argument %s", names[0])
	}
	surplus := g.positional[min(len(g.positional), len(n.parameters)):]
	if n.varargs {
		s.set("varargs", &tuple{items: surplus})
	} else if len(surplus) > 0 {
		r.at(n.line, title)
		r.fail("it takes at most %d arguments", len(n.parameters))
	}
	written, _ := r.capture(n.body, s)
	return written
}
