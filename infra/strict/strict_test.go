package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func mustParse(t testing.TB, text string) Node {
	t.Helper()
	n, err := Parse([]byte(text), Limits{})
	require.NoError(t, err)
	return n
}

func TestParseKeepsWhatIsWritten(t *testing.T) {
	n := mustParse(t, " { \"b\" : [ 1.50 , -0 ,\n\"x\\u00e9\\\"]\" , null ] , \"a\":{}, \"b\":true,\"\\u0061\":1e3 }\t")
	require.Equal(t, Object, n.Kind())
	require.Equal(t, "{ \"b\" : [ 1.50 , -0 ,\n\"x\\u00e9\\\"]\" , null ] , \"a\":{}, \"b\":true,\"\\u0061\":1e3 }", n.Raw())
	var written, once []string
	for _, m := range n.Written() {
		written = append(written, fmt.Sprint(m.Key, " ", m.Again))
	}
	for _, m := range n.Members() {
		once = append(once, m.Key)
	}
	require.Equal(t, []string{"b false", "a false", "b true", "a true"}, written)
	require.Equal(t, []string{"b", "a"}, once)
	var raw []string
	for _, item := range n.Members()[0].Value.Items() {
		raw = append(raw, item.Raw())
	}
	require.Equal(t, []string{"1.50", "-0", `"x\u00e9\"]"`, "null"}, raw)
	require.Empty(t, mustParse(t, "[ ]").Items())
	require.Empty(t, mustParse(t, "{ }").Members())
	require.Equal(t, "null", Node{}.Raw())
	require.Equal(t, Null, Node{}.Kind())
	made := NewObject(Member{Key: "run", Value: mustParse(t, `"a"`)})
	require.Equal(t, Object, made.Kind())
	require.Equal(t, `"a"`, made.Members()[0].Value.Raw())
}

func TestParseRefuses(t *testing.T) {
	limits := Limits{Bytes: 40, Depth: 2}
	for text, want := range map[string]Unreadable{
		strings.Repeat(" ", 41): {Found: "41 bytes", Allowed: "at most 40 bytes"},
		"\"\xff\"":              {Found: "bytes that are not UTF-8", Allowed: "JSON in UTF-8"},
		"\ufeff{}":              {Found: "a byte order mark", Allowed: "JSON in UTF-8 without one"},
		"[[[[]]]]":              {Found: "more than 2 levels", Allowed: "at most 2 levels of nesting"},
		`{"a":{"b":{"c":1}}}`:   {Found: "more than 2 levels", Allowed: "at most 2 levels of nesting"},
		"":                      {Found: "unexpected end of JSON input at line 1, column 1", Allowed: "one JSON object and nothing after it"},
		"{\"é\":\n\"ü\" 1}":     {Found: "invalid character '1' after object key:value pair at line 2, column 5", Allowed: "one JSON object and nothing after it"},
		"{} {}":                 {Found: "invalid character '{' after top-level value at line 1, column 4", Allowed: "one JSON object and nothing after it"},
	} {
		n, err := Parse([]byte(text), limits)
		var got *Unreadable
		require.ErrorAs(t, err, &got, text)
		require.Equal(t, want.Found, got.Found, text)
		require.Equal(t, want.Allowed, got.Allowed, text)
		require.Equal(t, strings.HasPrefix(want.Allowed, "one JSON"), errors.As(err, new(*json.SyntaxError)), text)
		require.Zero(t, n)
	}
	_, err := Parse([]byte("[[1]]"), Limits{Depth: 2})
	require.NoError(t, err, "a value in two arrays")
	_, err = Parse([]byte(strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)), Limits{})
	require.Error(t, err, "encoding/json's own limit")
}

func TestTypedReads(t *testing.T) {
	for text, want := range map[string]struct {
		integer, float, text, truth any
		found, quotes               string
	}{
		"1":                     {integer: int64(1), float: 1.0, found: "1"},
		"-0":                    {integer: int64(0), float: 0.0, found: "-0"},
		"1.0":                   {float: 1.0, found: "1.0"},
		"1e2":                   {float: 100.0, found: "1e2"},
		"9223372036854775808":   {float: 9223372036854775808.0, found: "9223372036854775808"},
		"1e400":                 {found: "1e400"},
		`"1"`:                   {text: "1", found: `"1"`, quotes: "a number stands without quotes"},
		`"\u0041\n"`:            {text: "A\n", found: `"A\n"`},
		"true":                  {truth: true, found: "true"},
		"false":                 {truth: false, found: "false"},
		"null":                  {found: "null"},
		"[1,2]":                 {found: "an array of 2"},
		`{"a":1}`:               {found: "an object"},
		strings.Repeat("1", 70): {float: 1.1111111111111112e69, found: strings.Repeat("1", 60) + "…"},
	} {
		n := mustParse(t, text)
		read := func(v any, ok bool) any {
			if !ok {
				return nil
			}
			return v
		}
		integer, ok := n.Integer()
		require.Equal(t, want.integer, read(integer, ok), text)
		float, ok := n.Float()
		require.Equal(t, want.float, read(float, ok), text)
		s, ok := n.Text()
		require.Equal(t, want.text, read(s, ok), text)
		truth, ok := n.Truth()
		require.Equal(t, want.truth, read(truth, ok), text)
		require.Equal(t, want.found, n.Found(), text)
		require.Equal(t, want.quotes, n.HintQuotes(), text)
	}
	require.True(t, mustParse(t, "12").IsInteger())
	require.False(t, mustParse(t, "1.0").IsInteger() || mustParse(t, "1E2").IsInteger() || mustParse(t, `"1"`).IsInteger())
}

