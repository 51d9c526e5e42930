package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filters are those after "|", by name. A filter reads a value and its arguments.
var filters map[string]func(r *run, v any, g given) any

func init() {
	ofText := func(f func(r *run, s string) string, keeps bool) func(*run, any, given) any {
		return func(r *run, v any, g given) any {
			r.bare(g, 0, 0)
			s := r.str(v)
			r.read(s)
			if _, ok := v.(markup); ok && keeps {
				return markup(f(r, s))
			}
			return f(r, s)
		}
	}
	mark := func(f func(r *run, s string) string) func(*run, any, given) any {
		return func(r *run, v any, g given) any {
			r.bare(g, 0, 0)
			return markup(f(r, r.str(v)))
		}
	}
	escape := func(r *run, v any, g given) any {
		r.bare(g, 0, 0)
		if m, ok := v.(markup); ok {
			return m
		}
		return markup(r.escape(r.str(v)))
	}
	count := func(r *run, v any, g given) any {
		r.bare(g, 0, 0)
		n, ok := r.length(v)
		if !ok {
			r.fail("%s has no length", typeName(v))
		}
		return int64(n)
	}
	filters = map[string]func(r *run, v any, g given) any{
		"abs":         abs,
		"attr":        attr,
		"batch":       batch,
		"capitalize":  ofText((*run).capitalize, true),
		"center":      center,
		"count":       count,
		"d":           defaultTo,
		"default":     defaultTo,
		"dictsort":    dictSort,
		"e":           escape,
		"escape":      escape,
		"first":       first,
		"float":       toFloat,
		"forceescape": mark((*run).escape),
		"format":      formatFilter,
		"groupby":     groupBy,
		"indent":      indent,
		"int":         toInt,
		"items":       items,
		"join":        joinFilter,
		"last":        last,
		"length":      count,
		"list":        func(r *run, v any, g given) any { r.bare(g, 0, 0); return &list{r.elements(v)} },
		"lower":       ofText((*run).lower, true),
		"map":         mapFilter,
		"max":         func(r *run, v any, g given) any { return r.extreme(v, g, ">") },
		"min":         func(r *run, v any, g given) any { return r.extreme(v, g, "<") },
		"reject":      func(r *run, v any, g given) any { return r.choose(v, g, false, false) },
		"rejectattr":  func(r *run, v any, g given) any { return r.choose(v, g, true, false) },
		"replace":     replaceFilter,
		"reverse":     reverse,
		"round":       round,
		"safe":        mark(func(_ *run, s string) string { return s }),
		"select":      func(r *run, v any, g given) any { return r.choose(v, g, false, true) },
		"selectattr":  func(r *run, v any, g given) any { return r.choose(v, g, true, true) },
		"slice":       sliceFilter,
		"sort":        sortFilter,
		"string":      ofText(func(_ *run, s string) string { return s }, true),
		"sum":         sum,
		"title":       ofText((*run).filterTitle, false),
		"tojson":      (*run).toJSON,
		"trim":        trim,
		"truncate":    truncate,
		"unique":      unique,
		"upper":       ofText((*run).upper, true),
		"wordcount": func(r *run, v any, g given) any {
			r.bare(g, 0, 0)
			s := r.str(v)
			r.read(s)
			return int64(len(strings.FieldsFunc(s, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsNumber(c) })))
		},
	}
}

func abs(r *run, v any, g given) any {
	r.bare(g, 0, 0)
	switch n := plain(v).(type) {
	case int64:
		if n < 0 {
			return r.subtract(0, n)
		}
		return n
	case float64:
		return math.Abs(n)
	case *undefined:
		r.fail("%s", n.reason)
	}
	r.fail("%s is no number", typeName(v))
	return nil
}

func attr(r *run, v any, g given) any {
	name := r.text(r.bind(g, 1, "name")[0], "")
	if u, ok := v.(*undefined); ok {
		r.fail("%s", u.reason)
	}
	if found, ok := r.own(v, name); ok {
		return found
	}
	return missing(v, name)
}

