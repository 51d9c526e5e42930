package iterations

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// Format is how a table is written.
type Format string

// The formats. All are complete: nothing but the types' names is lost in CSV.
const (
	// Parquet is what pandas, Polars and DuckDB read with all types.
	Parquet Format = "parquet"
	// CSV is RFC 4180's with "\n", a line of names first; no value is an empty field.
	CSV Format = "csv"
	// JSONLines is an object a line, in the columns' order; no value, no key.
	JSONLines Format = "jsonl"
)

// Formats are all formats, in the order they are documented.
var Formats = []Format{Parquet, CSV, JSONLines}

// ErrFormat: no format has the name.
var ErrFormat = errors.New("unknown format")

// ParseFormat reads a format's name; [ErrFormat].
func ParseFormat(name string) (Format, error) {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		if string(f) == name {
			return f, nil
		}
		names[i] = string(f)
	}
	return "", fmt.Errorf("%w %q: known are %s", ErrFormat, name, strings.Join(names, ", "))
}

// Encode writes the table: the same table, the same bytes. Numbers are spelled as
// in manifests, so NaN and the infinities are "NaN", "Infinity" and "-Infinity",
// in JSON as strings; in Parquet they are numbers.
func (t Table) Encode(f Format) ([]byte, error) {
	switch f {
	case Parquet:
		return t.parquet()
	case CSV:
		return t.csv()
	case JSONLines:
		return t.jsonLines()
	}
	return nil, fmt.Errorf("%w %q", ErrFormat, f)
}

func (t Table) csv() ([]byte, error) {
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	record := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		record[i] = c.Name
	}
	if err := w.Write(record); err != nil {
		return nil, fmt.Errorf("encode CSV: %w", err)
	}
	for _, row := range t.Rows {
		for i, v := range row {
			text, err := csvText(v)
			if err != nil {
				return nil, fmt.Errorf("encode CSV: column %q: %w", t.Columns[i].Name, err)
			}
			record[i] = text
		}
		if err := w.Write(record); err != nil {
			return nil, fmt.Errorf("encode CSV: %w", err)
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return nil, fmt.Errorf("encode CSV: %w", err)
	}
	return buf.Bytes(), nil
}

func csvText(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case bool:
		return strconv.FormatBool(v), nil
	case float64:
		b, err := canon.Float(v).MarshalJSON()
		return strings.Trim(string(b), `"`), err
	}
	return "", fmt.Errorf("a %T is no value", v)
}

func (t Table) jsonLines() ([]byte, error) {
	names := make([][]byte, len(t.Columns))
	for i, c := range t.Columns {
		name, err := canon.Marshal(c.Name)
		if err != nil {
			return nil, fmt.Errorf("encode JSON: %w", err)
		}
		names[i] = append(name, ':')
	}
	var buf bytes.Buffer
	for _, row := range t.Rows {
		buf.WriteByte('{')
		first := true
		for i, v := range row {
			if v == nil {
				continue
			}
			value, err := jsonText(v)
			if err != nil {
				return nil, fmt.Errorf("encode JSON: column %q: %w", t.Columns[i].Name, err)
			}
			if !first {
				buf.WriteByte(',')
			}
			first = false
			buf.Write(names[i])
			buf.Write(value)
		}
		buf.WriteString("}\n")
	}
	return buf.Bytes(), nil
}

func jsonText(v any) ([]byte, error) {
	switch v := v.(type) {
	case float64:
		return canon.Float(v).MarshalJSON()
	case string:
		return canon.Marshal(v)
	}
	text, err := csvText(v)
	return []byte(text), err
}
