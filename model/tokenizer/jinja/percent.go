package jinja

import (
	"math"
	"strconv"
	"strings"
)

// percent is text % values. Precisions, widths and conversions are Python's.
func (r *run) percent(format string, values any) string {
	r.read(format)
	t, isTuple := values.(*tuple)
	d, isDict := values.(*dict)
	arguments, used := []any{values}, 0
	if isTuple {
		arguments = t.items
	}
	take := func() any {
		if used >= len(arguments) {
			r.fail("not enough values for the format")
		}
		used++
		return arguments[used-1]
	}
	out := &output{run: r}
	named := false
	for {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			out.write(format)
			break
		}
		out.write(format[:i])
		format = format[i+1:]
		var c conversion
		var key string
		var byKey bool
		if strings.HasPrefix(format, "(") {
			end := strings.IndexByte(format, ')')
			if end < 0 || strings.Contains(format[1:end], "(") || !isDict {
				r.fail("a named format needs a mapping, and a name between parentheses")
			}
			key, format, byKey, named = format[1:end], format[end+1:], true, true
		}
		number := func() int {
			if strings.HasPrefix(format, "*") {
				format = format[1:]
				n := r.integer(take(), 0)
				if n < 0 {
					r.fail("a negative width is not supported")
				}
				return int(min(n, MaxBytes))
			}
			n := 0
			for format != "" && format[0] >= '0' && format[0] <= '9' {
				n = min(n*10+int(format[0]-'0'), MaxBytes)
				format = format[1:]
			}
			return n
		}
		for format != "" && strings.IndexByte("-+ 0#", format[0]) >= 0 {
			c.flags += format[:1]
			format = format[1:]
		}
		c.width, c.precision = number(), -1
		if strings.HasPrefix(format, ".") {
			format = format[1:]
			c.precision = number()
		}
		format = strings.TrimLeft(format, "hlL")
		if format == "" {
			r.fail("the format is cut short")
		}
		verb := format[0]
		format = format[1:]
		if verb == '%' {
			out.write("%")
			continue
		}
		var v any
		if byKey {
			found, ok := d.get(r, key)
			if !ok {
				r.fail("the mapping has no key %q", key)
			}
			v = found
		} else {
			v = take()
		}
		out.write(r.convert(c, verb, v))
	}
	if used < len(arguments) && !named {
		switch values.(type) {
		case *dict, *list, *span, *undefined: // what can be indexed may be a mapping for Python
		default:
			r.fail("not all values are used by the format")
		}
	}
	return out.text.String()
}

// conversion is one % of a format.
type conversion struct {
	flags            string
	width, precision int // precision -1 without
}

func (c conversion) has(flag string) bool { return strings.Contains(c.flags, flag) }

func (r *run) convert(c conversion, verb byte, v any) string {
	sign, body, numeric := "", "", true
	switch verb {
	case 's', 'r', 'a':
		numeric = false
		if body = r.repr(v); verb == 's' {
			body = r.str(v)
		} else if verb == 'a' && !isASCII(body) {
			r.fail("%%a of other letters is not supported")
		}
		if runes := r.runes(body); c.precision >= 0 && c.precision < len(runes) {
			body = string(runes[:c.precision])
		}
	case 'c':
		numeric = false
		if n, ok := plain(v).(int64); ok && n >= 0 && n < 0xd800 {
			body = string(rune(n))
		} else if s, ok := plain(v).(string); ok && len([]rune(s[:min(len(s), 8)])) == 1 {
			body = s
		} else {
			r.fail("%%c of %s", typeName(v))
		}
	case 'd', 'i', 'u', 'x', 'X', 'o':
		sign, body = r.digits(c, verb, v)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		sign, body = r.decimals(c, verb, v)
	default:
		r.fail("the conversion %%%c is unknown", verb)
	}
	if numeric && sign == "" {
		switch {
		case c.has("+"):
			sign = "+"
		case c.has(" "):
			sign = " "
		}
	}
	missing := int64(max(c.width-len([]rune(body))-len(sign), 0))
	switch {
	case c.has("-"):
		return sign + body + r.repeat(" ", missing)
	case c.has("0") && numeric:
		return sign + r.repeat("0", missing) + body
	}
	return r.repeat(" ", missing) + sign + body
}

