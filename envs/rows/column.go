package rows

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// columnType is what the values of a Parquet column mean.
type columnType struct {
	// words name the type as the format's documents do: "INT64 TIMESTAMP".
	words string
	// texts says that values are texts, as most columns must be.
	texts bool
	// read gives a value as text; want, if not "", says what the value should be. It is nil for a
	// type that is not read.
	read func(v parquet.Value) (text, want string)
}

const (
	wantUTF8   = "UTF-8"
	wantFinite = "a finite number"
	wantRange  = "a value of its column's type"
)

// typeOf is the type of a column, from the file's schema: a top-level one, or the elements of a list. The annotation
// decides: one physical type holds signed and unsigned integers, decimals, dates and times.
func typeOf(f *parquet.File, path []string, c Column) columnType {
	schema := f.Metadata().Schema
	at := within(schema, 0, path)
	if at < 0 {
		return columnType{words: "of no known type"}
	}
	return elementType(&schema[at], c)
}

// within is the place of the column that a path leads to from the one at a place; -1 if there is none.
func within(schema []format.SchemaElement, at int, path []string) int {
	if len(path) == 0 {
		return at
	}
	next := at + 1
	for range schema[at].NumChildren.V {
		if next >= len(schema) {
			break
		}
		if schema[next].Name == path[0] {
			return within(schema, next, path[1:])
		}
		next = after(schema, next)
	}
	return -1
}

// after is the place of the next column beside one, past the columns within it.
func after(schema []format.SchemaElement, at int) int {
	next := at + 1
	for range schema[at].NumChildren.V {
		if next >= len(schema) {
			break
		}
		next = after(schema, next)
	}
	return next
}

func elementType(e *format.SchemaElement, c Column) columnType {
	annotation := annotationOf(e)
	t := columnType{words: annotation}
	if e.Type.Valid {
		kind := e.Type.V
		t.words = strings.TrimSpace(kind.String() + " " + annotation)
		t.texts, t.read = reader(e, kind, annotation, c.Numbers)
	} else if annotation == "" {
		t.words = "a group of columns"
	}
	if e.RepetitionType.V == format.Repeated && !c.List {
		t.words, t.read = "repeated "+t.words, nil
	}
	return t
}

// convertedWords name the annotations of the format's first version, in the words of the logical types.
var convertedWords = map[deprecated.ConvertedType]string{
	deprecated.UTF8: "STRING", deprecated.Map: "MAP", deprecated.MapKeyValue: "MAP", deprecated.List: "LIST", deprecated.Enum: "ENUM",
	deprecated.Decimal: "DECIMAL", deprecated.Date: "DATE", deprecated.TimeMillis: "TIME", deprecated.TimeMicros: "TIME",
	deprecated.TimestampMillis: "TIMESTAMP", deprecated.TimestampMicros: "TIMESTAMP",
	deprecated.Uint8: "UINT_8", deprecated.Uint16: "UINT_16", deprecated.Uint32: "UINT_32", deprecated.Uint64: "UINT_64",
	deprecated.Int8: "INT_8", deprecated.Int16: "INT_16", deprecated.Int32: "INT_32", deprecated.Int64: "INT_64",
	deprecated.Json: "JSON", deprecated.Bson: "BSON", deprecated.Interval: "INTERVAL",
}

// annotationOf names the annotation of a column, "" for none. Where there are two, the logical type counts.
func annotationOf(e *format.SchemaElement) string {
	if l := &e.LogicalType.V; e.LogicalType.Valid {
		if integer := l.Integer; integer != nil {
			signed := "U"
			if integer.IsSigned {
				signed = ""
			}
			return fmt.Sprintf("%sINT_%d", signed, integer.BitWidth)
		}
		for _, known := range []struct {
			is   bool
			name string
		}{
			{l.UTF8 != nil, "STRING"}, {l.Map != nil, "MAP"}, {l.List != nil, "LIST"}, {l.Enum != nil, "ENUM"}, {l.Decimal != nil, "DECIMAL"},
			{l.Date != nil, "DATE"}, {l.Time != nil, "TIME"}, {l.Timestamp != nil, "TIMESTAMP"}, {l.Unknown != nil, "NULL"}, {l.Json != nil, "JSON"},
			{l.Bson != nil, "BSON"}, {l.UUID != nil, "UUID"}, {l.Float16 != nil, "FLOAT16"}, {l.Variant != nil, "VARIANT"},
			{l.Geometry != nil, "GEOMETRY"}, {l.Geography != nil, "GEOGRAPHY"},
		} {
			if known.is {
				return known.name
			}
		}
	}
	if c := e.ConvertedType; c.Valid {
		if name, ok := convertedWords[c.V]; ok {
			return name
		}
	}
	if e.LogicalType.Valid || e.ConvertedType.Valid {
		return "with an annotation that is not known here"
	}
	return ""
}

