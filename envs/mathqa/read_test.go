package mathqa

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/rows"
)

var plain = Fields{Question: "question", Answer: "answer"}

func TestReadLines(t *testing.T) {
	for content, want := range map[string][]Question{
		`{"question":"1+1?","answer":"2"}`:                                             {{"1+1?", "2"}},
		"{\"answer\":\" X  Y \",\"id\":[1],\"question\":\" a\\nb \"}\r\n\n":            {{"a\nb", "xy"}},
		"\n{\"question\":\"a\",\"answer\":-1.50}\n{\"question\":\"a\",\"answer\":1e3}": {{"a", "-1.50"}, {"a", "1e3"}},
		`{"question":"<|im_end|>","answer":"É"}`:                                       {{"<|im_end|>", "é"}},
		`{"question":"a","answer":"b","Question":1,"x":1,"x":2}`:                       {{"a", "b"}},
		`{"question":"a","answer":"\ud800"}`:                                           {{"a", "\uFFFD"}},
	} {
		got, err := Read([]byte(content), plain)
		require.NoError(t, err, content)
		require.Equal(t, want, got, content)
	}
	good := `{"question":"a","answer":"b"}` + "\n"
	for content, message := range map[string]string{
		"":                                         "the file: want at least one question",
		" \n\n":                                    "the file: want at least one question",
		good + "[1]":                               `line 2, column 1: want a JSON object`,
		good + "x":                                 `line 2, column 1: want a JSON object`,
		good + "\n" + `{"question":"a"}`:           `line 3: want the field "answer"`,
		`{"answer":"a"}`:                           `line 1: want the field "question"`,
		`{"Question":"a","answer":"a"}`:            `line 1: want the field "question"`,
		`{"question":1,"answer":"a"}`:              `line 1, column 13: want a string in the field "question"`,
		`{"question":"a","answer":  true}`:         `line 1, column 28: want a string or a number in the field "answer"`,
		`{"question":"a","answer":null}`:           `line 1, column 26: want a string or a number`,
		`{"question":null,"answer":"a"}`:           `line 1, column 13: want a string`,
		`{"question":"a","answer":["a"]}`:          `line 1, column 26: want a string or a number`,
		`{"question":"a","question":"b"}`:          `want the field "question" once`,
		`{"question":"a","answer":"b"`:             `line 1, column 28: want valid JSON`,
		`{"question":"a","answer":b}`:              `line 1, column 26: want valid JSON`,
		`{"question":"a" "answer":"b"}`:            `line 1, column 17: want valid JSON`,
		`{"question":"a","answer":"b"} {}`:         `line 1, column 31: want valid JSON, one object`,
		`{"question":" ","answer":"b"}`:            `line 1, column 13: want a question`,
		`{"question":"a","answer":" "}`:            `line 1, column 26: want an answer`,
		`{"question":"a","answer":"b||c"}`:         `line 1, column 26: want an answer without ||`,
		`{"question":"a","answer":"</Answer>"}`:    `line 1, column 26: want an answer without || and the tags of replies`,
		good + `{"question":"a","answer":1,"x":[}`: `line 2, column 33: want valid JSON`,
		good + `{"question":"a","answer":NaN}`:     `line 2, column 26: want valid JSON`,
		good + "\x00":                              `line 2, column 1: want a JSON object`,
		good + "{\"question\":\"a\xff\"}":          `line 2, column 15: want UTF-8`,
		"\xef\xbb\xbf" + good:                      `line 1, column 1: want a JSON object`,
		good + strings.Repeat(" ", 10) + "{":       `line 2, column 11: want valid JSON`,
		`{"question":"` + strings.Repeat("a", MaxQuestion+1) + `","answer":"b"}`: `a question of at most 8192 bytes`,
		`{"question":"a","answer":"` + strings.Repeat("b", MaxAnswer+1) + `"}`:   `of at most 256 bytes`,
		`{"x":"` + strings.Repeat("a", rows.MaxLine) + `"}`:                      `line 1: want at most 1048576 bytes`,
	} {
		_, err := Read([]byte(content), plain)
		var wrong *rows.Error
		require.ErrorAs(t, err, &wrong, content)
		require.ErrorContains(t, err, message)
	}
}

func TestMarker(t *testing.T) {
	fields := Fields{Question: "query", Answer: "response", Marker: "####"}
	got, err := Read([]byte(`{"query":"a","response":"#### 3 is\n#### 1,200 "}`), fields)
	require.NoError(t, err)
	require.Equal(t, []Question{{"a", "1,200"}}, got)
	_, err = Read([]byte(`{"query":"a","response":"3"}`), fields)
	require.ErrorContains(t, err, `line 1, column 25: want the marker "####" before the answer`)
}

type row struct {
	ID       int32  `parquet:"id"`
	Answer   string `parquet:"answer,dict"`
	Question string `parquet:"question"`
}

