package iterations

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/reprise-rl/reprise/infra/store/tables"
)

// parquet writes the table as the tables of a run are written: fixed codec and
// pages, no time, no library version. Those are Go structs; here a run's metrics
// are the columns, so the schema is made by hand.
func (t Table) parquet() (file []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // how parquet-go refuses a schema
			file, err = nil, fmt.Errorf("encode Parquet: %v", r)
		}
	}()
	schema := tables.ClearBits(parquet.NewSchema("rows", t.node()))
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[any](&buf, schema,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault}),
		parquet.CreatedBy("reprise", "1", "metrics"),
		parquet.DataPageVersion(2),
		parquet.DataPageStatistics(true),
	)
	for i, cells := range t.Rows {
		row := make(parquet.Row, len(cells))
		for j, v := range cells {
			level := 0
			if v != nil && !t.Columns[j].Required {
				level = 1
			}
			if v == nil && t.Columns[j].Required {
				return nil, fmt.Errorf("encode Parquet: row %d has no %q", i, t.Columns[j].Name)
			}
			row[j] = parquet.ValueOf(v).Level(0, level, j)
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			return nil, fmt.Errorf("encode Parquet: row %d: %w", i, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode Parquet: %w", err)
	}
	return buf.Bytes(), nil
}

// node is the schema's root: a group whose fields keep the columns' order, which
// parquet.Group sorts by name.
func (t Table) node() parquet.Node {
	n := group{Group: parquet.Group{}}
	for _, c := range t.Columns {
		leaf := leafOf(c.Kind)
		if !c.Required {
			leaf = parquet.Optional(leaf)
		}
		n.Group[c.Name] = leaf
		n.fields = append(n.fields, field{Node: leaf, name: c.Name})
	}
	return n
}

func leafOf(k Kind) parquet.Node {
	switch k {
	case Integer:
		return parquet.Int(64)
	case Number:
		return parquet.Leaf(parquet.DoubleType)
	case Truth:
		return parquet.Leaf(parquet.BooleanType)
	}
	return parquet.String()
}

type group struct {
	parquet.Group
	fields []parquet.Field
}

// Fields are the columns in the table's order.
func (g group) Fields() []parquet.Field { return g.fields }

type field struct {
	parquet.Node
	name string
}

// Name is the column's.
func (f field) Name() string { return f.name }

// Value finds the column in a row that is a map; rows are written as values.
func (f field) Value(base reflect.Value) reflect.Value { return base.MapIndex(reflect.ValueOf(f.name)) }
