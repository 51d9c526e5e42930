package code

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

func TestReadTest(t *testing.T) {
	for line, want := range map[string]test{
		"f(3) == 9": {"f(3)", "9", "9"},
		" assert f([1, 2], k='é') == [ (1, 2.0) ] ": {"f([1, 2], k='é')", "[[1,2]]", "[ (1, 2.0) ]"},
		"f('==') == '=='":                         {"f('==')", `"=="`, "'=='"},
		"sorted(f(1)) == {'b': [], 'a': None}":    {"sorted(f(1))", `{"a":null,"b":[]}`, "{'b': [], 'a': None}"},
		"f(1)==-1":                                {"f(1)", "-1", "-1"},
		"f(1) == -123456789012345678901234567890": {"f(1)", "-123456789012345678901234567890", "-123456789012345678901234567890"},
		"f(1) == (True)":                          {"f(1)", "true", "(True)"},
		"f(1) == 1e400 or 1":                      {},
		"f(1) == g(1)":                            {},
		"f(1) == x":                               {},
		"f(1) == {1: 2}":                          {},
		"f(1) == {'a': 1, 'a': 2}":                {},
		"f(1) == b'a'":                            {},
		"f(1) != 1":                               {},
		"f(1)":                                    {},
		"f(1 == 1":                                {},
		"f(1) == 1\nf(2) == 2":                    {},
		"":                                        {},
		"f(1) == " + strings.Repeat("[", 2000):    {},
		"f(1) == " + strings.Repeat("[", 100) + strings.Repeat("]", 100): {},
		"f(1) == '" + strings.Repeat("a", maxTest) + "'":                 {},
	} {
		got, err := readTest(line)
		if want.call == "" {
			require.ErrorIs(t, err, errTest, line)
			continue
		}
		require.NoError(t, err, line)
		require.Equal(t, want, got)
	}
}

func TestCanonicalValue(t *testing.T) {
	for value, want := range map[string]string{
		" [1, 1.0, 1e0, -0, -0.0, 0.5, 5e-1] ": "[1,1,1,0,0,0.5,0.5]",
		`{"b":1,"a":"<é|\u00e9>"}`:             "{\"a\":\"\\u003cé|é\\u003e\",\"b\":1}",
		"9007199254740993":                     "9007199254740993",
		"1e400":                                "1e400",
		"1e300":                                "1e+300",
		"true":                                 "true",
		"":                                     "",
		"1 2":                                  "",
		"NaN":                                  "",
		strings.Repeat("[", 40) + strings.Repeat("]", 40): "",
	} {
		require.Equal(t, want, canonicalValue([]byte(value)), value)
	}
	require.NotEqual(t, canonicalValue([]byte("1")), canonicalValue([]byte("true")))
	require.NotEqual(t, canonicalValue([]byte(`"1"`)), canonicalValue([]byte("1")))
}

// No test of a file panics, and what is read stays the same test.
func FuzzReadTest(f *testing.F) {
	for _, line := range []string{"f(3) == 9", "assert f([1, 'a']) == {'b': (1, -2.5)}", "f('é') == 'ß' ", "f(1) == -(1)", "x == 1 == 2", "f(\t1)==[[[]]]"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := readTest(line)
		if err != nil {
			require.ErrorIs(t, err, errTest)
			return
		}
		again, err := readTest(got.line())
		require.NoError(t, err)
		require.Equal(t, got, again)
		require.Equal(t, got.want, canonicalValue([]byte(got.want)))
	})
}

// An action is read as it was written, and only what was written so has an answer.
func FuzzReadAnswer(f *testing.F) {
	f.Add("def f(x): return x", `[{"value":1}]`, true, false)
	f.Add("x # answered {}", "a || b\n# answered {}", false, true)
	f.Add("x\n# answered {\"text\":\"\"}", "", false, false)
	f.Fuzz(func(t *testing.T, program, text string, failed, killed bool) {
		text = strings.ToValidUTF8(text, "?")
		a := envs.ToolAnswer{Text: text, Failed: failed, Killed: killed}
		action := withAnswer(program, a)
		require.Equal(t, strings.Count(program, "|"), strings.Count(action, "|"))
		got, answer, ok := readAnswer(action)
		require.True(t, ok)
		require.Equal(t, program, got)
		require.Equal(t, &a, answer)
		if _, answer, ok := readAnswer(program); ok && answer != nil {
			require.Contains(t, program, answerMark)
		}
	})
}

// What a child answers is text from outside: no answer panics.
func FuzzJudge(f *testing.F) {
	f.Add(`[{"value":1},{"error":"é"}]`, false)
	f.Add(`[{"value":[[1e999]]},{}]`, false)
	f.Add("Error", true)
	p := &problem{examples: []test{{"f(1)", "1", "1"}}, hidden: []test{{"f(2)", "2", "2"}}}
	f.Fuzz(func(t *testing.T, text string, failed bool) {
		v := p.judge("", &envs.ToolAnswer{Text: text, Failed: failed})
		require.LessOrEqual(t, len(v.says), maxSays)
		require.NotEmpty(t, v.says)
		if v.all {
			require.True(t, json.Valid([]byte(text)))
		}
	})
}
