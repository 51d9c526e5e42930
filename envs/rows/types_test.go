package rows

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

// Every column that pyarrow writes is read by its meaning or refused by a sentence with its name, its type and
// what to do.
func TestTypesOfPyarrow(t *testing.T) {
	b, err := os.ReadFile("testdata/types.json")
	require.NoError(t, err)
	var files map[string]map[string][]string
	require.NoError(t, json.Unmarshal(b, &files))
	for file, columns := range files {
		content, err := os.ReadFile("testdata/" + file)
		require.NoError(t, err)
		for _, name := range slices.Sorted(maps.Keys(columns)) {
			t.Run(file+"/"+name, func(t *testing.T) {
				f, err := openParquet(content, plain)
				require.NoError(t, err)
				texts, err := readColumn(f, Column{Name: name, Numbers: true}, plain)
				if columns[name] == nil {
					requireRefused(t, err, name)
					return
				}
				require.NoError(t, err)
				require.Equal(t, columns[name], slices.Concat(texts...))
				_, err = readColumn(f, Column{Name: name}, plain)
				if slices.Contains([]string{"string", "large_string", "string_view", "categories", "binary"}, name) {
					require.NoError(t, err, "a question is a text")
				} else {
					require.Error(t, err, "a question is a text")
				}
			})
		}
	}
}

// requireRefused checks that a column is refused with its name, its type and what to do.
func requireRefused(t *testing.T, err error, name string) {
	t.Helper()
	var wrong *Error
	require.ErrorAs(t, err, &wrong)
	require.Contains(t, wrong.Want, fmt.Sprintf("in the column %q, which is ", name))
	require.Contains(t, wrong.Want, "write it as a column of strings")
}

// annotated is a file whose answer has another annotation than it was written with.
func annotated(t *testing.T, content []byte, change func(*format.SchemaElement)) []byte {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)), parquet.SkipPageIndex(true))
	require.NoError(t, err)
	m := *f.Metadata()
	m.Schema = slices.Clone(m.Schema)
	for i := range m.Schema {
		if m.Schema[i].Name == "answer" {
			m.Schema[i].LogicalType = thrift.Null[format.LogicalType]{}
			m.Schema[i].ConvertedType = thrift.Null[deprecated.ConvertedType]{}
			change(&m.Schema[i])
		}
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), m)
	require.NoError(t, err)
	old := binary.LittleEndian.Uint32(content[len(content)-8:])
	out := append(slices.Clone(content[:len(content)-8-int(old)]), footer...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(footer))), "PAR1"...)
}

// physical is a file whose answer is of one physical type and has no annotation.
func physical[T any](t *testing.T, answer T) []byte {
	t.Helper()
	return table(t, &parquet.Uncompressed, struct {
		Question string `parquet:"question"`
		Answer   T      `parquet:"answer"`
	}{"a?", answer})
}

