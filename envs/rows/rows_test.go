package rows

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/stretchr/testify/require"
)

// plain has a question and an answer.
var plain = Form{
	Columns: []Column{{Name: "question"}, {Name: "answer", Numbers: true}},
	Noun:    "question", Example: `{"question":"…","answer":"…"}`, Most: 1 << 20,
}

// listed has lists, and a column that may be missing.
var listed = Form{
	Columns: []Column{{Name: "question"}, {Name: "answers", Numbers: true, List: true}, {Name: "split", Optional: true}},
	Noun:    "question", Example: `{"question":"…","answers":["…"]}`, Most: 3,
}

// read gives all rows: [rows][columns][values].
func read(content []byte, form Form) ([][][]string, error) {
	var got [][][]string
	err := Read(content, form, func(values [][]string) (string, string) {
		got = append(got, slices.Clone(values))
		if values[0][0] == "bad" {
			return "question", "a good question"
		}
		return "", ""
	})
	return got, err
}

func table[T any](t testing.TB, codec compress.Codec, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.Compression(codec))
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestLists(t *testing.T) {
	got, err := read([]byte(`{"question":"a","answers":["b",1.50,"c"],"split":"test","x":[{}]}
{"answers":"d","question":"e"}
{"answers":[],"question":"f"}`), listed)
	require.NoError(t, err)
	require.Equal(t, [][][]string{{{"a"}, {"b", "1.50", "c"}, {"test"}}, {{"e"}, {"d"}, nil}, {{"f"}, {}, nil}}, got)
	for content, message := range map[string]string{
		`{"question":"a","answers":[["b"]]}`:                   `line 1, column 27: want a string, a number or a list of them in the field "answers"`,
		`{"question":"a","answers":["b",null]}`:                `line 1, column 27: want a string, a number or a list of them`,
		`{"question":"a","answers":{}}`:                        `line 1, column 27: want a string, a number or a list of them`,
		`{"question":"a"}`:                                     `line 1: want the field "answers"`,
		`{"question":["a"],"answers":"b"}`:                     `line 1, column 13: want a string in the field "question"`,
		`{"question":"a","answers":1,"split":1}`:               `line 1, column 37: want a string in the field "split"`,
		`{"question":"bad","answers":1}`:                       `line 1, column 13: want a good question`,
		strings.Repeat(`{"question":"a","answers":1}`+"\n", 4): `the file: want at most 3 questions`,
	} {
		_, err := read([]byte(content), listed)
		var wrong *Error
		require.ErrorAs(t, err, &wrong, content)
		require.ErrorContains(t, err, message)
	}
}

type lists struct {
	Question string   `parquet:"question"`
	Answers  []string `parquet:"answers,list"`
}

type optionalLists struct {
	Question string    `parquet:"question"`
	Answers  []*string `parquet:"answers,optional,list"`
	Split    *string   `parquet:"split"`
}