// reader is how values of a physical type with an annotation are read, nil for a pair that is not read.
func reader(
	e *format.SchemaElement, kind format.Type, annotation string, numbers bool,
) (texts bool, read func(parquet.Value) (text, want string)) {
	switch {
	case annotation == "DECIMAL":
		return false, readDecimal(e, kind)
	case kind == format.Boolean && annotation == "":
		return false, func(v parquet.Value) (string, string) { return strconv.FormatBool(v.Boolean()), "" }
	case kind == format.Int32 && slices.Contains([]string{"", "INT_8", "INT_16", "INT_32"}, annotation):
		width := bits(annotation, 32)
		return false, func(v parquet.Value) (string, string) {
			return inRange(int64(v.Int32()) == int64(v.Int32())<<(64-width)>>(64-width), strconv.FormatInt(int64(v.Int32()), 10))
		}
	case kind == format.Int32 && slices.Contains([]string{"UINT_8", "UINT_16", "UINT_32"}, annotation):
		width := bits(annotation, 32)
		return false, func(v parquet.Value) (string, string) {
			n := uint64(uint32(v.Int32()))
			return inRange(n>>width == 0, strconv.FormatUint(n, 10))
		}
	case kind == format.Int64 && (annotation == "" || annotation == "INT_64"):
		return false, func(v parquet.Value) (string, string) { return strconv.FormatInt(v.Int64(), 10), "" }
	case kind == format.Int64 && annotation == "UINT_64":
		return false, func(v parquet.Value) (string, string) { return strconv.FormatUint(uint64(v.Int64()), 10), "" }
	case kind == format.Float && annotation == "":
		return false, func(v parquet.Value) (string, string) { return decimalOf(float64(v.Float()), 32) }
	case kind == format.Double && annotation == "":
		return false, func(v parquet.Value) (string, string) { return decimalOf(v.Double(), 64) }
	case kind == format.FixedLenByteArray && annotation == "FLOAT16" && e.TypeLength.V == 2:
		return false, func(v parquet.Value) (string, string) { return halfDecimal(binary.LittleEndian.Uint16(v.ByteArray())) }
	case kind == format.ByteArray && annotation == "JSON":
		return true, func(v parquet.Value) (string, string) { return readJSON(v, numbers) }
	case kind == format.ByteArray && slices.Contains([]string{"", "STRING", "ENUM"}, annotation):
		return true, func(v parquet.Value) (string, string) {
			if !utf8.Valid(v.ByteArray()) {
				return "", wantUTF8
			}
			return string(v.ByteArray()), ""
		}
	}
	return false, nil
}

// bits is the width that an annotation of integers names.
func bits(annotation string, otherwise uint) uint {
	_, width, _ := strings.Cut(annotation, "_")
	if n, err := strconv.ParseUint(width, 10, 8); err == nil {
		return uint(n)
	}
	return otherwise
}

func inRange(ok bool, text string) (string, string) {
	if !ok {
		return "", wantRange
	}
	return text, ""
}

