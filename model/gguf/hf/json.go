package hf

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// object is a JSON object whose members keep their order, as Python's dictionaries do. Values are
// nil, bool, int, string, number, []string, list and object.
type object []member

type member struct {
	key   string
	value any
}

// list is a JSON array.
type list []any

// number is a float64, written as Python writes it.
type number float64

// with is the object with another member at its end.
func (o object) with(key string, value any) object { return append(o, member{key, value}) }

// JSON is the object with an indent of two spaces, byte by byte as Python's
// json.dump(…, ensure_ascii=False, indent=2) writes it.
func (o object) JSON() []byte {
	var b bytes.Buffer
	writeJSON(&b, o, "\n")
	return b.Bytes()
}

// writeJSON writes a value; newline is a line's end and the indent of what holds the value.
func writeJSON(b *bytes.Buffer, value any, newline string) {
	switch v := value.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int:
		b.WriteString(strconv.Itoa(v))
	case string:
		writeText(b, v)
	case number:
		b.WriteString(v.String())
	case []string:
		items := make(list, len(v))
		for i, s := range v {
			items[i] = s
		}
		writeJSON(b, items, newline)
	case list:
		writeItems(b, "[]", len(v), newline, func(i int, inner string) { writeJSON(b, v[i], inner) })
	case object:
		writeItems(b, "{}", len(v), newline, func(i int, inner string) {
			writeText(b, v[i].key)
			b.WriteString(": ")
			writeJSON(b, v[i].value, inner)
		})
	default:
		panic(fmt.Sprintf("JSON of a %T", value))
	}
}

// writeItems writes n items between brackets, a line each.
func writeItems(b *bytes.Buffer, brackets string, n int, newline string, item func(i int, inner string)) {
	b.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(newline + "  ")
		item(i, newline+"  ")
	}
	if n > 0 {
		b.WriteString(newline)
	}
	b.WriteByte(brackets[1])
}

// String is Python's repr of a float: the shortest decimal, with a point or an exponent.
func (n number) String() string {
	f := float64(n)
	if abs := max(f, -f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// escapes are the characters with an escape of their own in JSON.
var escapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\b", `\b`, "\f", `\f`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

func writeText(b *bytes.Buffer, s string) {
	b.WriteByte('"')
	for _, c := range []byte(escapes.Replace(s)) {
		if c < ' ' {
			fmt.Fprintf(b, `\u%04x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}
