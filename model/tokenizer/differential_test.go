package tokenizer

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// refusedFiles is how many files of testdata/differential.json.gz are refused. A change that refuses
// more of them shows here.
const refusedFiles = 32

// Every file that tokenizers takes gives the same ids and texts, or it is refused: see
// testdata/make_differential.py. REPRISE_DIFFERENTIAL names another file of the same form.
func TestDifferential(t *testing.T) {
	path, other := filepath.Join("testdata", "differential.json.gz"), os.Getenv("REPRISE_DIFFERENTIAL")
	if other != "" {
		path = other
	}
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var files []struct {
		File   json.RawMessage     `json:"file"`
		Encode [][]json.RawMessage `json:"encode"`
		Decode [][]json.RawMessage `json:"decode"`
	}
	require.NoError(t, json.NewDecoder(z).Decode(&files))
	read := func(raw json.RawMessage, v any) { require.NoError(t, json.Unmarshal(raw, v)) }
	differ, refused, texts := 0, 0, 0
	reasons := map[string]int{}
	for i, file := range files {
		tok, err := Load(map[string][]byte{"tokenizer.json": file.File})
		if err != nil {
			require.ErrorIs(t, err, ErrFiles)
			require.ErrorContains(t, err, "unusable tokenizer files: tokenizer.json: ")
			refused++
			reasons[strings.TrimPrefix(err.Error(), "unusable tokenizer files: tokenizer.json: ")]++
			continue
		}
		bad := ""
		for _, c := range file.Encode {
			var text, decoded string
			var ids []int32
			read(c[0], &text)
			read(c[1], &ids)
			read(c[2], &decoded)
			texts++
			if got := tok.Encode(text); !slices.Equal(got, ids) {
				bad += strings.Join([]string{"encode", quote(text), "want", quote(ids), "got", quote(got), "\n"}, " ")
			}
			if got := tok.Decode(ids); got != decoded {
				bad += strings.Join([]string{"decode", quote(ids), "want", quote(decoded), "got", quote(got), "\n"}, " ")
			}
			tok.EncodePlain(text)
			tok.EncodeTag(text)
		}
		for _, c := range file.Decode {
			var text string
			var ids []int32
			read(c[0], &ids)
			read(c[1], &text)
			if got := tok.Decode(ids); got != text {
				bad += strings.Join([]string{"decode", quote(ids), "want", quote(text), "got", quote(got), "\n"}, " ")
			}
		}
		if bad != "" {
			differ++
			if differ <= 5 {
				t.Errorf("file %d differs:\n%s%s", i, bad, file.File)
			}
		}
	}
	t.Logf("%d files: %d refused, %d differ, %d texts compared", len(files), refused, differ, texts)
	require.Zero(t, differ)
	if other == "" {
		require.Equal(t, refusedFiles, refused)
		return
	}
	for reason, n := range reasons {
		t.Logf("%d: %s", n, reason)
	}
}

func quote(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
