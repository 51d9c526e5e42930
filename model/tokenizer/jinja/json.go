package jinja

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// encoder writes JSON as Python's json.dumps.
type encoder struct {
	run       *run
	out       *output
	ascii     bool
	sorted    bool
	indent    string // of a level
	indented  bool
	item, key string // separators
	depth     int
}

// toJSON is transformers' filter tojson.
func (r *run) toJSON(v any, g given) any {
	a := r.bind(g, 0, "ensure_ascii", "indent", "separators", "sort_keys")
	e := &encoder{run: r, out: &output{run: r}, ascii: truth(or(a[0], false)), sorted: truth(or(a[3], false)), item: ", ", key: ": "}
	switch indent := plain(or(a[1], nil)).(type) {
	case nil:
	case int64:
		e.indent, e.indented, e.item = r.repeat(" ", indent), true, ","
	case string:
		e.indent, e.indented, e.item = indent, true, ","
	default:
		r.fail("indent is %s", typeName(a[1]))
	}
	if separators := or(a[2], nil); separators != nil {
		both := r.elements(separators)
		if len(both) != 2 {
			r.fail("separators are %d, want 2", len(both))
		}
		e.item, e.key = r.text(both[0], ""), r.text(both[1], "")
	}
	e.value(v)
	return e.out.text.String()
}

func (e *encoder) value(v any) {
	e.run.deeper()
	defer func() { e.run.depth-- }()
	e.run.step(1)
	switch v := v.(type) {
	case nil:
		e.out.write("null")
	case bool:
		e.out.write(strconv.FormatBool(v))
	case int64:
		e.out.write(strconv.FormatInt(v, 10))
	case float64:
		e.out.write(jsonFloat(v))
	case string:
		e.out.write(e.text(v))
	case markup:
		e.out.write(e.text(string(v)))
	case *list:
		e.items("[", "]", len(v.items), func(i int) { e.value(v.items[i]) })
	case *tuple:
		e.items("[", "]", len(v.items), func(i int) { e.value(v.items[i]) })
	case *dict:
		order := make([]int, len(v.keys))
		for i := range order {
			order[i] = i
		}
		if e.sorted {
			slices.SortStableFunc(order, func(i, j int) int {
				if e.run.less(v.keys[i], v.keys[j]) {
					return -1
				}
				return 1
			})
		}
		e.items("{", "}", len(v.keys), func(i int) {
			e.out.write(e.text(e.keyText(v.keys[order[i]])) + e.key)
			e.value(v.values[order[i]])
		})
	default:
		e.run.fail("%s has no form in JSON", typeName(v))
	}
}

func jsonFloat(f float64) string {
	switch text := floatText(f); text {
	case "nan":
		return "NaN"
	case "inf":
		return "Infinity"
	case "-inf":
		return "-Infinity"
	default:
		return text
	}
}

func (e *encoder) keyText(k any) string {
	switch k := k.(type) {
	case string:
		return k
	case markup:
		return string(k)
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(k)
	case int64:
		return strconv.FormatInt(k, 10)
	case float64:
		return jsonFloat(k)
	}
	e.run.fail("%s is no key of JSON", typeName(k))
	return ""
}

func (e *encoder) items(begin, end string, n int, write func(i int)) {
	e.out.write(begin)
	e.depth++
	for i := range n {
		if i > 0 {
			e.out.write(e.item)
		}
		if e.indented {
			e.line()
		}
		write(i)
	}
	e.depth--
	if e.indented && n > 0 {
		e.line()
	}
	e.out.write(end)
}

func (e *encoder) line() { e.out.write("\n" + e.run.repeat(e.indent, int64(e.depth))) }

func (e *encoder) text(s string) string {
	e.run.alloc(6 * len(s))
	return quote(s, e.ascii)
}

// Quote writes a text as tojson does: as a JSON string with no more escapes than Python's json.dumps writes with
// ensure_ascii=False.
func Quote(s string) string { return quote(s, false) }

func quote(s string, ascii bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\b':
			b.WriteString(`\b`)
		case c == '\f':
			b.WriteString(`\f`)
		case c < 0x20 || ascii && c > 0x7e:
			if c >= 0x10000 {
				high, low := utf16.EncodeRune(c)
				fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
			} else {
				fmt.Fprintf(&b, `\u%04x`, c)
			}
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
