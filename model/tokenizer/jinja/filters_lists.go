package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// lazily is what Python's generators are: nothing is computed before the first element is asked
// for, and each element is given once.
func (r *run) lazily(begin func() next) *iterator {
	r.alloc(valueBytes)
	var source next
	return &iterator{"generator", func() (any, bool) {
		if r.level++; r.level > maxLevel {
			r.fail("more than %d filters wait for one another", maxLevel)
		}
		defer func() { r.level-- }()
		if source == nil {
			source = begin()
		}
		return source()
	}}
}

func nothing() (any, bool) { return nil, false }

func (r *run) listed(items []any) next { return each(len(items), func(i int) any { return items[i] }) }

// path is what reads an attribute with dots ("a.b", "0") of a value. With a default, a missing
// one is replaced.
func (r *run) path(attribute, otherwise any) func(v any) any {
	var parts []any
	switch a := plain(attribute).(type) {
	case nil:
	case string:
		for part := range strings.SplitSeq(a, ".") {
			if n, err := strconv.ParseInt(part, 10, 64); err == nil && isDigit(part[0]) {
				parts = append(parts, n)
			} else {
				parts = append(parts, part)
			}
		}
	default:
		parts = []any{attribute}
	}
	return func(v any) any {
		for _, part := range parts {
			v = r.item(v, part)
			if _, ok := v.(*undefined); ok && otherwise != nil {
				v = otherwise
			}
		}
		return v
	}
}

// folded is a value for comparing without regard to case.
func (r *run) folded(v any) any {
	switch s := v.(type) {
	case string:
		return r.lower(s)
	case markup:
		return r.lower(string(s))
	}
	return v
}

// keyOf is what elements are compared by.
func (r *run) keyOf(attribute, otherwise any, caseSensitive bool) func(v any) any {
	get := r.path(attribute, otherwise)
	if caseSensitive {
		return get
	}
	return func(v any) any { return r.folded(get(v)) }
}

// sorted sorts elements by keys. Equal ones keep their order, also in reverse.
func (r *run) sorted(items []any, key func(any) any, reverse bool) []any {
	type keyed struct{ key, item any }
	all := make([]keyed, len(items))
	for i, e := range items {
		r.alloc(valueBytes)
		all[i] = keyed{key(e), e}
	}
	if len(items) > 1 {
		slices.SortStableFunc(all, func(a, b keyed) int {
			if reverse {
				a, b = b, a
			}
			switch {
			case r.less(a.key, b.key):
				return -1
			case r.less(b.key, a.key):
				return 1
			}
			return 0
		})
	}
	out := make([]any, len(items))
	for i, e := range all {
		out[i] = e.item
	}
	return out
}

func sortFilter(r *run, v any, g given) any {
	a := r.bind(g, 0, "reverse", "case_sensitive", "attribute")
	caseSensitive := truth(or(a[1], false))
	attribute := or(a[2], nil)
	names := []any{attribute}
	if text, ok := plain(attribute).(string); ok {
		names = nil
		for n := range strings.SplitSeq(text, ",") {
			names = append(names, n)
		}
	}
	var keys []func(any) any
	for _, n := range names {
		keys = append(keys, r.keyOf(n, nil, caseSensitive))
	}
	key := func(v any) any { // a list, whose elements are equal before they are less
		t := &tuple{}
		for _, k := range keys {
			r.alloc(valueBytes)
			t.items = append(t.items, k(v))
		}
		return t
	}
	return &list{r.sorted(r.elements(v), key, truth(or(a[0], false)))}
}

func dictSort(r *run, v any, g given) any {
	a := r.bind(g, 0, "case_sensitive", "by", "reverse")
	by := r.text(a[1], "key")
	if by != "key" && by != "value" {
		r.fail("it sorts by key or value")
	}
	d, ok := v.(*dict)
	if !ok {
		if u, ok := v.(*undefined); ok {
			r.fail("%s", u.reason)
		}
		r.fail("%s is no mapping", typeName(v))
	}
	key := func(pair any) any {
		k := pair.(*tuple).items[0]
		if by == "value" {
			k = pair.(*tuple).items[1]
		}
		if truth(or(a[0], false)) {
			return k
		}
		return r.folded(k)
	}
	return &list{r.sorted(r.elements(&view{"items", d}), key, truth(or(a[2], false)))}
}

