package tables

import "github.com/parquet-go/parquet-go"

// ClearBits wraps a schema so that the same rows give the same bytes. parquet-go
// (v0.29.0) packs booleans into recycled memory and leaves the unused bits of a page's
// last byte as they were; here they are cleared before a page is encoded. Nothing else of
// the schema changes.
func ClearBits(schema *parquet.Schema) *parquet.Schema {
	return parquet.NewSchema(schema.Name(), wrapNode(schema))
}

func wrapNode(n parquet.Node) parquet.Node { return cleanNode{n} }

type cleanNode struct{ parquet.Node }

// Type is the boolean type with clean pages, or the node's own.
func (n cleanNode) Type() parquet.Type { return cleanTypeOf(n.Node) }

// Fields wraps the node's fields.
func (n cleanNode) Fields() []parquet.Field { return wrapFields(n.Node) }

type cleanField struct{ parquet.Field }

// Type is as [cleanNode.Type].
func (f cleanField) Type() parquet.Type { return cleanTypeOf(f.Field) }

// Fields is as [cleanNode.Fields].
func (f cleanField) Fields() []parquet.Field { return wrapFields(f.Field) }

func wrapFields(n parquet.Node) []parquet.Field {
	fields := n.Fields()
	out := make([]parquet.Field, len(fields))
	for i, f := range fields {
		out[i] = cleanField{f}
	}
	return out
}

func cleanTypeOf(n parquet.Node) parquet.Type {
	t := n.Type()
	if n.Leaf() && t.Kind() == parquet.Boolean {
		return cleanBoolean{t}
	}
	return t
}

type cleanBoolean struct{ parquet.Type }

// NewColumnBuffer wraps the type's own.
func (t cleanBoolean) NewColumnBuffer(columnIndex, numValues int) parquet.ColumnBuffer {
	return cleanColumn{t.Type.NewColumnBuffer(columnIndex, numValues)}
}

type cleanColumn struct{ parquet.ColumnBuffer }

// Page clears the bits after the last value, in place: later values overwrite them.
func (c cleanColumn) Page() parquet.Page {
	page := c.ColumnBuffer.Page()
	data := page.Data()
	if bits, n := data.Boolean(), c.Len(); n%8 != 0 && len(bits) > n/8 {
		bits[n/8] &= 1<<(n%8) - 1
	}
	return page
}

// Clone keeps the clone clean.
func (c cleanColumn) Clone() parquet.ColumnBuffer { return cleanColumn{c.ColumnBuffer.Clone()} }