// All annotations on all physical types: what each means, and the rest is refused.
func TestAnnotations(t *testing.T) {
	type logical = format.LogicalType
	files := map[string][]byte{
		"BOOLEAN":    physical(t, true),
		"INT32":      physical(t, int32(-7)),
		"INT64":      physical(t, int64(-7)),
		"INT96":      physical(t, deprecated.Int96{7}),
		"FLOAT":      physical(t, float32(-7.5)),
		"DOUBLE":     physical(t, -7.5),
		"BYTE_ARRAY": physical(t, []byte("75")),
		"FIXED(2)":   physical(t, [2]byte{0x37, 0x35}), // 75 as text, 14133 as a number, 0.326 as float16
		"FIXED(12)":  physical(t, [12]byte{11: 1}),
		"FIXED(16)":  physical(t, [16]byte{15: 1}),
	}
	decimal := func(scale, precision int32) *logical {
		return &logical{Decimal: &format.DecimalType{Scale: scale, Precision: precision}}
	}
	integer := func(width int8, signed bool) *logical {
		return &logical{Integer: &format.IntType{BitWidth: width, IsSigned: signed}}
	}
	unit := format.TimeUnit{Micros: new(format.MicroSeconds)}
	annotations := map[string]*logical{
		"none": nil, "UTF8": {UTF8: new(format.StringType)}, "MAP": {Map: new(format.MapType)}, "LIST": {List: new(format.ListType)},
		"ENUM": {Enum: new(format.EnumType)}, "DECIMAL(4,1)": decimal(1, 4), "DECIMAL(4,-1)": decimal(-1, 4), "DECIMAL(4,5)": decimal(5, 4),
		"DECIMAL(4,0)": decimal(0, 4), "DECIMAL(500,400)": decimal(400, 500),
		"DATE": {Date: new(format.DateType)},
		"TIME": {Time: &format.TimeType{Unit: unit}}, "TIMESTAMP": {Timestamp: &format.TimestampType{Unit: unit}},
		"INT(8)": integer(8, true), "INT(16)": integer(16, true),
		"INT(32)": integer(32, true), "INT(64)": integer(64, true), "INT(7)": integer(7, true),
		"UINT(8)": integer(8, false), "UINT(16)": integer(16, false), "UINT(32)": integer(32, false), "UINT(64)": integer(64, false),
		"NULL": {Unknown: new(format.NullType)}, "JSON": {Json: new(format.JsonType)}, "BSON": {Bson: new(format.BsonType)},
		"UUID": {UUID: new(format.UUIDType)}, "FLOAT16": {Float16: new(format.Float16Type)}, "VARIANT": {Variant: new(format.VariantType)},
		"GEOMETRY": {Geometry: new(format.GeometryType)}, "GEOGRAPHY": {Geography: new(format.GeographyType)},
		"of a later format": {},
	}
	want := map[string]string{
		"BOOLEAN none": "true",
		"INT32 none":   "-7", "INT32 INT(8)": "-7", "INT32 INT(16)": "-7", "INT32 INT(32)": "-7", "INT32 UINT(32)": "4294967289",
		"INT32 DECIMAL(4,1)": "-0.7", "INT32 DECIMAL(4,0)": "-7",
		"INT64 none": "-7", "INT64 INT(64)": "-7", "INT64 UINT(64)": "18446744073709551609",
		"INT64 DECIMAL(4,1)": "-0.7", "INT64 DECIMAL(4,0)": "-7",
		"FLOAT none": "-7.5", "DOUBLE none": "-7.5",
		"BYTE_ARRAY none": "75", "BYTE_ARRAY UTF8": "75", "BYTE_ARRAY ENUM": "75", "BYTE_ARRAY JSON": "75",
		"BYTE_ARRAY DECIMAL(4,1)": "1413.3", "BYTE_ARRAY DECIMAL(4,0)": "14133",
		"FIXED(2) FLOAT16": "0.326", "FIXED(2) DECIMAL(4,1)": "1413.3", "FIXED(2) DECIMAL(4,0)": "14133",
		"FIXED(12) DECIMAL(4,1)": "0.1", "FIXED(12) DECIMAL(4,0)": "1", "FIXED(16) DECIMAL(4,1)": "0.1", "FIXED(16) DECIMAL(4,0)": "1",
	}
	// A value outside the type that its annotation names: the row is wrong, not the column.
	outside := []string{"INT32 UINT(8)", "INT32 UINT(16)"}
	seen := 0
	for of, content := range files {
		for name, a := range annotations {
			combined := of + " " + name
			changed := annotated(t, content, func(s *format.SchemaElement) {
				if a != nil {
					s.LogicalType = thrift.New(*a)
				}
			})
			got, err := read(changed, plain)
			switch text, ok := want[combined]; {
			case ok:
				require.NoError(t, err, combined)
				require.Equal(t, [][][]string{{{"a?"}, {text}}}, got, combined)
				seen++
			case slices.Contains(outside, combined):
				require.ErrorContains(t, err, `row 1: want a value of its column's type in the column "answer"`, combined)
				seen++
			case strings.Contains(fmt.Sprint(err), "undamaged"):
				// An annotation that the format does not allow there, which the reader of Parquet refuses first.
				require.Contains(t, name, "DECIMAL", combined)
			default:
				requireRefused(t, err, "answer")
			}
		}
	}
	require.Equal(t, len(want)+len(outside), seen)
}