func center(r *run, v any, g given) any {
	if _, ok := v.(markup); ok {
		r.fail("of text marked as safe is not supported")
	}
	return r.pad(r.str(v), r.integer(r.bind(g, 0, "width")[0], 80), " ", true, true)
}

func defaultTo(r *run, v any, g given) any {
	a := r.bind(g, 0, "default_value", "boolean")
	if _, ok := v.(*undefined); ok || truth(or(a[1], false)) && !truth(v) {
		return or(a[0], "")
	}
	return v
}

// parseFloat is float(text), or false.
func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	digits := strings.ReplaceAll(s, "_", "")
	if strings.ContainsAny(s, "xXpP") || strings.Contains(s, "__") || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") {
		return 0, false
	}
	for i := range len(s) {
		if s[i] == '_' && (!isDigit(s[i-1]) || !isDigit(s[i+1])) {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// needASCII refuses texts with other digits than 0 to 9, which Python reads as numbers too.
func (r *run) needASCII(s string) {
	r.read(s)
	if !isASCII(strings.TrimFunc(s, isSpace)) {
		r.fail("a number of other letters is not supported")
	}
}

func toFloat(r *run, v any, g given) any {
	otherwise := or(r.bind(g, 0, "default")[0], 0.0)
	switch n := plain(v).(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	case string:
		r.needASCII(n)
		if f, ok := parseFloat(n); ok {
			return f
		}
	case *undefined:
		r.fail("%s", n.reason)
	}
	return otherwise
}

func toInt(r *run, v any, g given) any {
	a := r.bind(g, 0, "default", "base")
	otherwise, base := or(a[0], int64(0)), r.integer(a[1], 10)
	f, ok := 0.0, false
	switch n := plain(v).(type) {
	case int64:
		return n
	case float64:
		f, ok = n, true
	case string:
		r.needASCII(n)
		if i, ok := r.parseInt(n, base); ok {
			return i
		}
		f, ok = parseFloat(n)
	case *undefined:
		r.fail("%s", n.reason)
	}
	if !ok || math.IsNaN(f) {
		return otherwise
	}
	if math.IsInf(f, 0) {
		if _, isText := plain(v).(string); !isText {
			r.fail("an infinite number")
		}
		return otherwise
	}
	if math.Abs(f) >= 1<<63 {
		r.fail("the result has more than 64 bits")
	}
	return int64(f)
}

// parseInt is int(text, base), or false.
func (r *run) parseInt(s string, base int64) (int64, bool) {
	s = strings.TrimFunc(s, isSpace)
	if base != 10 {
		switch {
		case base != 2 && base != 8 && base != 16:
			r.fail("the base %d is not supported", base)
		case strings.Contains(s, "_"):
			r.fail("underscores with a base are not supported")
		}
		sign := ""
		if s != "" && (s[0] == '-' || s[0] == '+') {
			sign, s = s[:1], s[1:]
		}
		prefix := map[int64]string{2: "0b", 8: "0o", 16: "0x"}[base]
		if len(s) > 2 && strings.EqualFold(s[:2], prefix) {
			s = s[2:]
		}
		if strings.ContainsAny(s, "+-") {
			return 0, false
		}
		s = sign + s
	}
	if strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") || strings.Contains(s, "-_") || strings.Contains(s, "+_") {
		return 0, false
	}
	i, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), int(base), 64)
	if err != nil && err.(*strconv.NumError).Err == strconv.ErrRange {
		r.fail("the result has more than 64 bits")
	}
	return i, err == nil
}

func formatFilter(r *run, v any, g given) any {
	if _, ok := v.(markup); ok {
		r.fail("of text marked as safe is not supported")
	}
	if len(g.positional) > 0 && len(g.names) > 0 {
		r.fail("it takes values either with or without names")
	}
	if len(g.names) > 0 {
		return r.percent(r.str(v), r.dictOf(g, "format"))
	}
	return r.percent(r.str(v), &tuple{items: g.positional})
}

