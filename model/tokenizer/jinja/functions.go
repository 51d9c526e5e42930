package jinja

import "strings"

// functions are what a template can call by name. Those that are missing here are named, so
// that a template hears why.
var functions = map[string]any{
	"raise_exception": &function{"raise_exception", func(r *run, g given) any {
		r.fail("%s", r.str(r.bind(g, 1, "message")[0]))
		return nil
	}},
	"range":     &function{"range", func(r *run, g given) any { return r.span(g) }},
	"dict":      &function{"dict", func(r *run, g given) any { return r.dictOf(g, "dict") }},
	"namespace": &function{"namespace", func(r *run, g given) any { return r.namespace(g) }},
	"cycler":    refusedFunction("cycler"),
	"joiner":    refusedFunction("joiner"),
	"lipsum":    refusedFunction("lipsum"),
}

func refusedFunction(name string) *function {
	return &function{name, func(r *run, _ given) any {
		r.fail("it is not supported")
		return nil
	}}
}

func (r *run) span(g given) any {
	a := r.bare(g, 1, 3)
	s := &span{0, r.integer(a[0], 0), r.integer(a[2], 1)}
	if a[1] != any(absent{}) {
		s.start, s.stop = s.stop, r.integer(a[1], 0)
	}
	const most = 1 << 40
	if s.step == 0 || max(s.start, s.stop, s.step, -s.start, -s.stop, -s.step) > most {
		r.fail("a step of 0, or a number above %d", int64(most))
	}
	if n := s.len(); n > 100_000 {
		r.fail("%d numbers, at most 100000 are made", n)
	}
	return s
}

// dictOf is dict(mapping or pairs, name=value …).
func (r *run) dictOf(g given, what string) *dict {
	d := newDict()
	if len(g.positional) > 1 {
		r.fail("%s takes at most one value that has no name", what)
	}
	for _, v := range g.positional {
		if u, ok := v.(*undefined); ok {
			r.fail("%s", u.reason)
		}
		if from, ok := v.(*dict); ok {
			for i, k := range from.keys {
				d.set(r, k, from.values[i])
			}
			continue
		}
		for _, pair := range r.elements(v) {
			both := r.elements(pair)
			if len(both) != 2 {
				r.fail("%d values, want a key and a value", len(both))
			}
			d.set(r, both[0], both[1])
		}
	}
	for i, n := range g.names {
		d.set(r, n, g.keywords[i])
	}
	return d
}

func (r *run) namespace(g given) any {
	d := r.dictOf(g, "namespace")
	for _, k := range d.keys {
		if s, ok := k.(string); ok && strings.HasPrefix(s, "_") {
			r.fail("a namespace has no field that begins with an underscore")
		}
	}
	return &namespace{d}
}
