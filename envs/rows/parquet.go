package rows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// damaged is the error about a file that is not what Parquet says of itself.
func damaged() *Error { return &Error{Want: "an undamaged Parquet file"} }

// readParquet reads the form's columns of a Parquet file.
func readParquet(content []byte, form Form, row Row) (err error) {
	columns, count, err := readColumns(content, form)
	if err != nil {
		return err
	}
	values := make([][]string, len(columns))
	for i := range count {
		for c := range columns {
			values[c] = nil
			if columns[c] != nil {
				values[c] = columns[c][i]
			}
		}
		if _, want := row(values); want != "" {
			return &Error{Line: i + 1, Row: true, Want: want}
		}
	}
	return nil
}

// readColumns gives the form's columns, [columns][rows][values], nil for an optional one that is not there, and the
// number of rows.
func readColumns(content []byte, form Form) (columns [][][]string, count int, err error) {
	// The Parquet reader panics on some malformed files.
	defer func() {
		if r := recover(); r != nil {
			columns, count, err = nil, 0, damaged()
		}
	}()
	f, err := openParquet(content, form)
	if err != nil {
		return nil, 0, err
	}
	columns = make([][][]string, len(form.Columns))
	count = -1
	for i, c := range form.Columns {
		if c.Optional && f.Root().Column(c.Name) == nil {
			continue
		}
		if columns[i], err = readColumn(f, c, form); err != nil {
			return nil, 0, err
		}
		if n := len(columns[i]); count >= 0 && n != count {
			return nil, 0, &Error{Want: fmt.Sprintf("columns of one length, not of %d and %d rows", count, n)}
		}
		count = len(columns[i])
	}
	return columns, max(count, 0), nil
}

// openParquet checks the sizes that a file claims before anything is allocated for them.
func openParquet(content []byte, form Form) (*parquet.File, error) {
	if len(content) < 12 || !bytes.HasSuffix(content, []byte("PAR1")) {
		return nil, damaged()
	}
	if footer := int64(binary.LittleEndian.Uint32(content[len(content)-8:])); footer > int64(len(content))-12 {
		return nil, damaged()
	}
	f, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, damaged()
	}
	if n := f.NumRows(); n < 0 || n > int64(form.Most) {
		return nil, form.tooMany()
	}
	var raw int64
	for _, group := range f.Metadata().RowGroups {
		for _, column := range group.Columns {
			m := column.MetaData
			switch m.Codec {
			case format.Uncompressed, format.Snappy, format.Zstd:
			default:
				return nil, &Error{Want: "Parquet that is not compressed, or with snappy or zstd"}
			}
			if m.TotalUncompressedSize < 0 || m.TotalCompressedSize < 0 || m.TotalCompressedSize > int64(len(content)) {
				return nil, damaged()
			}
			if raw += m.TotalUncompressedSize; raw > 4*MaxFile || raw < 0 {
				return nil, &Error{Want: fmt.Sprintf("columns of at most %d bytes", 4*MaxFile)}
			}
		}
	}
	return f, nil
}

// leafOf is the column of a name that has values: itself, or the elements of a list; and the path to it.
func leafOf(f *parquet.File, c Column) (leaf *parquet.Column, path []string) {
	leaf, path = f.Root().Column(c.Name), []string{c.Name}
	if leaf == nil || leaf.Leaf() || !c.List {
		return leaf, path
	}
	// A list is a group with one repeated group of one element, or with one repeated element.
	for !leaf.Leaf() && len(leaf.Columns()) == 1 && len(path) < 3 {
		leaf = leaf.Columns()[0]
		path = append(path, leaf.Name())
	}
	if !leaf.Leaf() || leaf.MaxRepetitionLevel() != 1 {
		return f.Root().Column(c.Name), path[:1]
	}
	return leaf, path
}

// wanted says which values of Parquet a column takes.
func (c Column) wanted() string {
	of := "texts"
	if c.Numbers {
		of = "texts or numbers"
	}
	if c.List {
		return of + " or lists of them"
	}
	return of
}

// readColumn gives a column's values as texts: [rows][values].
func readColumn(f *parquet.File, c Column, form Form) ([][]string, error) {
	column, path := leafOf(f, c)
	if column == nil {
		return nil, &Error{Want: fmt.Sprintf("the column %q", c.Name)}
	}
	of := typeOf(f, path, c)
	if !column.Leaf() || of.read == nil || !of.texts && !c.Numbers {
		return nil, &Error{Want: fmt.Sprintf("%s in the column %q, which is %s: write it as a column of strings", c.wanted(), c.Name, of.words)}
	}
	if unread := unreadEncoding(f, column); unread != "" {
		want := fmt.Sprintf("%s in the column %q without the encoding %s: write it plain or with a dictionary", c.wanted(), c.Name, unread)
		return nil, &Error{Want: want}
	}
	repeated := column.MaxRepetitionLevel() > 0
	// An element that is null is as deep as its group; the null of a row without elements is not.
	element := column.MaxDefinitionLevel()
	if column.Optional() {
		element--
	}
	pages := column.Pages()
	defer pages.Close()
	var texts [][]string
	bytes, values := 0, 0
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil {
			return nil, damaged()
		}
		err = readPage(page, func(v parquet.Value) error {
			if !repeated || v.RepetitionLevel() == 0 {
				if len(texts) == form.Most {
					return form.tooMany()
				}
				texts = append(texts, nil)
			} else if len(texts) == 0 {
				return damaged()
			}
			at := len(texts) - 1
			text, want := "", c.wanted()
			switch {
			case !v.IsNull():
				text, want = of.read(v)
			case repeated && v.DefinitionLevel() < element, c.Optional && !repeated:
				return nil
			}
			if want != "" {
				return &Error{Line: at + 1, Row: true, Want: fmt.Sprintf("%s in the column %q", want, c.Name)}
			}
			bytes += len(text)
			if values++; bytes > MaxFile || values > maxValues {
				return &Error{Want: fmt.Sprintf("at most %d values of at most %d bytes together in the column %q", maxValues, MaxFile, c.Name)}
			}
			texts[at] = append(texts[at], text)
			return nil
		})
		parquet.Release(page)
		if err != nil {
			return nil, err
		}
	}
}

// unreadEncoding is an encoding of a column that the reader of Parquet does not have for its type, or "".
func unreadEncoding(f *parquet.File, column *parquet.Column) string {
	kind := column.Type().Kind()
	for _, group := range f.Metadata().RowGroups {
		chunk := group.Columns[column.Index()].MetaData
		if slices.Contains(chunk.Encoding, format.ByteStreamSplit) && kind != parquet.Float && kind != parquet.Double {
			return format.ByteStreamSplit.String()
		}
	}
	return ""
}

func readPage(page parquet.Page, each func(parquet.Value) error) error {
	values := page.Values()
	buffer := make([]parquet.Value, 256)
	for {
		n, err := values.ReadValues(buffer)
		for _, v := range buffer[:n] {
			if err := each(v); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || n == 0 {
			return damaged()
		}
	}
}