type numbered struct {
	Question string `parquet:"question"`
	Answer   int64  `parquet:"answer"`
}

type optional struct {
	Question *string `parquet:"question"`
	Answer   string  `parquet:"answer"`
}

func table[T any](t testing.TB, codec compress.Codec, records ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.Compression(codec))
	_, err := w.Write(records)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestReadParquet(t *testing.T) {
	var records []row
	var want []Question
	for i := range 1000 {
		records = append(records, row{int32(i), " A " + fmt.Sprint(i%7), fmt.Sprintf("What is %d?", i)})
		want = append(want, Question{records[i].Question, "a" + fmt.Sprint(i%7)})
	}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Zstd} {
		got, err := Read(table(t, codec, records...), plain)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := Read(table(t, &parquet.Snappy, numbered{"a", -5}, numbered{"b", 1 << 40}), plain)
	require.NoError(t, err)
	require.Equal(t, []Question{{"a", "-5"}, {"b", "1099511627776"}}, got)
	a := "a"
	got, err = Read(table(t, &parquet.Snappy, optional{&a, "1"}), plain)
	require.NoError(t, err)
	require.Equal(t, []Question{{"a", "1"}}, got)

	good := table(t, &parquet.Uncompressed, records...)
	for message, content := range map[string][]byte{
		`row 2: want texts in the column "question"`:     table(t, &parquet.Snappy, optional{&a, "1"}, optional{nil, "1"}),
		`row 3: want an answer in the field "answer"`:    table(t, &parquet.Snappy, row{1, "a", "a"}, row{2, "a", "a"}, row{3, " ", "a"}),
		`row 1: want a question in the field "question"`: table(t, &parquet.Snappy, row{1, "a", ""}),
		`row 1: want UTF-8 in the column "question"`:     table(t, &parquet.Snappy, row{1, "a", "\xff"}),
		`the file: want the column "answer"`: table(t, &parquet.Snappy, struct {
			Question string `parquet:"question"`
		}{"a"}),
		`want texts in the column "question"`: table(t, &parquet.Snappy, struct {
			Question []string `parquet:"question,list"`
		}{}),
		`not compressed, or with snappy or zstd`:   table(t, &parquet.Gzip, records...),
		`the file: want at least one question`:     table[row](t, &parquet.Snappy),
		`want an undamaged Parquet file`:           good[:len(good)-1],
		`the file: want an undamaged Parquet file`: []byte("PAR1"),
	} {
		_, err := Read(content, plain)
		var wrong *rows.Error
		require.ErrorAs(t, err, &wrong, message)
		require.ErrorContains(t, err, message)
	}
}

// Whatever a file holds, reading it neither fails otherwise than with its error,
// nor gives a question that breaks its promises.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"question":"a","answer":"b"}`+"\n"+`{"question":"a","answer":1.5}`), "")
	f.Add([]byte(`{"question":"a","answer":"x # b","question":`), "#")
	f.Add([]byte("{\"a\":1}\n\xff\n[]"), "")
	f.Add(table(f, &parquet.Uncompressed, row{1, "a", "b"}, row{2, "c", "d"}), "")
	f.Add(table(f, &parquet.Snappy, numbered{"a", 1}), "")
	f.Add([]byte("PAR1\x00\x00\x00\x00\x00\x00\x00\x00PAR1"), "")
	f.Fuzz(func(t *testing.T, content []byte, marker string) {
		questions, err := Read(content, Fields{Question: "question", Answer: "answer", Marker: marker})
		if err != nil {
			var wrong *rows.Error
			require.ErrorAs(t, err, &wrong)
			require.NotEmpty(t, wrong.Want)
			return
		}
		require.NotEmpty(t, questions)
		for _, q := range questions {
			require.NotEmpty(t, q.Text)
			require.Equal(t, strings.TrimSpace(q.Text), q.Text)
			canonical, ok := Canonical(q.Answer)
			require.True(t, ok)
			require.Equal(t, canonical, q.Answer)
			require.Equal(t, []string{q.Answer}, envs.Protocol{}.Parse(q.Answer+"</answer>", 2).Actions)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"", " A b ", "\xff", "İ", "ΑΣ", "\u2003x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if canonical, ok := Canonical(text); ok {
			again, ok := Canonical(canonical)
			require.True(t, ok)
			require.Equal(t, canonical, again)
		}
	})
}

func BenchmarkReadLines(b *testing.B) {
	line := `{"question":"` + strings.Repeat("look at the wall ", 14) + `","answer":"so it is #### 42"}` + "\n"
	content := []byte(strings.Repeat(line, 1000))
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := Read(content, Fields{Question: "question", Answer: "answer", Marker: "####"}); err != nil {
			b.Fatal(err)
		}
	}
}
