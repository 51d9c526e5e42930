// Package tables keeps rows as Parquet files in a store. The same rows give the same
// bytes. A digest of the logical columns shows that two tables are equal even if the
// files are not.
package tables

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/reprise-rl/reprise/infra/store"
)

// Tables are Parquet files that DuckDB and pandas read. Everything a writer may
// choose is fixed here, so the same rows give the same bytes. A row is a Go struct
// whose fields carry `parquet:"name"` tags; lists are `parquet:"name,list"`. Numbers,
// bools, strings, []byte, lists of them and nested structs work; maps do not, as
// their order is not fixed.
const (
	rowsPerGroup    = 1 << 16
	pageBytes       = 1 << 18
	tableCodecLevel = zstd.SpeedDefault
	// MaxTable is the largest table file that is decoded, in bytes, and
	// maxTableRaw the most bytes its columns may claim to hold.
	MaxTable    = 1 << 30
	maxTableRaw = 8 << 30
	maxRows     = 1 << 26
)

func tableSchema[T any]() (schema *parquet.Schema, err error) {
	defer recoverTable(&err) // a struct that Parquet cannot hold panics
	// The root's name would be the Go type's; a rename must not change the bytes.
	return ClearBits(parquet.NewSchema("rows", parquet.SchemaOf(new(T)))), nil
}

// Encode writes rows as a Parquet file (zstd, fixed row groups and pages, no
// time, no library version) and gives the content digest of its columns. The
// same rows give the same bytes; floats are kept by their bits.
//
// The content digest is SHA-256 over the names, the types and, column by column, the
// values in order with their nesting, floats by their bits. It does not depend on codec,
// pages, row groups or the writer's version, and is what replay compares.
func Encode[T any](rows []T) (file []byte, content string, err error) {
	defer recoverTable(&err)
	schema, err := tableSchema[T]()
	if err != nil {
		return nil, "", err
	}
	if len(rows) > maxRows {
		return nil, "", fmt.Errorf("encode table: %d rows, at most %d: %w", len(rows), maxRows, store.ErrTooLarge)
	}
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[T](&buf, schema,
		parquet.Compression(&zstd.Codec{Level: tableCodecLevel}),
		parquet.CreatedBy("reprise", "1", "table"),
		parquet.MaxRowsPerRowGroup(rowsPerGroup),
		parquet.PageBufferSize(pageBytes),
		parquet.DataPageVersion(2),
		parquet.DataPageStatistics(true),
	)
	if _, err := w.Write(rows); err != nil {
		return nil, "", fmt.Errorf("encode table: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("encode table: %w", err)
	}
	hasher := newContentHasher(schema)
	var row parquet.Row
	for i := range rows {
		row = schema.Deconstruct(row[:0], &rows[i])
		hasher.row(row)
	}
	return buf.Bytes(), hasher.sum(), nil
}

// Decode reads a file that [Encode] wrote for rows of the same columns. A
// damaged file, other columns or absurd sizes are [ErrInvalid] or [ErrTooLarge].
func Decode[T any](file []byte) (rows []T, err error) {
	defer recoverTable(&err)
	schema, err := tableSchema[T]()
	if err != nil {
		return nil, err
	}
	f, err := openTable(file)
	if err != nil {
		return nil, err
	}
	if have, want := columnsOf(f.Schema()), columnsOf(schema); have != want {
		return nil, fmt.Errorf("decode table: the columns are\n%s, want\n%s: %w", have, want, store.ErrInvalid)
	}
	r := parquet.NewGenericReader[T](f, schema)
	defer r.Close()
	// Grown as rows come, not by what the footer claims.
	batch := make([]T, min(f.NumRows(), 1024))
	for int64(len(rows)) < f.NumRows() {
		n, err := r.Read(batch)
		rows = append(rows, batch[:n]...)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("decode table: row %d: %w: %w", len(rows), store.ErrInvalid, err)
		}
		if n == 0 {
			return nil, fmt.Errorf("decode table: the file ends after %d of %d rows: %w", len(rows), f.NumRows(), store.ErrInvalid)
		}
		clear(batch) // the next read must not reuse these rows' slices
	}
	return rows, nil
}

