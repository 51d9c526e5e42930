package mathqa

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

// readParquet reads two columns of a Parquet file.
func readParquet(content []byte, fields Fields) (questions []Question, err error) {
	// The Parquet reader panics on some malformed files.
	defer func() {
		if r := recover(); r != nil {
			questions, err = nil, &FileError{Want: "an undamaged Parquet file"}
		}
	}()
	f, err := openParquet(content)
	if err != nil {
		return nil, err
	}
	texts, err := readColumn(f, fields.Question, false)
	if err != nil {
		return nil, err
	}
	answers, err := readColumn(f, fields.Answer, true)
	if err != nil {
		return nil, err
	}
	if len(texts) != len(answers) {
		return nil, &FileError{Want: fmt.Sprintf("columns of one length, not of %d and %d rows", len(texts), len(answers))}
	}
	questions = make([]Question, len(texts))
	for i := range texts {
		var want string
		if questions[i], _, want = question(texts[i], answers[i], fields); want != "" {
			return nil, &FileError{Line: i + 1, Row: true, Want: want}
		}
	}
	return questions, nil
}

// openParquet checks the sizes that a file claims before anything is allocated for them.
func openParquet(content []byte) (*parquet.File, error) {
	damaged := &FileError{Want: "an undamaged Parquet file"}
	if len(content) < 12 || !bytes.HasSuffix(content, []byte("PAR1")) {
		return nil, damaged
	}
	if footer := int64(binary.LittleEndian.Uint32(content[len(content)-8:])); footer > int64(len(content))-12 {
		return nil, damaged
	}
	f, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, damaged
	}
	if n := f.NumRows(); n < 0 || n > MaxQuestions {
		return nil, &FileError{Want: fmt.Sprintf("at most %d questions", MaxQuestions)}
	}
	var raw int64
	for _, group := range f.Metadata().RowGroups {
		for _, column := range group.Columns {
			m := column.MetaData
			switch m.Codec {
			case format.Uncompressed, format.Snappy, format.Zstd:
			default:
				return nil, &FileError{Want: "Parquet that is not compressed, or with snappy or zstd"}
			}
			if m.TotalUncompressedSize < 0 || m.TotalCompressedSize < 0 || m.TotalCompressedSize > int64(len(content)) {
				return nil, damaged
			}
			if raw += m.TotalUncompressedSize; raw > 4*MaxFile || raw < 0 {
				return nil, &FileError{Want: fmt.Sprintf("columns of at most %d bytes", 4*MaxFile)}
			}
		}
	}
	return f, nil
}

// readColumn gives a column of texts or, if numbers are allowed, of numbers as texts.
func readColumn(f *parquet.File, name string, numbers bool) ([]string, error) {
	column := f.Root().Column(name)
	if column == nil {
		return nil, &FileError{Want: fmt.Sprintf("the column %q", name)}
	}
	wanted := "texts"
	if numbers {
		wanted = "texts or numbers"
	}
	of := typeOf(f, name, numbers)
	if !column.Leaf() || of.read == nil || !of.texts && !numbers {
		return nil, &FileError{Want: fmt.Sprintf("%s in the column %q, which is %s: write it as a column of strings", wanted, name, of.words)}
	}
	if unread := unreadEncoding(f, column); unread != "" {
		want := fmt.Sprintf("%s in the column %q without the encoding %s: write it plain or with a dictionary", wanted, name, unread)
		return nil, &FileError{Want: want}
	}
	pages := column.Pages()
	defer pages.Close()
	var texts []string
	bytes := 0
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil {
			return nil, &FileError{Want: "an undamaged Parquet file"}
		}
		err = readPage(page, func(v parquet.Value) error {
			text, want := "", wanted
			if !v.IsNull() {
				text, want = of.read(v)
			}
			if want != "" {
				return &FileError{Line: len(texts) + 1, Row: true, Want: fmt.Sprintf("%s in the column %q", want, name)}
			}
			if bytes += len(text); bytes > MaxFile || len(texts) == MaxQuestions {
				return &FileError{Want: fmt.Sprintf("at most %d questions of at most %d bytes together", MaxQuestions, MaxFile)}
			}
			texts = append(texts, text)
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
			return &FileError{Want: "an undamaged Parquet file"}
		}
	}
}
