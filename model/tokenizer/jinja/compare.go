package jinja

import (
	"math"
	"math/big"
	"strings"
)

func (r *run) compare(operator string, a, b any) bool {
	switch operator {
	case "==":
		return r.equal(a, b)
	case "!=":
		return !r.equal(a, b)
	case "in":
		return r.contains(b, a)
	case "not in":
		return !r.contains(b, a)
	}
	return r.ordered(operator, a, b)
}

// equal is Python's ==.
func (r *run) equal(a, b any) bool {
	r.step(1)
	a, b = plain(a), plain(b)
	switch x := a.(type) {
	case nil:
		return b == nil
	case int64, float64:
		c, ok := compareNumbers(a, b)
		return ok && c == 0
	case string:
		y, ok := b.(string)
		r.read(x)
		return ok && x == y
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *list:
		y, ok := b.(*list)
		return ok && r.equalItems(x.items, y.items)
	case *tuple:
		y, ok := b.(*tuple)
		return ok && r.equalItems(x.items, y.items)
	case *dict:
		y, ok := b.(*dict)
		return ok && r.equalDicts(x, y)
	case *span:
		y, ok := b.(*span)
		return ok && x.len() == y.len() && (x.len() == 0 || x.start == y.start && (x.len() == 1 || x.step == y.step))
	case *view:
		if y, ok := b.(*view); ok && (x.kind != "values" && y.kind != "values") {
			r.fail("views of a mapping are not compared here")
		}
	case *function:
		r.fail("functions are not compared here")
	}
	return a == b
}

func (r *run) equalItems(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	r.deeper()
	defer func() { r.depth-- }()
	for i := range a {
		if !same(a[i], b[i]) && !r.equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// same says that two values are one object. Python takes it for equal within lists.
func same(a, b any) bool {
	switch a.(type) {
	case *list, *tuple, *dict, *namespace, *iterator, *undefined:
		return a == b
	}
	return false
}

func (r *run) equalDicts(a, b *dict) bool {
	if len(a.keys) != len(b.keys) {
		return false
	}
	r.deeper()
	defer func() { r.depth-- }()
	for i, k := range a.keys {
		other, ok := b.get(r, k)
		if !ok || !same(a.values[i], other) && !r.equal(a.values[i], other) {
			return false
		}
	}
	return true
}

// compareNumbers compares numbers exactly; false without an order.
func compareNumbers(a, b any) (int, bool) {
	x, okX := a.(int64)
	y, okY := b.(int64)
	f, okF := a.(float64)
	g, okG := b.(float64)
	switch {
	case okX && okY:
		switch {
		case x < y:
			return -1, true
		case x > y:
			return 1, true
		}
		return 0, true
	case okF && okG:
		switch {
		case f < g:
			return -1, true
		case f > g:
			return 1, true
		case f == g:
			return 0, true
		}
		return 0, false
	case okX && okG:
		if math.IsNaN(g) {
			return 0, false
		}
		return new(big.Float).SetInt64(x).Cmp(big.NewFloat(g)), true
	case okF && okY:
		if math.IsNaN(f) {
			return 0, false
		}
		return big.NewFloat(f).Cmp(new(big.Float).SetInt64(y)), true
	}
	return 0, false
}

// less is Python's <. Values without an order fail.
func (r *run) less(a, b any) bool { return r.ordered("<", a, b) }

// ordered is a comparison with <, <=, > or >=.
func (r *run) ordered(operator string, a, b any) bool {
	r.step(1)
	x, y := plain(a), plain(b)
	switch v := x.(type) {
	case int64, float64:
		switch y.(type) {
		case int64, float64:
			c, ok := compareNumbers(x, y)
			if !ok {
				return false // not a number
			}
			return decide(operator, c)
		}
	case string:
		if w, ok := y.(string); ok {
			r.read(v, w)
			return decide(operator, strings.Compare(v, w)) // bytes of UTF-8 have the order of characters
		}
	case *list:
		if w, ok := y.(*list); ok {
			return r.orderedItems(operator, v.items, w.items)
		}
	case *tuple:
		if w, ok := y.(*tuple); ok {
			return r.orderedItems(operator, v.items, w.items)
		}
	case *view:
		r.fail("views of a mapping are not compared here")
	}
	for _, v := range []any{a, b} {
		if u, ok := v.(*undefined); ok {
			r.fail("%s", u.reason)
		}
	}
	r.fail("%s is not supported between %s and %s", operator, typeName(a), typeName(b))
	return false
}

func decide(operator string, order int) bool {
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func (r *run) orderedItems(operator string, a, b []any) bool {
	r.deeper()
	defer func() { r.depth-- }()
	for i := range min(len(a), len(b)) {
		if !same(a[i], b[i]) && !r.equal(a[i], b[i]) {
			return r.ordered(operator, a[i], b[i])
		}
	}
	return decide(operator, len(a)-len(b))
}

// contains is "e in container".
func (r *run) contains(container, e any) bool {
	switch c := plain(container).(type) {
	case string:
		part, ok := plain(e).(string)
		if !ok {
			r.fail("%s in a text: only a text can be in one", typeName(e))
		}
		r.read(c, part)
		return strings.Contains(c, part)
	case *dict:
		r.key(e)
		_, ok := c.get(r, e)
		return ok
	case *view:
		if c.kind == "keys" {
			r.key(e)
			_, ok := c.of.get(r, e)
			return ok
		}
	}
	for next := r.iterate(container); ; {
		other, ok := next()
		if !ok {
			return false
		}
		if same(e, other) || r.equal(other, e) {
			return true
		}
	}
}
