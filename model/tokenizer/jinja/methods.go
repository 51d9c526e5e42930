package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// method is a method of a value.
type method func(r *run, self any, g given) any

// class is what a type has by name.
type class struct {
	methods map[string]method
	// changing are methods that the immutable sandbox hides; refused are missing only here.
	changing, refused map[string]bool
}

func words(s string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

// attributes are the types' attributes, by Python's name of the type.
var attributes map[string]class

func init() {
	const generator = "close gi_code gi_frame gi_running gi_suspended gi_yieldfrom send throw"
	number := "as_integer_ratio bit_count bit_length conjugate denominator from_bytes fromhex hex imag is_integer numerator real to_bytes"
	refused := "casefold encode expandtabs format_map isidentifier istitle maketrans swapcase translate"
	attributes = map[string]class{
		"str": {methods: textMethods(), refused: words(refused)},
		"Markup": {refused: words(refused + " capitalize center count endswith escape find format index isalnum isalpha isascii isdecimal isdigit " +
			"islower isnumeric isprintable isspace isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust " +
			"rpartition rsplit rstrip split splitlines startswith strip striptags title unescape upper zfill")},
		"dict": {
			methods: map[string]method{
				"get": func(r *run, self any, g given) any {
					a := r.bare(g, 1, 2)
					r.key(a[0])
					if v, ok := self.(*dict).get(r, a[0]); ok {
						return v
					}
					return or(a[1], nil)
				},
				"keys":   viewOf("keys"),
				"values": viewOf("values"),
				"items":  viewOf("items"),
				"copy": func(r *run, self any, g given) any {
					r.bare(g, 0, 0)
					return r.dictOf(given{positional: []any{self}}, "copy")
				},
			},
			changing: words("clear pop popitem setdefault update"),
			refused:  words("fromkeys"),
		},
		"list": {
			methods: map[string]method{"count": countItems, "index": indexOf, "copy": func(r *run, self any, g given) any {
				r.bare(g, 0, 0)
				return &list{r.joined(self.(*list).items, nil)}
			}},
			changing: words("append clear extend insert pop remove reverse sort"),
		},
		"tuple":                   {methods: map[string]method{"count": countItems, "index": indexOf}},
		"range":                   {methods: map[string]method{"count": countItems, "index": indexOf}},
		"int":                     {refused: words(number)},
		"bool":                    {refused: words(number)},
		"float":                   {refused: words(number)},
		"dict_keys":               {refused: words("isdisjoint mapping")},
		"dict_values":             {refused: words("mapping")},
		"dict_items":              {refused: words("isdisjoint mapping")},
		"generator":               {refused: words(generator)},
		"Macro":                   {refused: words("arguments caller catch_kwargs catch_varargs explicit_caller name")},
		"None":                    {},
		"list_reverseiterator":    {},
		"dict_reversekeyiterator": {},
		"function":                {},
	}
}

func viewOf(kind string) method {
	return func(r *run, self any, g given) any {
		r.bare(g, 0, 0)
		r.alloc(valueBytes)
		return &view{kind, self.(*dict)}
	}
}

func countItems(r *run, self any, g given) any {
	e, n := r.bare(g, 1, 1)[0], int64(0)
	for _, other := range r.elements(self) {
		if same(e, other) || r.equal(other, e) {
			n++
		}
	}
	return n
}

func indexOf(r *run, self any, g given) any {
	a := r.bare(g, 1, 3)
	items := r.elements(self)
	start, stop, _ := r.sliceBounds([3]any{r.integer(a[1], 0), r.integer(a[2], int64(len(items))), nil}, len(items))
	for i := start; i < stop; i++ {
		if same(a[0], items[i]) || r.equal(items[i], a[0]) {
			return int64(i)
		}
	}
	r.fail("the value is not in it")
	return nil
}

// textMethods are those of str.
func textMethods() map[string]method {
	of := func(f func(r *run, s string) any) method {
		return func(r *run, self any, g given) any {
			r.bare(g, 0, 0)
			r.read(self.(string))
			return f(r, self.(string))
		}
	}
	holds := func(f func(s string) bool) method { return of(func(_ *run, s string) any { return f(s) }) }
	strip := func(left, right bool) method {
		return func(r *run, self any, g given) any {
			return r.strip(self.(string), or(r.bare(g, 0, 1)[0], nil), left, right)
		}
	}
	split := func(right bool) method {
		return func(r *run, self any, g given) any {
			a := r.bind(g, 0, "sep", "maxsplit")
			return r.split(self.(string), or(a[0], nil), int(max(min(r.integer(a[1], -1), MaxBytes), -1)), right)
		}
	}
	pad := func(left, right bool) method {
		return func(r *run, self any, g given) any {
			a := r.bare(g, 1, 2)
			return r.pad(self.(string), r.integer(a[0], 0), r.text(a[1], " "), left, right)
		}
	}
	partition := func(right bool) method {
		return func(r *run, self any, g given) any {
			s, by := self.(string), r.text(r.bare(g, 1, 1)[0], "")
			r.read(s, by)
			if by == "" {
				r.fail("an empty separator")
			}
			r.alloc(4 * valueBytes)
			i := strings.Index(s, by)
			if right {
				i = strings.LastIndex(s, by)
			}
			switch {
			case i >= 0:
				return &tuple{items: []any{s[:i], by, s[i+len(by):]}}
			case right:
				return &tuple{items: []any{"", "", s}}
			}
			return &tuple{items: []any{s, "", ""}}
		}
	}
	return map[string]method{
		"upper":      of(func(r *run, s string) any { return r.upper(s) }),
		"lower":      of(func(r *run, s string) any { return r.lower(s) }),
		"capitalize": of(func(r *run, s string) any { return r.capitalize(s) }),
		"title":      of(func(r *run, s string) any { return r.title(s) }),
		"isupper":    holds(func(s string) bool { return allOneCase(s, isUpper) }),
		"islower":    holds(func(s string) bool { return allOneCase(s, isLower) }),
		"isspace":    holds(func(s string) bool { return all(s, isSpace) }),
		"isalpha":    holds(func(s string) bool { return all(s, unicode.IsLetter) }),
		"isdecimal":  holds(func(s string) bool { return all(s, unicode.IsDigit) }),
		"isascii":    holds(isASCII),
		"isprintable": holds(func(s string) bool {
			return s == "" || all(s, func(c rune) bool { return c == ' ' || unicode.IsPrint(c) })
		}),
		"isdigit":    of(func(r *run, s string) any { return r.digit(s, false) }),
		"isnumeric":  of(func(r *run, s string) any { return r.digit(s, false) }),
		"isalnum":    of(func(r *run, s string) any { return r.digit(s, true) }),
		"strip":      strip(true, true),
		"lstrip":     strip(true, false),
		"rstrip":     strip(false, true),
		"split":      split(false),
		"rsplit":     split(true),
		"partition":  partition(false),
		"rpartition": partition(true),
		"center":     pad(true, true),
		"rjust":      pad(true, false),
		"ljust":      pad(false, true),
		"startswith": affix(strings.HasPrefix),
		"endswith":   affix(strings.HasSuffix),
		"find":       find(strings.Index, false),
		"rfind":      find(strings.LastIndex, false),
		"index":      find(strings.Index, true),
		"rindex":     find(strings.LastIndex, true),
		"count": func(r *run, self any, g given) any {
			a := r.bare(g, 1, 3)
			s, _, ok := r.within(self.(string), a[1], a[2])
			if !ok {
				return int64(0)
			}
			return int64(strings.Count(s, r.text(a[0], "")))
		},
		"removeprefix": func(r *run, self any, g given) any {
			return strings.TrimPrefix(self.(string), r.text(r.bare(g, 1, 1)[0], ""))
		},
		"removesuffix": func(r *run, self any, g given) any {
			return strings.TrimSuffix(self.(string), r.text(r.bare(g, 1, 1)[0], ""))
		},
		"replace": func(r *run, self any, g given) any {
			a := r.bare(g, 2, 3)
			return r.replace(self.(string), r.text(a[0], ""), r.text(a[1], ""), int(max(min(r.integer(a[2], -1), MaxBytes), -1)))
		},
		"join": func(r *run, self any, g given) any {
			return r.join(self.(string), r.bare(g, 1, 1)[0], func(v any) string { return r.text(v, "") })
		},
		"splitlines": func(r *run, self any, g given) any {
			keep := or(r.bind(g, 0, "keepends")[0], false)
			r.integer(keep, 0)
			return &list{r.splitLines(self.(string), truth(keep))}
		},
		"zfill": func(r *run, self any, g given) any {
			s := self.(string)
			sign := ""
			if s != "" && (s[0] == '-' || s[0] == '+') {
				sign = s[:1]
			}
			return sign + r.pad(s[len(sign):], max(r.integer(r.bare(g, 1, 1)[0], 0)-int64(len(sign)), 0), "0", true, false)
		},
		"format": func(r *run, self any, g given) any { return r.format(self.(string), g) },
	}
}

// digit says whether all are digits, or letters too. Digits beyond the decimal ones are not
// decided here.
func (r *run) digit(s string, letters bool) bool {
	return all(s, func(c rune) bool {
		if unicode.Is(unicode.No, c) || unicode.Is(unicode.Nl, c) || unicode.Is(unicode.Han, c) && !letters {
			r.fail("the digit %q is not supported", c)
		}
		return unicode.IsDigit(c) || letters && unicode.IsLetter(c)
	})
}

// within is the part of a text between two positions, and where it begins; false if it begins
// behind the end.
func (r *run) within(s string, from, to any) (part string, start int, ok bool) {
	if from == any(absent{}) && to == any(absent{}) {
		r.read(s)
		return s, 0, true
	}
	runes := r.runes(s)
	i, j, _ := r.sliceBounds([3]any{or(from, nil), or(to, nil), nil}, len(runes))
	if n, ok := plain(or(from, nil)).(int64); ok && n > int64(len(runes)) || i > j {
		return "", 0, false
	}
	return string(runes[i:j]), i, true
}

func affix(has func(s, part string) bool) method {
	return func(r *run, self any, g given) any {
		a := r.bare(g, 1, 3)
		s, _, ok := r.within(self.(string), a[1], a[2])
		parts := []any{a[0]}
		if t, isTuple := a[0].(*tuple); isTuple {
			parts = t.items
		}
		return slices.ContainsFunc(parts, func(part any) bool { return has(s, r.text(part, "")) }) && ok
	}
}

func find(index func(s, part string) int, must bool) method {
	return func(r *run, self any, g given) any {
		a := r.bare(g, 1, 3)
		part := r.text(a[0], "")
		s, start, ok := r.within(self.(string), a[1], a[2])
		i := -1
		if ok {
			if i = index(s, part); i >= 0 {
				i = start + utf8.RuneCountInString(s[:i])
			}
		}
		if i < 0 && must {
			r.fail("%q is not in the text", part)
		}
		return int64(i)
	}
}

// join joins elements as texts.
func (r *run) join(separator string, over any, text func(any) string) string {
	var b strings.Builder
	next := r.iterate(over)
	for first := true; ; first = false {
		v, ok := next()
		if !ok {
			return b.String()
		}
		s := text(v)
		if !first {
			s = separator + s
		}
		r.alloc(2 * len(s))
		b.WriteString(s)
	}
}