func groupBy(r *run, v any, g given) any {
	a := r.bind(g, 1, "attribute", "default", "case_sensitive")
	caseSensitive := truth(or(a[2], false))
	key := r.keyOf(a[0], or(a[1], nil), caseSensitive)
	real := r.path(a[0], or(a[1], nil))
	groups := &list{}
	var members *list
	var last any
	for _, e := range r.sorted(r.elements(v), key, false) {
		k := key(e)
		if members == nil || !r.equal(k, last) {
			members = &list{}
			last = k
			r.alloc(4 * valueBytes)
			groups.items = append(groups.items, &tuple{[]any{real(e), members}, []string{"grouper", "list"}})
		}
		r.alloc(valueBytes)
		members.items = append(members.items, e)
	}
	return groups
}

func (r *run) extreme(v any, g given, operator string) any {
	a := r.bind(g, 0, "case_sensitive", "attribute")
	key := r.keyOf(or(a[1], nil), nil, truth(or(a[0], false)))
	items := r.elements(v)
	if len(items) == 0 {
		return &undefined{reason: "No aggregated item, sequence was empty."}
	}
	best, bestKey := items[0], key(items[0])
	for _, e := range items[1:] {
		if k := key(e); r.ordered(operator, k, bestKey) {
			best, bestKey = e, k
		}
	}
	return best
}

func sum(r *run, v any, g given) any {
	a := r.bind(g, 0, "attribute", "start")
	total := or(a[1], int64(0))
	if isText(total) {
		r.fail("texts are not summed")
	}
	get := r.path(or(a[0], nil), nil)
	floats, exact := 0, 0.0
	for _, e := range r.elements(v) {
		e = get(e)
		total = r.arithmetic("+", total, e)
		if f, ok := plain(total).(float64); ok {
			floats++
			switch n := plain(e).(type) {
			case float64:
				exact = n
			case int64:
				exact = float64(n)
			}
			if floats > 2 && f != math.Trunc(f) && exact != 0 {
				r.fail("a sum of several floats depends on Python's version") // 3.12 adds more exactly
			}
		}
	}
	return total
}

func first(r *run, v any, g given) any {
	r.bare(g, 0, 0)
	if e, ok := r.iterate(v)(); ok {
		return e
	}
	return &undefined{reason: "No first item, sequence was empty."}
}

func last(r *run, v any, g given) any {
	r.bare(g, 0, 0)
	switch v.(type) {
	case *iterator, *loopContext:
		r.fail("%s has no end: make a list of it", typeName(v))
	}
	items := r.elements(v)
	if len(items) == 0 {
		return &undefined{reason: "No last item, sequence was empty."}
	}
	return items[len(items)-1]
}

func reverse(r *run, v any, g given) any {
	r.bare(g, 0, 0)
	kind := "list_reverseiterator"
	switch v := v.(type) {
	case string:
		return r.slice(v, [3]any{nil, nil, int64(-1)})
	case markup:
		return r.slice(v, [3]any{nil, nil, int64(-1)})
	case *iterator:
		items := r.elements(v)
		slices.Reverse(items)
		return &list{items}
	case *dict, *view:
		kind = "dict_reversekeyiterator"
	case *span:
		kind = "range_iterator"
	case *tuple, *undefined:
		kind = "reversed"
	}
	items := r.elements(v)
	slices.Reverse(items)
	return &iterator{kind, r.listed(items)}
}

func unique(r *run, v any, g given) any {
	a := r.bind(g, 0, "case_sensitive", "attribute")
	key := r.keyOf(or(a[1], nil), nil, truth(or(a[0], false)))
	return r.lazily(func() next {
		source, seen := r.iterate(v), newDict()
		return func() (any, bool) {
			for {
				e, ok := source()
				if !ok {
					return nil, false
				}
				k := key(e)
				if _, ok := seen.get(r, k); !ok {
					seen.set(r, k, nil)
					return e, true
				}
			}
		}
	})
}

func items(r *run, v any, g given) any {
	r.bare(g, 0, 0)
	return r.lazily(func() next {
		switch d := v.(type) {
		case *undefined:
			return nothing
		case *dict:
			return r.iterate(&view{"items", d})
		}
		r.fail("%s is no mapping", typeName(v))
		return nil
	})
}

