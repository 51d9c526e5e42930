package jinja

import (
	"math"
	"strings"
	"unicode/utf8"
)

// attribute is value.name: a method before a key, as in Jinja2.
func (r *run) attribute(v any, name string) any {
	if found, ok := r.own(v, name); ok {
		return found
	}
	if d, ok := v.(*dict); ok {
		if found, ok := d.get(r, name); ok {
			return found
		}
	}
	return missing(v, name)
}

// item is value[index]: a key before a method.
func (r *run) item(v, index any) any {
	if found, ok := r.element(v, index); ok {
		return found
	}
	if name, ok := plain(index).(string); ok {
		if found, ok := r.own(v, name); ok {
			return found
		}
		return missing(v, name)
	}
	return &undefined{reason: typeName(v) + " has no element " + r.repr(index)}
}

func missing(v any, name string) any {
	return &undefined{reason: quoted(typeName(v)) + " has no field " + quoted(name)}
}

// own is an attribute that a value has by its type. An unsafe one is there, but undefined.
func (r *run) own(v any, name string) (any, bool) {
	switch v := v.(type) {
	case *undefined:
		r.fail("%s", v.reason)
	case *namespace:
		return v.fields.get(r, name)
	case *loopContext:
		if found, ok := v.field(name); ok {
			return found, true
		}
		if strings.HasPrefix(name, "_") {
			r.fail("the field %s is not supported", name)
		}
		return nil, false
	case *span:
		if n, ok := map[string]int64{"start": v.start, "stop": v.stop, "step": v.step}[name]; ok {
			return n, true
		}
	case *tuple:
		for i, f := range v.fields {
			if f == name {
				return v.items[i], true
			}
		}
	}
	if strings.HasPrefix(name, "__") {
		r.fail("names that begin with two underscores are not read here")
	}
	class := typeName(v)
	known, ok := attributes[class]
	if !ok {
		return nil, false
	}
	if known.changing[name] {
		return &undefined{reason: "the method " + name + " of " + class + " changes a value: the sandbox does not have it"}, true
	}
	if m, ok := known.methods[name]; ok {
		r.alloc(valueBytes)
		return &function{name, func(r *run, g given) any { return m(r, v, g) }}, true
	}
	if known.refused[name] {
		r.fail("the field %s of %s is not supported", name, class)
	}
	return nil, false
}

// element is value[index] by position or key.
func (r *run) element(v, index any) (any, bool) {
	if u, ok := v.(*undefined); ok {
		r.fail("%s", u.reason)
	}
	if d, ok := v.(*dict); ok {
		return d.get(r, index)
	}
	i, ok := plain(index).(int64)
	if !ok {
		return nil, false
	}
	var items []any
	switch v := v.(type) {
	case *list:
		items = v.items
	case *tuple:
		items = v.items
	case *span:
		n := int64(v.len())
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return nil, false
		}
		return v.item(int(i)), true
	case string:
		return r.character(v, i)
	case markup:
		c, ok := r.character(string(v), i)
		if !ok {
			return nil, false
		}
		return markup(c.(string)), true
	default:
		return nil, false
	}
	if i < 0 {
		i += int64(len(items))
	}
	if i < 0 || i >= int64(len(items)) {
		return nil, false
	}
	return items[i], true
}

// character is a character of a text, counted from its end if negative.
func (r *run) character(s string, i int64) (any, bool) {
	r.read(s)
	for i < 0 && s != "" {
		c, n := utf8.DecodeLastRuneInString(s)
		if i++; i == 0 {
			return r.made(string(c)), true
		}
		s = s[:len(s)-n]
	}
	for _, c := range s {
		if i == 0 {
			return r.made(string(c)), true
		}
		i--
	}
	return nil, false
}

// slice is value[from:to:step], where nil is absent.
func (r *run) slice(v any, bounds [3]any) any {
	n, _ := r.length(v)
	switch v := v.(type) {
	case string, markup, *list, *tuple, *span:
	case *undefined:
		r.fail("%s", v.reason)
	default:
		r.fail("%s has no slices", typeName(v))
	}
	start, stop, step := r.sliceBounds(bounds, n)
	var picked []int
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		r.alloc(8)
		picked = append(picked, i)
	}
	pick := func(items []any) []any {
		r.alloc(valueBytes * (1 + len(picked)))
		out := make([]any, len(picked))
		for k, i := range picked {
			out[k] = items[i]
		}
		return out
	}
	text := func(s string) string {
		runes := r.runes(s)
		out := make([]rune, len(picked))
		for k, i := range picked {
			out[k] = runes[i]
		}
		r.alloc(8 * len(out))
		return string(out)
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case markup:
		return markup(text(string(v)))
	case *list:
		return &list{pick(v.items)}
	case *tuple:
		return &tuple{items: pick(v.items)}
	case *span:
		return &span{v.item(start), v.item(stop), v.step * int64(step)}
	}
	return nil
}

// sliceBounds are Python's slice.indices.
func (r *run) sliceBounds(bounds [3]any, n int) (start, stop, step int) {
	whole := func(v any, absent int) int {
		switch v := plain(v).(type) {
		case nil:
			return absent
		case int64:
			return int(max(min(v, math.MaxInt32), math.MinInt32))
		}
		r.fail("%s is no integer", typeName(v))
		return 0
	}
	if step = whole(bounds[2], 1); step == 0 {
		r.fail("a step of 0")
	}
	low, high := 0, n
	first, last := 0, n
	if step < 0 {
		low, high = -1, n-1
		first, last = n-1, -1
	}
	bound := func(v any, absent int) int {
		if v == nil {
			return absent
		}
		i := whole(v, absent)
		if i < 0 {
			i += n
		}
		return max(min(i, high), low)
	}
	return bound(bounds[0], first), bound(bounds[1], last), step
}