// A list is a group with a repeated group, as most programs write it, or a repeated column; one value is a list too.
func TestListsOfParquet(t *testing.T) {
	want := [][][]string{{{"a"}, {"b", "c"}, nil}, {{"d"}, nil, nil}, {{"e"}, {"f"}, nil}}
	got, err := read(table(t, &parquet.Snappy, lists{"a", []string{"b", "c"}}, lists{"d", nil}, lists{"e", []string{"f"}}), listed)
	require.NoError(t, err)
	require.Equal(t, want, got)

	type repeated struct {
		Question string   `parquet:"question"`
		Answers  []string `parquet:"answers"`
	}
	got, err = read(table(t, &parquet.Snappy, repeated{"a", []string{"b", "c"}}, repeated{"d", nil}, repeated{"e", []string{"f"}}), listed)
	require.NoError(t, err)
	require.Equal(t, want, got)

	type single struct {
		Question string  `parquet:"question"`
		Answers  int64   `parquet:"answers"`
		Split    *string `parquet:"split"`
	}
	split := "test"
	got, err = read(table(t, &parquet.Snappy, single{"a", 5, &split}, single{"b", 6, nil}), listed)
	require.NoError(t, err)
	require.Equal(t, [][][]string{{{"a"}, {"5"}, {"test"}}, {{"b"}, {"6"}, nil}}, got)

	x := "x"
	got, err = read(table(t, &parquet.Snappy, optionalLists{"a", nil, &x}, optionalLists{"b", []*string{}, nil}, optionalLists{"c", []*string{&x}, nil}), listed)
	require.NoError(t, err)
	require.Equal(t, [][][]string{{{"a"}, nil, {"x"}}, {{"b"}, nil, nil}, {{"c"}, {"x"}, nil}}, got)
	_, err = read(table(t, &parquet.Snappy, optionalLists{"a", []*string{&x, nil}, nil}), listed)
	require.ErrorContains(t, err, `row 1: want texts or numbers or lists of them in the column "answers"`)

	for message, content := range map[string][]byte{
		`want texts or numbers or lists of them in the column "answers", which is LIST`: table(t, &parquet.Snappy, struct {
			Question string     `parquet:"question"`
			Answers  [][]string `parquet:"answers,list"`
		}{"a", [][]string{{"b"}}}),
		`row 2: want a good question`:        table(t, &parquet.Snappy, single{Question: "a"}, single{Question: "bad"}),
		`the file: want at most 3 questions`: table(t, &parquet.Snappy, make([]single, 4)...),
		`the file: want the column "answers"`: table(t, &parquet.Snappy, struct {
			Question string `parquet:"question"`
		}{"a"}),
		`want texts in the column "question"`: table(t, &parquet.Snappy, struct {
			Question []string `parquet:"question,list"`
		}{}),
		`row 1: want UTF-8 in the column "answers"`: table(t, &parquet.Snappy, lists{"a", []string{"b", "\xff"}}),
	} {
		_, err := read(content, listed)
		var wrong *Error
		require.ErrorAs(t, err, &wrong, message)
		require.ErrorContains(t, err, message)
	}
}

func TestOpen(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open(t.TempDir())
	require.ErrorContains(t, err, "a regular file")
	_, err = Open("/dev/zero")
	require.ErrorContains(t, err, "a regular file")
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, MaxFile+1))
	_, err = Open(large)
	require.ErrorContains(t, err, "at most 268435456 bytes")
}

// A download that is no data is named.
func TestOpenNamesAnotherKind(t *testing.T) {
	for content, says := range map[string]string{
		"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n": "this is a git-lfs pointer, not the file itself: run git lfs pull",
		"<!DOCTYPE html><html>": "this is a web page (HTML)", "\x1f\x8b\x08\x00": "this is gzip-compressed: unpack it with gunzip",
	} {
		path := filepath.Join(t.TempDir(), "data.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := Open(path)
		require.ErrorContains(t, err, says)
	}
	path := filepath.Join(t.TempDir(), "data.parquet")
	require.NoError(t, os.WriteFile(path, []byte("PAR1 and more"), 0o600))
	_, err := Open(path)
	require.NoError(t, err)
}

// Whatever a file holds, it is read in the form that was asked for, or what is wrong is said with its place.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"question":"a","answers":["b",1]}` + "\n" + `{"question":"a","answers":1.5,"split":"test"}`))
	f.Add([]byte("{\"a\":1}\n\xff\n[]"))
	f.Add(table(f, &parquet.Uncompressed, lists{"a", []string{"b", "c"}}, lists{"d", nil}))
	f.Add([]byte("PAR1\x00\x00\x00\x00\x00\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := read(content, listed)
		if err != nil {
			var wrong *Error
			require.ErrorAs(t, err, &wrong)
			require.NotEmpty(t, wrong.Want)
			return
		}
		require.NotEmpty(t, got)
		for _, values := range got {
			require.Len(t, values[0], 1, fmt.Sprint(values))
			require.LessOrEqual(t, len(values[2]), 1)
		}
	})
}