// readDecimal reads an unscaled integer and sets the point. The text has all digits of the scale, as 12.50.
func readDecimal(e *format.SchemaElement, kind format.Type) func(parquet.Value) (text, want string) {
	scale, precision := e.Scale.V, e.Precision.V
	if e.LogicalType.Valid && e.LogicalType.V.Decimal != nil {
		scale, precision = e.LogicalType.V.Decimal.Scale, e.LogicalType.V.Decimal.Precision
	}
	if scale < 0 || scale > precision || scale > maxDigits {
		return nil
	}
	unscaled := func(v parquet.Value) *big.Int {
		switch kind {
		case format.Int32:
			return big.NewInt(int64(v.Int32()))
		case format.Int64:
			return big.NewInt(v.Int64())
		}
		b := v.ByteArray() // two's complement, the highest byte first
		n := new(big.Int).SetBytes(b)
		if len(b) > 0 && b[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		return n
	}
	switch kind {
	case format.Int32, format.Int64, format.ByteArray, format.FixedLenByteArray:
	default:
		return nil
	}
	return func(v parquet.Value) (string, string) {
		if (kind == format.ByteArray || kind == format.FixedLenByteArray) && len(v.ByteArray()) > maxDigits {
			return "", wantRange
		}
		n := unscaled(v)
		digits := new(big.Int).Abs(n).String()
		if short := int(scale) + 1 - len(digits); short > 0 {
			digits = strings.Repeat("0", short) + digits
		}
		whole := len(digits) - int(scale)
		text := digits[:whole]
		if scale > 0 {
			text += "." + digits[whole:]
		}
		if n.Sign() < 0 {
			text = "-" + text
		}
		return text, ""
	}
}

// decimalOf is the shortest decimal that is read back as the same number of its width. A whole number has all its digits.
func decimalOf(f float64, width int) (text, want string) {
	size := math.Abs(f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "", wantFinite
	case f == 0:
		return "0", ""
	case size < 1e-6 || size >= 1e21:
		return strconv.FormatFloat(f, 'e', -1, width), ""
	case f == math.Trunc(f) && size < 1<<53:
		return strconv.FormatInt(int64(f), 10), ""
	}
	return strconv.FormatFloat(f, 'f', -1, width), ""
}

// halfDecimal is decimalOf for a number of 16 bits.
func halfDecimal(half uint16) (text, want string) {
	value := halfValue(half)
	if value == math.Trunc(value) || math.IsNaN(value) {
		return decimalOf(value, 64)
	}
	// A decimal nearer than half of the way to both neighbours is read back as this number.
	magnitude := half & 0x7fff
	up := (halfValue(magnitude+1) - halfValue(magnitude)) / 2
	down := (halfValue(magnitude) - halfValue(magnitude-1)) / 2
	for digits := 1; ; digits++ {
		near, _ := strconv.ParseFloat(strconv.FormatFloat(math.Abs(value), 'e', digits-1, 64), 64)
		if off := near - math.Abs(value); off < up && -off < down {
			return decimalOf(math.Copysign(near, value), 64)
		}
	}
}

// halfValue is a number of 16 bits: a sign, 5 bits of exponent and 10 of fraction.
func halfValue(half uint16) float64 {
	sign, exponent, fraction := half>>15, int(half>>10&0x1f), float64(half&0x3ff)
	var size float64
	switch {
	case exponent == 0x1f && fraction != 0:
		return math.NaN()
	case exponent == 0x1f:
		size = math.Inf(1)
	case exponent == 0:
		size = math.Ldexp(fraction, -24)
	default:
		size = math.Ldexp(fraction+1024, exponent-25)
	}
	if sign == 1 {
		return -size
	}
	return size
}

// readJSON reads a JSON document that is a scalar: a string's text and, if numbers are allowed, a number as it is written
// or a truth value.
func readJSON(v parquet.Value, numbers bool) (text, want string) {
	raw := bytes.TrimSpace(v.ByteArray())
	want = "a JSON string"
	if numbers {
		want = "a JSON string, number, true or false"
	}
	switch {
	case !utf8.Valid(raw):
		return "", wantUTF8
	case !json.Valid(raw):
		return "", want
	case numbers && (string(raw) == "true" || string(raw) == "false"):
		return string(raw), ""
	}
	if text, ok := scalar(raw, numbers); ok {
		return text, ""
	}
	return "", want
}