func indent(r *run, v any, g given) any {
	a := r.bind(g, 0, "width", "first", "blank")
	if _, ok := v.(markup); ok {
		r.fail("of text marked as safe is not supported")
	}
	s := r.text(v, "")
	by, ok := plain(or(a[0], int64(4))).(string)
	if !ok {
		by = r.repeat(" ", r.integer(a[0], 4))
	}
	var b strings.Builder
	blank := truth(or(a[2], false))
	for i, line := range r.splitLines(s+"\n", false) {
		line := line.(string)
		if i > 0 {
			line = "\n" + line
			if blank || line != "\n" {
				line = "\n" + by + line[1:]
			}
		} else if truth(or(a[1], false)) {
			line = by + line
		}
		r.alloc(2 * len(line))
		b.WriteString(line)
	}
	return b.String()
}

func replaceFilter(r *run, v any, g given) any {
	a := r.bind(g, 2, "old", "new", "count")
	count := int64(-1)
	if or(a[2], nil) != nil {
		count = r.integer(a[2], -1)
	}
	return r.replace(r.str(v), r.str(a[0]), r.str(a[1]), int(max(min(count, MaxBytes), -1)))
}

func round(r *run, v any, g given) any {
	a := r.bind(g, 0, "precision", "method")
	precision, how := r.integer(a[0], 0), r.text(a[1], "common")
	if how != "common" && how != "ceil" && how != "floor" {
		r.fail("the method is common, ceil or floor")
	}
	if precision < 0 || precision > 15 {
		r.fail("a precision of %d is not supported", precision)
	}
	var f float64
	switch n := plain(v).(type) {
	case int64:
		if how == "common" {
			return n
		}
		f = float64(n)
	case float64:
		f = n
	case *undefined:
		r.fail("%s", n.reason)
	default:
		r.fail("%s is no number", typeName(v))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		if how == "common" {
			return f
		}
		r.fail("the number is not finite")
	}
	if how == "common" {
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(precision), 64), 64)
		return f
	}
	scale := math.Pow10(int(precision))
	if how == "ceil" {
		f = math.Ceil(f * scale)
	} else {
		f = math.Floor(f * scale)
	}
	if f == 0 {
		f = 0 // math.ceil gives an integer, which has no negative zero
	}
	return f / scale
}

func trim(r *run, v any, g given) any {
	chars := or(r.bind(g, 0, "chars")[0], nil)
	s := r.strip(r.str(v), chars, true, true)
	if _, ok := v.(markup); ok {
		return markup(s)
	}
	return s
}

func truncate(r *run, v any, g given) any {
	a := r.bind(g, 0, "length", "killwords", "end", "leeway")
	if _, ok := v.(markup); ok {
		r.fail("of text marked as safe is not supported")
	}
	if _, ok := v.(*undefined); ok {
		return r.refuse("of an undefined value is not supported")
	}
	s := r.text(v, "")
	length, end := r.integer(a[0], 255), r.text(a[2], "...")
	leeway := int64(5)
	if or(a[3], nil) != nil {
		leeway = r.integer(a[3], 5)
	}
	size := int64(utf8.RuneCountInString(end))
	if length < size || leeway < 0 {
		r.fail("the length %d is less than that of the end, or the leeway is negative", length)
	}
	runes := r.runes(s)
	if int64(len(runes)) <= length+leeway {
		return s
	}
	kept := string(runes[:length-size])
	if !truth(or(a[1], false)) {
		if i := strings.LastIndexByte(kept, ' '); i >= 0 {
			kept = kept[:i]
		}
	}
	return r.made(kept + end)
}

func (r *run) refuse(format string, a ...any) any {
	r.fail(format, a...)
	return nil
}