func TestRepeated(t *testing.T) {
	n := mustParse(t, `{"a":{"x":1,"x":2},"b":[0,{"y":1,"y":{"z":1,"z":2}}],"a":3,"a":4}`)
	var paths []string
	for _, p := range n.Repeated("top") {
		require.Equal(t, "the key a second time", p.Found)
		require.Equal(t, "each key once", p.Allowed)
		paths = append(paths, p.Path)
	}
	require.Equal(t, []string{"top.a.x", "top.b[1].y.z", "top.b[1].y", "top.a", "top.a"}, paths)
	require.Empty(t, mustParse(t, `{"a":{"x":1},"b":{"x":1}}`).Repeated(""))
}

func TestProblems(t *testing.T) {
	require.NoError(t, Problems(nil).Err())
	one := Problems{{Path: "a.b", Found: "1", Allowed: "2", Hint: "think"}}
	require.EqualError(t, one.Err(), "1 problem:\n  a.b: found 1; allowed: 2 (think)")
	var many Problems
	for i := range 40 {
		many = append(many, Problem{Path: Index("a", i), Found: "x", Allowed: "y"})
	}
	text := many.Err().Error()
	require.True(t, strings.HasPrefix(text, "40 problems:\n  a[0]: found x; allowed: y\n"), text)
	require.True(t, strings.HasSuffix(text, "a[31]: found x; allowed: y\n  … and 8 more"), text)
}

func TestPaths(t *testing.T) {
	require.Equal(t, "a", Join("", "a"))
	require.Equal(t, "a.b_1-C", Join("a", "b_1-C"))
	require.Equal(t, `a["b.c"]`, Join("a", "b.c"))
	require.Equal(t, `[""]`, Join("", ""))
	require.Equal(t, `a["`+strings.Repeat("k", 60)+`…"]`, Join("a", strings.Repeat("k", 65)))
	require.Equal(t, "a[3]", Index("a", 3))
	require.Equal(t, "a", Within("a", ""))
	require.Equal(t, "a", Within("a", "(spec)"))
	require.Equal(t, "a[0]", Within("a", "[0]"))
	require.Equal(t, "a.b", Within("a", "b"))
	require.Equal(t, `"é\n"`, Quote("é\n"))
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"learning_rat":                      "learning_rate",
		"LEARNING_RATE":                     "learning_rate",
		"learningRate":                      "learning_rate",
		"max_tokens":                        "max_new_tokens",
		"lr":                                "learning_rate",
		"groups":                            "",
		"":                                  "",
		"zz":                                "",
		"é":                                 "",
		strings.Repeat("learning_rate", 10): "",
	} {
		got, ok := Nearest(word, []string{"hf", "learning_rate", "max_new_tokens"})
		require.Equal(t, want, got, word)
		require.Equal(t, want != "", ok, word)
	}
	short, _ := Nearest("lr", []string{"learning_rate_factor", "layer_rate_2", "learning_rate"})
	require.Equal(t, "layer_rate_2", short, "the shortest that has the letters")
	require.Equal(t, `did you mean "hf"?`, DidYouMean("HF", []string{"a", "hf"}))
	require.Empty(t, DidYouMean("nothing alike", []string{"a", "hf"}))
}

// The values read equal those of encoding/json.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"b":1,"a":[1.50,"x",null]}`, `"é\u2028<\ud800"`, ` [ true , false,{} ] `, `[[[]]]`, `{"a":{"a":{}},"a":1}`, "\"\xff\"", `-0.0`, `{"a\\":"\\"}`, `1 2`, "\ufeff1", `{"":"}"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := Parse(text, Limits{Bytes: 1 << 16, Depth: 100})
		if err != nil {
			require.ErrorAs(t, err, new(*Unreadable))
			return
		}
		require.Equal(t, strings.Trim(string(text), " \t\r\n"), n.Raw())
		require.LessOrEqual(t, len([]rune(n.Found())), 700)
		if len(n.Repeated("")) > 0 {
			return
		}
		var want any
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		require.NoError(t, d.Decode(&want))
		require.Equal(t, want, value(n))
	})
}

// value is a node as encoding/json's decoder gives it.
func value(n Node) any {
	switch n.Kind() {
	case Bool:
		truth, _ := n.Truth()
		return truth
	case Number:
		return json.Number(n.Raw())
	case String:
		text, _ := n.Text()
		return text
	case Array:
		items := []any{}
		for _, item := range n.Items() {
			items = append(items, value(item))
		}
		return items
	case Object:
		members := map[string]any{}
		for _, m := range n.Members() {
			members[m.Key] = value(m.Value)
		}
		return members
	}
	return nil
}
