package jinja

func (n *loop) exec(r *run, s *scope, out *output) signal {
	over := r.eval(n.over, s)
	return n.pass(r, s, over, 0, out)
}

// pass goes over the elements of a value.
func (n *loop) pass(r *run, s *scope, over any, depth int64, out *output) signal {
	r.at(n.line, "statement for")
	l := &loopContext{run: r, source: r.iterate(over), index: -1, depth: depth, known: -1}
	if size, ok := r.length(over); ok && n.condition == nil {
		l.known = size
	}
	if n.condition != nil {
		l.source = n.chosen(r, s, l.source)
	}
	if n.recursive {
		l.again = func(over any, depth int64) string {
			inner := &output{run: r}
			n.pass(r, s, over, depth, inner)
			return inner.text.String()
		}
	}
	empty := true
	for {
		v, ok := l.next()
		if !ok {
			break
		}
		r.alloc(valueBytes)
		inner := r.inner(s, n.frame)
		r.assign(&n.target, v, inner)
		inner.set("loop", l)
		switch r.block(n.body, inner, out) {
		case breaks:
			if empty {
				return n.otherwise(r, s, out)
			}
			return goesOn
		case goesOn:
			empty = false
		}
	}
	if empty {
		return n.otherwise(r, s, out)
	}
	return goesOn
}

// otherwise executes else. As in Jinja2's code, that is also when every pass ended with break
// or continue.
func (n *loop) otherwise(r *run, s *scope, out *output) signal {
	if n.other == nil {
		return goesOn
	}
	return r.block(n.other, r.inner(s, n.otherFrame), out)
}

// chosen are the elements that meet the loop's condition, looked at one by one.
func (n *loop) chosen(r *run, s *scope, source next) next {
	return func() (any, bool) {
		for {
			v, ok := source()
			if !ok {
				return nil, false
			}
			inner := &scope{parent: s}
			r.assign(&n.target, v, inner)
			if truth(r.eval(n.condition, inner)) {
				return v, true
			}
		}
	}
}
