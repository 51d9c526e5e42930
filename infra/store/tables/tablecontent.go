package tables

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// contentHasher digests the logical columns of a table; see Encode. Each
// column has a hash of its own, so that rows can be fed one after another.
type contentHasher struct {
	columns []columnHasher
	rows    uint64
}

type columnHasher struct {
	name string // path, type and levels, in one line
	hash hash.Hash
	buf  []byte
}

// flushAt is how many bytes of values are gathered before they are hashed.
const flushAt = 1 << 12

func newContentHasher(schema *parquet.Schema) *contentHasher {
	h := &contentHasher{}
	for _, name := range columnNames(schema) {
		h.columns = append(h.columns, columnHasher{name: name, hash: sha256.New()})
	}
	return h
}

func (h *contentHasher) row(row parquet.Row) {
	h.rows++
	for _, v := range row {
		c := &h.columns[v.Column()]
		c.buf = appendValue(c.buf, v)
		if len(c.buf) >= flushAt {
			c.hash.Write(c.buf)
			c.buf = c.buf[:0]
		}
	}
}

func appendValue(b []byte, v parquet.Value) []byte {
	b = append(b, byte(v.RepetitionLevel()), byte(v.DefinitionLevel()))
	if v.IsNull() {
		return append(b, 0)
	}
	b = append(b, 1)
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			return append(b, 1)
		}
		return append(b, 0)
	case parquet.Int32:
		return binary.LittleEndian.AppendUint32(b, uint32(v.Int32()))
	case parquet.Int64:
		return binary.LittleEndian.AppendUint64(b, uint64(v.Int64()))
	case parquet.Float:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v.Float()))
	case parquet.Double:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Double()))
	default:
		bytes := v.Bytes()
		b = binary.LittleEndian.AppendUint64(b, uint64(len(bytes)))
		return append(b, bytes...)
	}
}

func (h *contentHasher) sum() string {
	whole := sha256.New()
	fmt.Fprintf(whole, "reprise table 1\n%d rows\n", h.rows)
	for _, c := range h.columns {
		c.hash.Write(c.buf)
		fmt.Fprintf(whole, "%s\n%x\n", c.name, c.hash.Sum(nil))
	}
	return hex.EncodeToString(whole.Sum(nil))
}

// columnNames describes the leaf columns, one line each: quoted path, physical and
// logical type, repetition and definition levels.
func columnNames(schema *parquet.Schema) []string {
	var out []string
	for _, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		out = append(out, fmt.Sprintf("%q %s %d %d", strings.Join(path, "."), typeName(leaf.Node.Type()),
			leaf.MaxRepetitionLevel, leaf.MaxDefinitionLevel))
	}
	return out
}

func columnsOf(schema *parquet.Schema) string { return strings.Join(columnNames(schema), "\n") }

// typeName does not use the library's own spelling, which may change.
func typeName(t parquet.Type) string {
	name := t.Kind().String()
	logical := t.LogicalType()
	switch {
	case logical == nil:
		return name
	case logical.UTF8 != nil:
		return name + "/string"
	case logical.Integer != nil:
		sign := "u"
		if logical.Integer.IsSigned {
			sign = ""
		}
		return fmt.Sprintf("%s/%sint%d", name, sign, logical.Integer.BitWidth)
	}
	return name + "/" + logical.String()
}