// Put encodes rows and writes them as the artifact dir/name.<sha12>.parquet;
// the ref carries the content digest.
func Put[T any](ctx context.Context, s store.Store, dir, name string, rows []T) (store.Ref, error) {
	file, content, err := Encode(rows)
	if err != nil {
		return store.Ref{}, fmt.Errorf("put table %s/%s: %w", dir, name, err)
	}
	ref, err := store.PutArtifact(ctx, s, dir, name, "parquet", file)
	if err != nil {
		return store.Ref{}, err
	}
	ref.Content = content
	return ref, nil
}

// First gives the table dir/name.QUESTION.parquet, and writes it with the rows of produce if there is
// none; see [store.First]. question is the digest of what the rows answer.
func First[T any](ctx context.Context, s store.Store, dir, name, question string, produce func() ([]T, error)) (store.Ref, error) {
	key := dir + "/" + name + "." + store.ShortDigest(question) + ".parquet"
	file, ref, err := store.First(ctx, s, key, func() ([]byte, error) {
		rows, err := produce()
		if err != nil {
			return nil, err
		}
		file, _, err := Encode(rows)
		return file, err
	})
	if err != nil {
		return store.Ref{}, err
	}
	rows, err := Decode[T](file)
	if err == nil {
		_, ref.Content, err = Encode(rows)
	}
	if err != nil {
		return store.Ref{}, fmt.Errorf("read %s: %w", s.Location(key), err)
	}
	return ref, nil
}

// Get reads and verifies an artifact and decodes its rows.
func Get[T any](ctx context.Context, s store.Store, ref store.Ref) ([]T, error) {
	file, err := store.GetArtifact(ctx, s, ref)
	if err != nil {
		return nil, err
	}
	rows, err := Decode[T](file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Location(ref.Key), err)
	}
	return rows, nil
}

// openTable checks the sizes a file claims before anything is allocated for them.
func openTable(file []byte) (*parquet.File, error) {
	if len(file) > MaxTable {
		return nil, fmt.Errorf("open table: %d bytes, at most %d: %w", len(file), MaxTable, store.ErrTooLarge)
	}
	if len(file) < 12 || string(file[len(file)-4:]) != "PAR1" {
		return nil, fmt.Errorf("open table: not a Parquet file: %w", store.ErrInvalid)
	}
	footer := int64(binary.LittleEndian.Uint32(file[len(file)-8:]))
	if footer > int64(len(file))-12 {
		return nil, fmt.Errorf("open table: the footer claims %d of %d bytes: %w", footer, len(file), store.ErrInvalid)
	}
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("open table: %w: %w", store.ErrInvalid, err)
	}
	var raw, grouped int64
	for _, group := range f.Metadata().RowGroups {
		if group.NumRows < 0 || group.NumRows > maxRows {
			return nil, fmt.Errorf("open table: a row group claims %d rows: %w", group.NumRows, store.ErrTooLarge)
		}
		grouped += group.NumRows
		for _, column := range group.Columns {
			// Other codecs believe what a page says of its size.
			switch column.MetaData.Codec {
			case format.Uncompressed, format.Snappy, format.Zstd:
			default:
				return nil, fmt.Errorf("open table: codec %d is none that we read: %w", column.MetaData.Codec, store.ErrInvalid)
			}
			size := column.MetaData.TotalUncompressedSize
			if size < 0 || column.MetaData.TotalCompressedSize < 0 || column.MetaData.TotalCompressedSize > int64(len(file)) {
				return nil, fmt.Errorf("open table: a column claims %d bytes: %w", size, store.ErrInvalid)
			}
			if raw += size; raw > maxTableRaw {
				return nil, fmt.Errorf("open table: the columns claim more than %d bytes: %w", int64(maxTableRaw), store.ErrTooLarge)
			}
		}
	}
	if n := f.NumRows(); n != grouped || n > maxRows {
		return nil, fmt.Errorf("open table: the file claims %d rows, its row groups %d: %w", n, grouped, store.ErrInvalid)
	}
	return f, nil
}

// recoverTable turns the panics of the Parquet reader on malformed input into
// errors.
func recoverTable(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("table: %w: %v", store.ErrInvalid, r)
	}
}
