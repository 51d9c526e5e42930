package jinja

import "slices"

// given are the arguments of a call.
type given struct {
	positional []any
	names      []string
	keywords   []any
}

// absent is an argument that was not given.
type absent struct{}

// bind gives each parameter its argument. The first ones are required.
func (r *run) bind(g given, required int, parameters ...string) []any {
	if len(g.positional) > len(parameters) {
		r.fail("%d arguments, at most %d are taken", len(g.positional), len(parameters))
	}
	values := make([]any, len(parameters))
	for i := range values {
		values[i] = absent{}
		if i < len(g.positional) {
			values[i] = g.positional[i]
		}
	}
	for k, n := range g.names {
		i := slices.Index(parameters, n)
		if i < 0 {
			r.fail("it takes no argument %s", n)
		}
		if i < len(g.positional) {
			r.fail("the argument %s stands twice", n)
		}
		values[i] = g.keywords[k]
	}
	for i := range required {
		if values[i] == any(absent{}) {
			r.fail("the argument %s is missing", parameters[i])
		}
	}
	return values
}

// bare is bind of a method that takes no named arguments.
func (r *run) bare(g given, required, most int) []any {
	if len(g.names) > 0 {
		r.fail("it takes no named arguments")
	}
	if len(g.positional) < required || len(g.positional) > most {
		r.fail("%d arguments, want %d to %d", len(g.positional), required, most)
	}
	values := make([]any, most)
	for i := range values {
		values[i] = absent{}
		if i < len(g.positional) {
			values[i] = g.positional[i]
		}
	}
	return values
}

// or is an argument, or a value for an absent one.
func or(v, otherwise any) any {
	if v == any(absent{}) {
		return otherwise
	}
	return v
}

// integer is an argument that must be an integer.
func (r *run) integer(v any, otherwise int64) int64 {
	n, ok := plain(or(v, otherwise)).(int64)
	if !ok {
		r.fail("%s is no integer", typeName(v))
	}
	return n
}

// text is an argument that must be a text.
func (r *run) text(v any, otherwise string) string {
	s, ok := plain(or(v, otherwise)).(string)
	if !ok {
		if u, ok := v.(*undefined); ok {
			r.fail("%s", u.reason)
		}
		r.fail("%s is no text", typeName(v))
	}
	return s
}
