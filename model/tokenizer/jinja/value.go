package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Values are Python's: nil is None; bool, int64, float64 and string are themselves; and
type (
	// markup is a text marked as safe, which Python's Markup is.
	markup string

	list  struct{ items []any }
	tuple struct {
		items  []any
		fields []string // names of the items, of groupby's
	}

	// dict keeps the order of its keys.
	dict struct {
		keys, values []any
		at           map[any]int // by hash key
	}

	// view is what keys, values and items of a dict give.
	view struct {
		kind string
		of   *dict
	}

	// span is a range.
	span struct{ start, stop, step int64 }

	// iterator gives its elements once. Its truth is always true.
	iterator struct {
		kind string // Python's name of its type
		next next
	}

	undefined struct{ reason string }

	namespace struct{ fields *dict }

	macro struct {
		node  *macroNode
		scope *scope
	}

	// function is a function or a method.
	function struct {
		name string
		call func(r *run, a given) any
	}
)

// next gives the next element, or false.
type next func() (any, bool)

func newDict() *dict { return &dict{at: map[any]int{}} }

type (
	noneKey      struct{}
	undefinedKey struct{}
	tupleKey     string
)

// hash gives what equal keys have in common, or false for a value that cannot be a key.
func (r *run) hash(v any) (any, bool) {
	r.step(1)
	switch v := v.(type) {
	case nil:
		return noneKey{}, true
	case bool:
		return number(v), true
	case int64:
		return v, true
	case float64:
		if i := int64(v); float64(i) == v && math.Abs(v) < 1<<62 {
			return i, true
		}
		return v, true
	case string:
		r.read(v)
		return v, true
	case markup:
		r.read(string(v))
		return string(v), true
	case *undefined:
		return undefinedKey{}, true
	case *tuple:
		r.deeper()
		defer func() { r.depth-- }()
		var s strings.Builder
		for _, e := range v.items {
			k, ok := r.hash(e)
			if !ok {
				return nil, false
			}
			part := strconv.Quote(describeKey(k))
			r.alloc(len(part))
			s.WriteString(part)
		}
		return tupleKey(s.String()), true
	case *list, *dict, *namespace:
		return nil, false
	}
	r.fail("%s as a key is not supported", typeName(v))
	return nil, false
}

func describeKey(k any) string {
	switch k := k.(type) {
	case noneKey:
		return "n"
	case undefinedKey:
		return "u"
	case int64:
		return "i" + strconv.FormatInt(k, 10)
	case float64:
		return "f" + strconv.FormatFloat(k, 'g', -1, 64)
	case string:
		return "s" + k
	case tupleKey:
		return "t" + string(k)
	}
	return ""
}

func (r *run) key(v any) any {
	k, ok := r.hash(v)
	if !ok {
		r.fail("%s cannot be a key", typeName(v))
	}
	return k
}

func (d *dict) set(r *run, key, value any) {
	k := r.key(key)
	if i, ok := d.at[k]; ok {
		d.values[i] = value
		return
	}
	r.alloc(2 * valueBytes)
	d.at[k] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, value)
}

// get finds a key. A value that cannot be a key is not found.
func (d *dict) get(r *run, key any) (any, bool) {
	if k, ok := r.hash(key); ok {
		if i, ok := d.at[k]; ok {
			return d.values[i], true
		}
	}
	return nil, false
}

// typeName is Python's name of a value's type.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *list:
		return "list"
	case *tuple:
		return "tuple"
	case *dict:
		return "dict"
	case *view:
		return "dict_" + v.kind
	case *span:
		return "range"
	case *iterator:
		return v.kind
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *macro:
		return "Macro"
	case *loopContext:
		return "LoopContext"
	}
	return "function"
}

// truth is a value's truth in a condition.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	}
	n, ok := size(v)
	return !ok || n != 0
}

// length is len(value), or false for a value without one.
func (r *run) length(v any) (int, bool) {
	if s, ok := plain(v).(string); ok {
		r.read(s)
		return utf8.RuneCountInString(s), true
	}
	return size(v)
}

// size is the length of what is not a text.
func size(v any) (int, bool) {
	switch v := v.(type) {
	case *list:
		return len(v.items), true
	case *tuple:
		return len(v.items), true
	case *dict:
		return len(v.keys), true
	case *view:
		return len(v.of.keys), true
	case *span:
		return v.len(), true
	case *undefined:
		return 0, true
	case *loopContext:
		return v.length(), true
	}
	return 0, false
}

func (s *span) len() int {
	switch {
	case s.step > 0 && s.start < s.stop:
		return int((s.stop-s.start-1)/s.step + 1)
	case s.step < 0 && s.start > s.stop:
		return int((s.start-s.stop-1)/-s.step + 1)
	}
	return 0
}

func (s *span) item(i int) int64 { return s.start + int64(i)*s.step }

// iterate begins to go over the elements of a value.
func (r *run) iterate(v any) next {
	next, ok := r.iterable(v)
	if !ok {
		if u, ok := v.(*undefined); ok {
			r.fail("%s", u.reason)
		}
		r.fail("%s has no elements", typeName(v))
	}
	return func() (any, bool) {
		r.step(1)
		return next()
	}
}

func (r *run) iterable(v any) (next, bool) {
	switch v := v.(type) {
	case *list:
		return each(len(v.items), func(i int) any { return v.items[i] }), true
	case *tuple:
		return each(len(v.items), func(i int) any { return v.items[i] }), true
	case *dict:
		return each(len(v.keys), func(i int) any { return v.keys[i] }), true
	case *view:
		return each(len(v.of.keys), func(i int) any { return v.item(r, i) }), true
	case *span:
		return each(v.len(), func(i int) any { return v.item(i) }), true
	case string:
		return characters(v), true
	case markup:
		return characters(string(v)), true // of plain texts, as Python's
	case *iterator:
		return v.next, true
	case *undefined:
		return func() (any, bool) { return nil, false }, true
	}
	return nil, false
}

func (v *view) item(r *run, i int) any {
	switch v.kind {
	case "keys":
		return v.of.keys[i]
	case "values":
		return v.of.values[i]
	}
	r.alloc(3 * valueBytes)
	return &tuple{items: []any{v.of.keys[i], v.of.values[i]}}
}

func each(n int, item func(i int) any) next {
	i := -1
	return func() (any, bool) {
		if i++; i >= n {
			return nil, false
		}
		return item(i), true
	}
}

func characters(s string) next {
	return func() (any, bool) {
		if s == "" {
			return nil, false
		}
		_, n := utf8.DecodeRuneInString(s)
		c := s[:n]
		s = s[n:]
		return c, true
	}
}

// elements are all elements of a value.
func (r *run) elements(v any) []any {
	var items []any
	for next := r.iterate(v); ; {
		e, ok := next()
		if !ok {
			return items
		}
		r.alloc(valueBytes)
		items = append(items, e)
	}
}

// number is a bool as the number that it is in Python.
func number(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

// plain is a value with bools as numbers and markup as text.
func plain(v any) any {
	switch v := v.(type) {
	case bool:
		return number(v)
	case markup:
		return string(v)
	}
	return v
}