func (r *run) digits(c conversion, verb byte, v any) (sign, body string) {
	n, ok := plain(v).(int64)
	if f, isFloat := v.(float64); isFloat && strings.IndexByte("diu", verb) >= 0 && math.Abs(f) < 1<<62 {
		n, ok = int64(f), true
	}
	if !ok {
		r.fail("%%%c of %s", verb, typeName(v))
	}
	if c.has("#") {
		r.fail("%%#%c is not supported", verb)
	}
	base := 10
	switch verb {
	case 'x', 'X':
		base = 16
	case 'o':
		base = 8
	}
	body = strconv.FormatInt(n, base)
	if n < 0 {
		sign, body = "-", body[1:]
	}
	if verb == 'X' {
		body = strings.ToUpper(body)
	}
	return sign, r.repeat("0", int64(max(c.precision-len(body), 0))) + body
}

func (r *run) decimals(c conversion, verb byte, v any) (sign, body string) {
	f, ok := plain(v).(float64)
	if n, isInt := plain(v).(int64); isInt {
		f, ok = float64(n), true
	}
	if !ok {
		r.fail("%%%c of %s", verb, typeName(v))
	}
	precision := c.precision
	if precision < 0 {
		precision = 6
	}
	if c.has("#") || math.IsNaN(f) || math.IsInf(f, 0) || precision > 1000 {
		r.fail("%%%c of this number is not supported", verb)
	}
	if verb == 'g' || verb == 'G' {
		precision = max(precision, 1)
	}
	lower := verb | 0x20
	body = strconv.FormatFloat(math.Abs(f), lower, precision, 64)
	if math.Signbit(f) {
		sign = "-"
	}
	if verb != lower {
		body = strings.ToUpper(body)
	}
	return sign, body
}

// format is text.format(…) with plain fields: {}, {0}, {name}, each with !r or !s.
func (r *run) format(s string, g given) string {
	r.read(s)
	out := &output{run: r}
	automatic, manual := 0, false
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			out.write(s)
			break
		}
		out.write(s[:i])
		if strings.HasPrefix(s[i:], "{{") || strings.HasPrefix(s[i:], "}}") {
			out.write(s[i : i+1])
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			r.fail("a single brace in the format")
		}
		field := s[i+1 : i+end]
		s = s[i+end+1:]
		field, convert, converts := strings.Cut(field, "!")
		if strings.ContainsAny(field, ":.[{") || converts && convert != "r" && convert != "s" {
			r.fail("the field {%s} is not supported: only {}, {0} and {name}, with !r or !s", field)
		}
		var v any
		n, err := strconv.Atoi(field)
		switch {
		case field == "" && !manual:
			n, automatic = automatic, automatic+1
			err = nil
		case field == "" || err == nil && automatic > 0:
			r.fail("numbered and unnumbered fields are mixed")
		case err == nil:
			manual = true
		}
		if err == nil {
			if n < 0 || n >= len(g.positional) {
				r.fail("there is no value for the field {%s}", field)
			}
			v = g.positional[n]
		} else {
			found := false
			for k, name := range g.names {
				if name == field {
					v, found = g.keywords[k], true
				}
			}
			if !found {
				r.fail("there is no value for the field {%s}", field)
			}
		}
		if _, ok := v.(float64); !ok && convert == "" {
			switch v.(type) {
			case nil, bool, int64, string, *list, *tuple, *dict, *undefined:
			default:
				r.fail("a field of %s is not supported", typeName(v))
			}
		}
		if convert == "r" {
			out.write(r.repr(v))
		} else {
			out.write(r.str(v))
		}
	}
	return out.text.String()
}
