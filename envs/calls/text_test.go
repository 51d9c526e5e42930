package calls

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for object, want := range map[string]string{
		`{"q":"a"}`: "a", `{"q":""}`: "", `{"x":[{}],"q":"\u00e9\n"}`: "é\n", ` { "q" : "|" } `: "|",
	} {
		text, ok := Text(json.RawMessage(object), "q")
		require.True(t, ok, object)
		require.Equal(t, want, text)
	}
	for _, object := range []string{``, `{`, `{}`, `[]`, `"q"`, `{"Q":"a"}`, `{"q":1}`, `{"q":null}`, `{"q":["a"]}`, `{"q":"a","q":"a"}`, `{"q":"a"}x`} {
		_, ok := Text(json.RawMessage(object), "q")
		require.False(t, ok, object)
	}
}

func TestOfText(t *testing.T) {
	require.Equal(t, `{"q":"a<b & \"c\"\n"}`, string(OfText("q", "a<b & \"c\"\n")))
	text, ok := Text(OfText("q", "é|\u2028"), "q")
	require.True(t, ok)
	require.Equal(t, "é|\u2028", text)
}

func TestTextSchema(t *testing.T) {
	require.Equal(t, `{"type":"object","properties":{"q":{"type":"string","description":"a \"b\""}},"required":["q"]}`, string(TextSchema("q", `a "b"`)))
}

func FuzzText(f *testing.F) {
	f.Add([]byte(`{"q":"a"}`))
	f.Add([]byte(`{"q":"a","q":[`))
	f.Fuzz(func(t *testing.T, object []byte) {
		if text, ok := Text(object, "q"); ok {
			again, ok := Text(OfText("q", text), "q")
			require.True(t, ok)
			require.Equal(t, text, again)
		}
	})
}
