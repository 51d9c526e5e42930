package rows

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

type document struct {
	ID    int64   `parquet:"id"`
	Title *string `parquet:"title"`
	Text  string  `parquet:"text"`
}

func TestDocuments(t *testing.T) {
	var b bytes.Buffer
	title := "Rome"
	require.NoError(t, parquet.Write(&b, []document{{7, &title, "A city."}, {8, &title, "Again."}}))
	for content, want := range map[string][]envs.Document{
		`{"text":"t","id":"x"}` + "\n\n" + `{"id":3,"title":"","text":" u "}`: {{ID: "x", Text: "t"}, {ID: "3", Text: " u "}},
		b.String(): {{ID: "7", Title: "Rome", Text: "A city."}, {ID: "8", Title: "Rome", Text: "Again."}},
	} {
		got, err := Documents([]byte(content))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for content, want := range map[string]string{
		"":                                "the file: want at least one document",
		`{"id":"a","text":""}`:            `line 1, column 18: want a text`,
		`{"id":"","text":"a"}`:            "line 1, column 7: want an id of 1 to 512 bytes",
		`{"text":"a"}`:                    `line 1: want the field "id"`,
		`{"id":"a"}`:                      `line 1: want the field "text"`,
		`{"id":"a","title":1,"text":"a"}`: `line 1, column 19: want a string in the field "title"`,
		"{\"id\":\"a\",\"text\":\"a\"}\n{\"id\":\"a\",\"text\":\"b\"}":     "line 2, column 7: want an id that no document before has",
		`{"id":"a","title":"` + strings.Repeat("t", 513) + `","text":"a"}`: "want a title of at most 512 bytes",
		"[]": `want a JSON object, as {"id":"…","title":"…","text":"…"}`,
	} {
		_, err := Documents([]byte(content))
		var wrong *Error
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, want)
	}
}

// Whatever a file holds, its documents keep what they promise.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte(`{"id":"7","title":"Cat","text":"The cat is on the mat."}`))
	f.Add([]byte(`{"id":1,"text":"a"}` + "\n" + `{"id":1.0,"text":"a"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		documents, err := Documents(content)
		if err != nil {
			var wrong *Error
			require.ErrorAs(t, err, &wrong)
			return
		}
		seen := map[string]bool{}
		for _, d := range documents {
			require.False(t, d.ID == "" || d.Text == "" || seen[d.ID])
			seen[d.ID] = true
		}
	})
}
