package jinja

import "strings"

// tests are those after "is".
var tests map[string]func(r *run, v any, g given) any

const (
	jinjaTests = "odd even divisibleby defined undefined filter test none boolean false true integer float lower upper string mapping number " +
		"sequence iterable callable sameas escaped in == eq equalto != ne > gt greaterthan ge >= < lt lessthan <= le"
	jinjaFilters = "abs attr batch capitalize center count d default dictsort e escape filesizeformat first float forceescape format groupby " +
		"indent int join last length list lower items map min max pprint random reject rejectattr replace reverse round safe select selectattr " +
		"slice sort string striptags sum title tojson trim truncate unique upper urlencode urlize wordcount wordwrap xmlattr"
)

func refuseTest(line int, name string) {
	if words(jinjaTests)[name] {
		fail(line, "test "+name, "it is not supported")
	}
	fail(line, "test "+name, "there is no such test")
}

func refuseFilter(line int, name string) {
	if words(jinjaFilters)[name] {
		fail(line, "filter "+name, "it is not supported")
	}
	fail(line, "filter "+name, "there is no such filter")
}

func init() {
	of := func(f func(v any) bool) func(*run, any, given) any {
		return func(r *run, v any, g given) any {
			r.bare(g, 0, 0)
			return f(v)
		}
	}
	is := func(types string) func(*run, any, given) any {
		names := words(types)
		return of(func(v any) bool { return names[typeName(v)] })
	}
	compare := func(operator string) func(*run, any, given) any {
		return func(r *run, v any, g given) any { return r.compare(operator, v, r.bare(g, 1, 1)[0]) }
	}
	remainder := func(want int64) func(*run, any, given) any {
		return func(r *run, v any, g given) any {
			r.bare(g, 0, 0)
			return r.equal(r.arithmetic("%", v, int64(2)), want)
		}
	}
	oneCase := func(is func(rune) bool) func(*run, any, given) any {
		return func(r *run, v any, g given) any {
			r.bare(g, 0, 0)
			s := r.str(v)
			r.read(s)
			return allOneCase(s, is)
		}
	}
	known := func(names string) func(*run, any, given) any {
		return func(r *run, v any, g given) any {
			r.bare(g, 0, 0)
			s, ok := plain(v).(string)
			if !ok {
				r.key(v)
			}
			return ok && words(names)[s]
		}
	}
	tests = map[string]func(r *run, v any, g given) any{
		"defined":   of(func(v any) bool { _, ok := v.(*undefined); return !ok }),
		"undefined": is("Undefined"),
		"none":      is("None"),
		"boolean":   is("bool"),
		"true":      of(func(v any) bool { return v == true }),
		"false":     of(func(v any) bool { return v == false }),
		"integer":   is("int"),
		"float":     is("float"),
		"number":    is("int float bool"),
		"string":    is("str Markup"),
		"mapping":   is("dict"),
		"sequence":  is("str Markup list tuple dict range Undefined"),
		"iterable": is("str Markup list tuple dict range Undefined dict_keys dict_values dict_items generator list_reverseiterator " +
			"dict_reversekeyiterator range_iterator reversed LoopContext"),
		"callable": is("function Macro LoopContext Undefined"),
		"escaped":  is("Markup"),
		"lower":    oneCase(isLower),
		"upper":    oneCase(isUpper),
		"odd":      remainder(1),
		"even":     remainder(0),
		"divisibleby": func(r *run, v any, g given) any {
			return r.equal(r.arithmetic("%", v, r.bind(g, 1, "num")[0]), int64(0))
		},
		"in":     func(r *run, v any, g given) any { return r.contains(r.bind(g, 1, "seq")[0], v) },
		"sameas": func(r *run, v any, g given) any { return r.sameAs(v, r.bind(g, 1, "other")[0]) },
		"filter": known(jinjaFilters),
		"test":   known(jinjaTests),
	}
	for operator, names := range map[string]string{
		"==": "eq equalto", "!=": "ne", ">": "gt greaterthan", ">=": "ge", "<": "lt lessthan", "<=": "le",
	} {
		tests[operator] = compare(operator)
		for n := range strings.FieldsSeq(names) {
			tests[n] = compare(operator)
		}
	}
}

// sameAs says that two values are one object. For equal numbers and texts that depends on how
// Python keeps them.
func (r *run) sameAs(a, b any) any {
	switch a.(type) {
	case nil, bool:
		return a == b
	case int64, float64, string, markup, *tuple, *function:
		if typeName(a) == typeName(b) {
			r.fail("whether equal values of %s are one object depends on Python", typeName(a))
		}
		return false
	}
	return a == b
}