// The annotations of the format's first version mean what the logical types do.
func TestConvertedTypes(t *testing.T) {
	int32s, int64s := physical(t, int32(-7)), physical(t, int64(-7))
	texts, twelve := physical(t, []byte("75")), physical(t, [12]byte{11: 1})
	for _, c := range []struct {
		of   deprecated.ConvertedType
		in   []byte
		want string // "" is refused
	}{
		{deprecated.UTF8, texts, "75"}, {deprecated.Enum, texts, "75"}, {deprecated.Json, texts, "75"}, {deprecated.Bson, texts, ""},
		{deprecated.Map, texts, ""}, {deprecated.MapKeyValue, texts, ""}, {deprecated.List, texts, ""},
		{deprecated.Decimal, int32s, "-0.07"}, {deprecated.Decimal, int64s, "-0.07"},
		{deprecated.Decimal, texts, "141.33"}, {deprecated.Decimal, twelve, "0.01"},
		{deprecated.Date, int32s, ""}, {deprecated.TimeMillis, int32s, ""}, {deprecated.TimeMicros, int64s, ""},
		{deprecated.TimestampMillis, int64s, ""}, {deprecated.TimestampMicros, int64s, ""}, {deprecated.Interval, twelve, ""},
		{deprecated.Uint32, int32s, "4294967289"}, {deprecated.Uint64, int64s, "18446744073709551609"},
		{deprecated.Int8, int32s, "-7"}, {deprecated.Int16, int32s, "-7"}, {deprecated.Int32, int32s, "-7"}, {deprecated.Int64, int64s, "-7"},
		{99, int32s, ""},
	} {
		content := annotated(t, c.in, func(s *format.SchemaElement) {
			s.ConvertedType = thrift.New(c.of)
			if c.of == deprecated.Decimal {
				s.Scale, s.Precision = thrift.New(int32(2)), thrift.New(int32(9))
			}
		})
		got, err := read(content, plain)
		if c.want == "" {
			requireRefused(t, err, "answer")
			continue
		}
		require.NoError(t, err, c.of)
		require.Equal(t, [][][]string{{{"a?"}, {c.want}}}, got, c.of)
	}
}

// Values that have no meaning as an answer are wrong by row.
func TestValuesOutsideTheirType(t *testing.T) {
	json := func(text string) []byte {
		return annotated(t, physical(t, []byte(text)), func(s *format.SchemaElement) {
			s.LogicalType = thrift.New(format.LogicalType{Json: new(format.JsonType)})
		})
	}
	for _, c := range []struct {
		content []byte
		want    string
	}{
		{physical(t, math.NaN()), "a finite number"},
		{physical(t, float32(math.Inf(-1))), "a finite number"},
		{json(`{"a":1}`), "a JSON string, number, true or false"},
		{json(`null`), "a JSON string, number, true or false"},
		{json(`1 2`), "a JSON string, number, true or false"},
		{json("\xff"), "UTF-8"},
	} {
		_, err := read(c.content, plain)
		require.ErrorContains(t, err, "row 1: want "+c.want+` in the column "answer"`)
	}
}

// A half is read back from its decimal, and no shorter one would be.
func TestHalfDecimal(t *testing.T) {
	values := map[float64]bool{}
	for half := range uint16(0x7c00) {
		text, want := halfDecimal(half)
		require.Empty(t, want)
		f, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		require.False(t, values[f], text)
		values[f] = true
		if negative, _ := halfDecimal(half | 0x8000); half > 0 {
			require.Equal(t, "-"+text, negative)
		}
	}
	for half, text := range map[uint16]string{0: "0", 1: "6e-08", 0x2e66: "0.1", 0x3555: "0.3333", 0x7bff: "65504", 0x4248: "3.14"} {
		got, _ := halfDecimal(half)
		require.Equal(t, text, got)
	}
}

// An encoding that the reader of Parquet lacks is named: the file is not damaged.
func TestEncodingsThatAreNotRead(t *testing.T) {
	content := physical(t, int32(7))
	f, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)), parquet.SkipPageIndex(true))
	require.NoError(t, err)
	for i, column := range f.Metadata().RowGroups[0].Columns {
		if column.MetaData.PathInSchema[0] == "answer" {
			f.Metadata().RowGroups[0].Columns[i].MetaData.Encoding = []format.Encoding{format.ByteStreamSplit}
		}
	}
	_, err = readColumn(f, Column{Name: "answer", Numbers: true}, plain)
	require.ErrorContains(t, err, `in the column "answer" without the encoding BYTE_STREAM_SPLIT`)
	_, err = readColumn(f, Column{Name: "question"}, plain)
	require.NoError(t, err)
}
