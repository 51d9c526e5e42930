package jinja

// loopContext is the variable loop. It looks at the next element only when asked, because a
// loop's condition may depend on what its body did.
type loopContext struct {
	run     *run
	source  next
	known   int   // how many elements there are, or -1
	index   int64 // from 0
	depth   int64 // from 0
	before  any
	current any
	after   []any // elements that were looked at
	changed []any
	again   func(over any, depth int64) string // nil unless the loop is recursive
}

func (l *loopContext) next() (any, bool) {
	var v any
	if len(l.after) > 0 {
		v, l.after = l.after[0], l.after[1:]
	} else {
		var ok bool
		if v, ok = l.source(); !ok {
			return nil, false
		}
	}
	l.index++
	l.before, l.current = l.current, v
	return v, true
}

func (l *loopContext) peek() (any, bool) {
	if len(l.after) == 0 {
		v, ok := l.source()
		if !ok {
			return nil, false
		}
		l.after = append(l.after, v)
	}
	return l.after[0], true
}

func (l *loopContext) length() int {
	if l.known < 0 {
		for {
			v, ok := l.source()
			if !ok {
				break
			}
			l.run.alloc(valueBytes)
			l.after = append(l.after, v)
		}
		l.known = int(l.index) + 1 + len(l.after)
	}
	return l.known
}

// field is loop.name.
func (l *loopContext) field(name string) (any, bool) {
	switch name {
	case "index":
		return l.index + 1, true
	case "index0":
		return l.index, true
	case "revindex":
		return int64(l.length()) - l.index, true
	case "revindex0":
		return int64(l.length()) - l.index - 1, true
	case "first":
		return l.index == 0, true
	case "last":
		_, more := l.peek()
		return !more, true
	case "length":
		return int64(l.length()), true
	case "depth":
		return l.depth + 1, true
	case "depth0":
		return l.depth, true
	case "previtem":
		if l.index == 0 {
			return &undefined{reason: "there is no previous item"}, true
		}
		return l.before, true
	case "nextitem":
		if v, ok := l.peek(); ok {
			return v, true
		}
		return &undefined{reason: "there is no next item"}, true
	case "cycle":
		return &function{name, func(r *run, g given) any {
			if len(g.positional) == 0 || len(g.names) > 0 {
				r.fail("it takes values")
			}
			return g.positional[l.index%int64(len(g.positional))]
		}}, true
	case "changed":
		return &function{name, func(r *run, g given) any {
			if len(g.names) > 0 {
				r.fail("it takes no named arguments")
			}
			if l.changed != nil && r.equalItems(l.changed, g.positional) {
				return false
			}
			l.changed = append([]any{}, g.positional...)
			return true
		}}, true
	}
	return nil, false
}

func (l *loopContext) call(r *run, g given) any {
	if l.again == nil {
		r.fail("the loop is not recursive")
	}
	if len(g.positional) != 1 || len(g.names) > 0 {
		r.fail("it takes one value")
	}
	return l.again(g.positional[0], l.depth+1)
}
