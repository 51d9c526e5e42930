// Package canon is canonical JSON: one sequence of bytes for one value, so that
// a digest of the bytes is a digest of the value.
//
// Canonical means: object keys sorted by their UTF-8 bytes, no space between
// tokens, no newline at the end, no HTML escaping, integers as they are written
// (never through a float), every other number as the shortest decimal that
// reads back as the same float64, no duplicate key. Numbers that JSON cannot
// say (NaN, the infinities) travel as strings in a [Float].
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"sort"
	"strconv"
)

// ErrInvalid says that a text is not JSON, or is JSON that has no canonical
// form: a duplicate key, a number beyond float64's range, text after the end.
var ErrInvalid = errors.New("not canonicalisable JSON")

// maxDepth bounds nesting, as encoding/json's own reader does for values.
const maxDepth = 1000

// Marshal returns v's canonical JSON. v is anything encoding/json can encode;
// a json.RawMessage or a MarshalJSON's result is canonicalised too. NaN and the
// infinities are an error unless their type is [Float].
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return Format(buf.Bytes())
}

// Format returns the canonical form of one JSON text, or [ErrInvalid].
func Format(text []byte) ([]byte, error) {
	v, err := parse(text)
	if err != nil {
		return nil, err
	}
	return v.append(make([]byte, 0, len(text))), nil
}

// Digest returns the lower-case hex SHA-256 of b.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// IsDigest reports whether a text is a SHA-256 in lower-case hex, as Digest gives one.
func IsDigest(text string) bool { return digestForm.MatchString(text) }

// value is a parsed JSON value: exactly one of its parts is meant by kind.
type value struct {
	kind  byte // '{', '[', '"', '0', or a literal's first letter: 't', 'f', 'n'
	text  string
	items []value
	keys  []string // of an object, sorted, beside items
}

func parse(text []byte) (value, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := parseValue(dec, 0)
	if err != nil {
		return value{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return value{}, fmt.Errorf("%w: text after the value's end at byte %d", ErrInvalid, dec.InputOffset())
	}
	return v, nil
}

func parseValue(dec *json.Decoder, depth int) (value, error) {
	tok, err := dec.Token()
	if err != nil {
		return value{}, err
	}
	switch t := tok.(type) {
	case nil:
		return value{kind: 'n'}, nil
	case bool:
		if t {
			return value{kind: 't'}, nil
		}
		return value{kind: 'f'}, nil
	case string:
		return value{kind: '"', text: t}, nil
	case json.Number:
		s, err := number(t.String())
		return value{kind: '0', text: s}, err
	case json.Delim:
		if depth >= maxDepth {
			return value{}, fmt.Errorf("nested deeper than %d", maxDepth)
		}
		if t == '[' {
			return parseArray(dec, depth)
		}
		return parseObject(dec, depth)
	}
	return value{}, fmt.Errorf("unexpected token %v", tok)
}

func parseArray(dec *json.Decoder, depth int) (value, error) {
	out := value{kind: '['}
	for dec.More() {
		v, err := parseValue(dec, depth+1)
		if err != nil {
			return value{}, err
		}
		out.items = append(out.items, v)
	}
	_, err := dec.Token()
	return out, err
}

func parseObject(dec *json.Decoder, depth int) (value, error) {
	type field struct {
		key string
		v   value
	}
	var fields []field
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return value{}, err
		}
		key, ok := tok.(string)
		if !ok {
			return value{}, fmt.Errorf("object key %v is not a string", tok)
		}
		v, err := parseValue(dec, depth+1)
		if err != nil {
			return value{}, err
		}
		fields = append(fields, field{key, v})
	}
	if _, err := dec.Token(); err != nil {
		return value{}, err
	}
	sort.SliceStable(fields, func(i, j int) bool { return fields[i].key < fields[j].key })
	out := value{kind: '{'}
	for i, f := range fields {
		if i > 0 && fields[i-1].key == f.key {
			return value{}, fmt.Errorf("key %q stands twice in one object", f.key)
		}
		out.keys = append(out.keys, f.key)
		out.items = append(out.items, f.v)
	}
	return out, nil
}

// number keeps an integer as it is written and shortens everything else.
func number(s string) (string, error) {
	integer := true
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && !(i == 0 && c == '-') {
			integer = false
			break
		}
	}
	if integer {
		return s, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return "", fmt.Errorf("number %s is beyond float64", s)
	}
	return formatFloat(f), nil
}

// formatFloat is encoding/json's shortest form (ES6's), so that a float64
// field and a canonicalised literal of the same value look alike.
func formatFloat(f float64) string {
	b, err := json.Marshal(f)
	if err != nil { // only for NaN and infinities, which no JSON number is
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return string(b)
}

func (v value) append(b []byte) []byte {
	switch v.kind {
	case 'n':
		return append(b, "null"...)
	case 't':
		return append(b, "true"...)
	case 'f':
		return append(b, "false"...)
	case '0':
		return append(b, v.text...)
	case '"':
		return appendString(b, v.text)
	case '[':
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	default:
		b = append(b, '{')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, v.keys[i])
			b = append(b, ':')
			b = item.append(b)
		}
		return append(b, '}')
	}
}

func appendString(b []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	// A string always encodes: invalid UTF-8 was replaced when it was parsed.
	_ = enc.Encode(s)
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// Float is a float64 that JSON can carry whatever its value: a shortest number if it is
// finite, else one of the strings "NaN", "Infinity", "-Infinity". Every NaN reads back as
// the one quiet NaN; the sign of zero is kept.
type Float float64

// Finite reports whether it is neither NaN nor infinite.
func (f Float) Finite() bool { return f-f == 0 }

// MarshalJSON writes a number or one of the three strings.
func (f Float) MarshalJSON() ([]byte, error) {
	x := float64(f)
	switch {
	case math.IsNaN(x):
		return []byte(`"NaN"`), nil
	case math.IsInf(x, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(x, -1):
		return []byte(`"-Infinity"`), nil
	}
	return []byte(formatFloat(x)), nil
}

// UnmarshalJSON reads what MarshalJSON writes; anything else, null included,
// is an error.
func (f *Float) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"NaN"`:
		*f = Float(math.NaN())
	case `"Infinity"`:
		*f = Float(math.Inf(1))
	case `"-Infinity"`:
		*f = Float(math.Inf(-1))
	default:
		if len(b) == 0 || b[0] != '-' && (b[0] < '0' || b[0] > '9') {
			return fmt.Errorf(`%s is neither a number nor "NaN", "Infinity" or "-Infinity"`, b)
		}
		x, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return fmt.Errorf("read float %s: %w", b, err)
		}
		*f = Float(x)
	}
	return nil
}
