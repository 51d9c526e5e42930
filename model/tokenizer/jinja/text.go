package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// str is str(value): what is printed.
func (r *run) str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case *undefined:
		return ""
	}
	return r.repr(v)
}

// repr is repr(value).
func (r *run) repr(v any) string {
	out := &output{run: r}
	r.writeRepr(out, v)
	return out.text.String()
}

func (r *run) writeRepr(out *output, v any) {
	r.deeper()
	defer func() { r.depth-- }()
	r.step(1)
	switch v := v.(type) {
	case nil:
		out.write("None")
	case bool:
		if v {
			out.write("True")
		} else {
			out.write("False")
		}
	case int64:
		out.write(strconv.FormatInt(v, 10))
	case float64:
		out.write(floatText(v))
	case string:
		out.write(stringRepr(r, v))
	case markup:
		out.write("Markup(" + stringRepr(r, string(v)) + ")")
	case *list:
		r.writeItems(out, "[", v.items, "]")
	case *tuple:
		if len(v.items) == 1 {
			r.writeItems(out, "(", v.items, ",)")
		} else {
			r.writeItems(out, "(", v.items, ")")
		}
	case *dict:
		out.write("{")
		for i, k := range v.keys {
			if i > 0 {
				out.write(", ")
			}
			r.writeRepr(out, k)
			out.write(": ")
			r.writeRepr(out, v.values[i])
		}
		out.write("}")
	case *view:
		out.write("dict_" + v.kind + "(")
		r.writeItems(out, "[", r.elements(v), "]")
		out.write(")")
	case *span:
		out.write(fmt.Sprintf("range(%d, %d", v.start, v.stop))
		if v.step != 1 {
			out.write(fmt.Sprintf(", %d", v.step))
		}
		out.write(")")
	case *undefined:
		out.write("Undefined")
	case *namespace:
		out.write("<Namespace ")
		r.writeRepr(out, v.fields)
		out.write(">")
	case *loopContext:
		out.write(fmt.Sprintf("<LoopContext %d/%d>", v.index+1, v.length()))
	default:
		r.fail("%s is printed with its address in memory by Jinja2: pass it through a filter such as list or join", typeName(v))
	}
}

func (r *run) writeItems(out *output, begin string, items []any, end string) {
	out.write(begin)
	for i, e := range items {
		if i > 0 {
			out.write(", ")
		}
		r.writeRepr(out, e)
	}
	out.write(end)
}

func quoted(s string) string { return "'" + s + "'" }

// floatText is repr of a float.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	exponent, _ := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
	if exponent < -4 || exponent >= 16 {
		return text
	}
	text = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// stringRepr is repr of a text.
func stringRepr(r *run, s string) string {
	r.alloc(10 * len(s))
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	var b strings.Builder
	b.WriteString(quote)
	for _, c := range s {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\\' || string(c) == quote:
			b.WriteString(`\` + string(c))
		case c == ' ' || unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			b.WriteString(escapeRune(c))
		}
	}
	b.WriteString(quote)
	return b.String()
}

// escapeRune is a character as Python escapes it.
func escapeRune(c rune) string {
	switch {
	case c < 0x100:
		return fmt.Sprintf(`\x%02x`, c)
	case c < 0x10000:
		return fmt.Sprintf(`\u%04x`, c)
	}
	return fmt.Sprintf(`\U%08x`, c)
}

// isSpace is Python's white space: Unicode's, and four separators of ASCII.
func isSpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f }

// space is a white-space character in a regular expression.
const space = `[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`

// isLineEnd says where splitlines splits.
func isLineEnd(c rune) bool {
	return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
}

// runes are the characters of a text.
func (r *run) runes(s string) []rune {
	r.alloc(4 * len(s))
	return []rune(s)
}

// strip takes characters off the ends of a text: those of chars, or white space for nil.
func (r *run) strip(s string, chars any, left, right bool) string {
	r.read(s)
	cut := isSpace
	switch c := plain(chars).(type) {
	case nil:
	case string:
		set := map[rune]bool{}
		for _, e := range c {
			r.alloc(valueBytes)
			set[e] = true
		}
		cut = func(e rune) bool { return set[e] }
	default:
		r.fail("%s is no text of characters", typeName(chars))
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

// split is str.split, or str.rsplit from the right. A separator of nil is white space.
func (r *run) split(s string, separator any, most int, right bool) any {
	r.read(s)
	if most < 0 {
		most = len(s) + 1
	}
	var parts []any
	add := func(part string) {
		r.alloc(valueBytes)
		parts = append(parts, part)
	}
	switch by := plain(separator).(type) {
	case nil:
		for {
			s = r.strip(s, nil, !right, right)
			if s == "" {
				break
			}
			var i int
			if right {
				i = strings.LastIndexFunc(s, isSpace)
			} else {
				i = strings.IndexFunc(s, isSpace)
			}
			if i < 0 || len(parts) == most {
				add(s)
				break
			}
			if right {
				_, n := utf8.DecodeRuneInString(s[i:])
				add(s[i+n:])
				s = s[:i]
			} else {
				add(s[:i])
				s = s[i:]
			}
		}
	case string:
		if by == "" {
			r.fail("an empty separator")
		}
		for len(parts) < most {
			i := strings.Index(s, by)
			if right {
				i = strings.LastIndex(s, by)
			}
			if i < 0 {
				break
			}
			if right {
				add(s[i+len(by):])
				s = s[:i]
			} else {
				add(s[:i])
				s = s[i+len(by):]
			}
		}
		add(s)
	default:
		r.fail("%s is no separator", typeName(separator))
	}
	if right {
		for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
			parts[i], parts[j] = parts[j], parts[i]
		}
	}
	return &list{parts}
}

// splitLines is str.splitlines.
func (r *run) splitLines(s string, keepEnds bool) []any {
	r.read(s)
	var lines []any
	for s != "" {
		i := strings.IndexFunc(s, isLineEnd)
		r.alloc(valueBytes)
		if i < 0 {
			return append(lines, s)
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		if keepEnds {
			lines = append(lines, s[:i+n])
		} else {
			lines = append(lines, s[:i])
		}
		s = s[i+n:]
	}
	return lines
}

// replace is str.replace; a negative count is all.
func (r *run) replace(s, old, by string, count int) string {
	r.read(s, old)
	n := strings.Count(s, old)
	if count >= 0 && n > count {
		n = count
	}
	if grows := len(by) - len(old); n > 0 && grows > 0 && grows > (MaxBytes-len(s))/n {
		r.alloc(MaxBytes + 1)
	}
	r.alloc(len(s) + n*(len(by)-len(old)))
	return strings.Replace(s, old, by, n)
}

// repeat is text * n.
func (r *run) repeat(s string, n int64) string {
	if n <= 0 || s == "" {
		return ""
	}
	if n > MaxBytes || int64(len(s))*n > MaxBytes {
		r.alloc(MaxBytes + 1)
	}
	r.alloc(len(s) * int(n))
	return strings.Repeat(s, int(n))
}

// pad widens a text to a width: left and right say on which sides, both for str.center.
func (r *run) pad(s string, width int64, fill string, left, right bool) string {
	size := int64(utf8.RuneCountInString(s))
	if width > MaxBytes {
		r.alloc(MaxBytes + 1)
	}
	if utf8.RuneCountInString(fill) != 1 {
		r.fail("the fill is not one character")
	}
	missing := max(width-size, 0)
	before := missing
	switch {
	case left && right:
		before = missing/2 + missing&width&1
	case right:
		before = 0
	}
	return r.made(r.repeat(fill, before) + s + r.repeat(fill, missing-before))
}
