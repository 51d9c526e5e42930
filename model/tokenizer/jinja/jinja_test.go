package jinja

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// table is testdata/jinja.json.gz; see testdata/make.py.
type table struct {
	Context json.RawMessage
	Spaces  []struct {
		Longest  int
		Alphabet []string
		Hashes   map[string]string
	}
	Cases [][2]*string // snippet and text; nil where Jinja2 fails
}

func readTable(t testing.TB) (table table, context Map) {
	file, err := os.Open("testdata/jinja.json.gz")
	require.NoError(t, err)
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	require.NoError(t, err)
	content, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &table))
	context = readJSON(t, table.Context).(Map)
	return table, append(context, Pair{"documents", nil})
}

// readJSON reads JSON with the order of its keys.
func readJSON(t testing.TB, content []byte) any {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var read func() any
	read = func() any {
		token, err := d.Token()
		require.NoError(t, err)
		switch v := token.(type) {
		case json.Number:
			if i, err := v.Int64(); err == nil {
				return i
			}
			f, err := v.Float64()
			require.NoError(t, err)
			return f
		case json.Delim:
			list, m := []any{}, Map{}
			for d.More() {
				if v == '[' {
					list = append(list, read())
					continue
				}
				key, err := d.Token()
				require.NoError(t, err)
				m = append(m, Pair{key.(string), read()})
			}
			_, err := d.Token()
			require.NoError(t, err)
			if v == '[' {
				return list
			}
			return m
		}
		return token
	}
	return read()
}

func render(source string, context Map) (string, error) {
	parsed, err := Parse(source)
	if err != nil {
		return "", err
	}
	return parsed.Render(context)
}

// Every snippet gives Jinja2's text or an error; where Jinja2 fails, an error. What is refused
// though Jinja2 renders it is counted by construct, so that it does not grow unseen.
func TestSnippets(t *testing.T) {
	table, context := readTable(t)
	require.Greater(t, len(table.Cases), 5000)
	wrong, refused := 0, map[string]int{}
	for _, c := range table.Cases {
		snippet, want := *c[0], c[1]
		text, err := render(snippet, context)
		switch {
		case err == nil && want != nil && *want == text:
		case err == nil && want != nil:
			wrong++
			t.Errorf("%s\n gives %q\n  want %q", snippet, text, *want)
		case err == nil:
			wrong++
			t.Errorf("%s\n gives %q, Jinja2 fails", snippet, text)
		case want != nil:
			refused[err.(*Error).Construct+": "+err.(*Error).Reason]++
			if testing.Verbose() {
				t.Logf("refused: %s: %v, want %q", snippet, err, *want)
			}
		}
		if wrong > 40 {
			t.Fatal("and more")
		}
	}
	n := 0
	for _, k := range refused {
		n += k
	}
	require.LessOrEqual(t, n, 362, "snippets refused that Jinja2 renders")
}

// All short strings of white space and tags give Jinja2's text.
func TestWhiteSpace(t *testing.T) {
	table, context := readTable(t)
	for _, s := range table.Spaces {
		hashes := map[string]interface {
			io.Writer
			Sum([]byte) []byte
		}{}
		for length := 1; length <= s.Longest; length++ {
			which := make([]int, length)
			for more := true; more; more = advance(which, len(s.Alphabet)) {
				var source strings.Builder
				for _, i := range which {
					source.WriteString(s.Alphabet[i])
				}
				key := fmt.Sprint(which[0])
				if length > 1 {
					key += fmt.Sprint(",", which[1])
				}
				text, err := render(source.String(), context)
				if err != nil {
					text = "\x00"
				}
				if hashes[key] == nil {
					hashes[key] = sha256.New()
				}
				_, _ = io.WriteString(hashes[key], text+"\x01")
			}
		}
		require.Len(t, hashes, len(s.Hashes))
		for key, h := range hashes {
			require.Equal(t, s.Hashes[key], hex.EncodeToString(h.Sum(nil))[:16], "strings that begin with the symbols %s of %q", key, s.Alphabet)
		}
	}
}

// advance counts up.
func advance(which []int, base int) bool {
	for i := len(which) - 1; i >= 0; i-- {
		if which[i]++; which[i] < base {
			return true
		}
		which[i] = 0
	}
	return false
}