func joinFilter(r *run, v any, g given) any {
	a := r.bind(g, 0, "d", "attribute")
	get := r.path(or(a[1], nil), nil)
	return r.join(r.str(or(a[0], "")), v, func(e any) string { return r.str(get(e)) })
}

// batch makes lists of a length of the elements.
func batch(r *run, v any, g given) any {
	a := r.bind(g, 1, "linecount", "fill_with")
	return r.lazily(func() next {
		source := r.iterate(v)
		return func() (any, bool) {
			row := &list{}
			for !r.equal(int64(len(row.items)), a[0]) || len(row.items) == 0 {
				e, ok := source()
				if !ok {
					break
				}
				r.alloc(valueBytes)
				row.items = append(row.items, e)
			}
			if len(row.items) == 0 {
				return nil, false
			}
			if fill := or(a[1], nil); fill != nil {
				if _, ok := plain(a[0]).(int64); !ok {
					r.fail("%s is no integer", typeName(a[0]))
				}
				for int64(len(row.items)) < r.integer(a[0], 0) {
					r.alloc(valueBytes)
					row.items = append(row.items, fill)
				}
			}
			return row, true
		}
	})
}

// sliceFilter makes a number of lists of the elements.
func sliceFilter(r *run, v any, g given) any {
	a := r.bind(g, 1, "slices", "fill_with")
	return r.lazily(func() next {
		items, n := r.elements(v), r.integer(a[0], 0)
		if n <= 0 {
			r.fail("%d slices", n)
		}
		each, extra := int64(len(items))/n, int64(len(items))%n
		at, i := int64(0), int64(0)
		return func() (any, bool) {
			if i == n {
				return nil, false
			}
			size := each
			if i < extra {
				size++
			}
			r.alloc(valueBytes * int(size+2))
			row := &list{slices.Clone(items[at : at+size])}
			if fill := or(a[1], nil); fill != nil && i >= extra {
				row.items = append(row.items, fill)
			}
			at += size
			i++
			return row, true
		}
	})
}

func mapFilter(r *run, v any, g given) any {
	line, construct := r.line, r.construct
	return r.lazily(func() next {
		r.at(line, construct)
		if !truth(v) {
			return nothing
		}
		var f func(any) any
		if i := slices.Index(g.names, "attribute"); i >= 0 && len(g.positional) == 0 {
			a := r.bind(g, 0, "attribute", "default")
			f = r.path(a[0], or(a[1], nil))
		} else {
			if len(g.positional) == 0 {
				r.fail("it needs the name of a filter or an attribute")
			}
			name, _ := g.positional[0].(string)
			use, ok := filters[name]
			if !ok {
				refuseFilter(line, r.str(g.positional[0]))
			}
			rest := given{g.positional[1:], g.names, g.keywords}
			f = func(e any) any { return use(r, e, rest) }
		}
		source := r.iterate(v)
		return func() (any, bool) {
			e, ok := source()
			if !ok {
				return nil, false
			}
			return f(e), true
		}
	})
}

// choose is select, reject, selectattr and rejectattr.
func (r *run) choose(v any, g given, byAttribute, keep bool) any {
	line, construct := r.line, r.construct
	return r.lazily(func() next {
		r.at(line, construct)
		if !truth(v) {
			return nothing
		}
		get := func(e any) any { return e }
		rest := g
		if byAttribute {
			if len(g.positional) == 0 {
				r.fail("it needs the name of an attribute")
			}
			get = r.path(g.positional[0], nil)
			rest.positional = g.positional[1:]
		}
		is := truth
		if len(rest.positional) > 0 {
			name, _ := rest.positional[0].(string)
			test, ok := tests[name]
			if !ok {
				refuseTest(line, r.str(rest.positional[0]))
			}
			rest.positional = rest.positional[1:]
			is = func(e any) bool { return truth(test(r, e, rest)) }
		}
		source := r.iterate(v)
		return func() (any, bool) {
			for {
				e, ok := source()
				if !ok {
					return nil, false
				}
				if is(get(e)) == keep {
					return e, true
				}
			}
		}
	})
}
