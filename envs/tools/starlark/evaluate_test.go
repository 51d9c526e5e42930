package starlark

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// valuesOf reads the values of an answer.
func valuesOf(t *testing.T, a Answer) (out []Value) {
	t.Helper()
	require.False(t, a.Failed, a.Text)
	require.NoError(t, json.Unmarshal([]byte(a.Text), &out))
	return out
}

func TestEvaluate(t *testing.T) {
	i := Interpreter{Steps: 10_000, Output: 2000}
	for name, c := range map[string]struct {
		program    string
		expression string
		want       string // JSON, or the error
	}{
		"a number":                {"def f(x): return x + 1", "f(41)", "42"},
		"a large number":          {"def f(x): return 1 << x", "f(70)", "1180591620717411303424"},
		"a list of a tuple":       {"def f(x): return [(x, 'é|\"'), None, True, 1.5]", "f(1)", `[[1,"é|\""],null,true,1.5]`},
		"a dict, by its keys":     {"def f(): return {'b': 1, 'a': {}}", "f()", `{"a":{},"b":1}`},
		"modules":                 {"def f(x): return math.ceil(x)", "f(1.5)", "2"},
		"a name that is not":      {"def g(x): return x", "f(1)", "Error: undefined: f"},
		"an error in the program": {"def f(x):\n    return 1 // x", "f(0)", "Error in line 2: floored division by zero"},
		"no JSON":                 {"def f(): return f", "f()", "Error: json.encode: cannot encode function as JSON"},
		"a cycle":                 {"def f():\n    x = []\n    x.append(x)\n    return x", "f()", "Error: json.encode: at list index 0: cycle in JSON structure"},
		"too many steps":          {"def f():\n    for i in range(100000): pass", "f()", "Error: the program took more than 10000 steps."},
		"too long":                {"def f(): return 'a' * 3000", "f()", "Error: the value takes more than 2000 bytes."},
		"too much printed":        {"def f():\n    for i in range(100): print('a' * 100)", "f()", "Error: the program printed more than 2000 bytes."},
		"prints are lost":         {"print('12')\ndef f():\n    print('34')\n    return 5", "f()", "5"},
		"print is shadowed":       {"def print(*a): fail('no')\ndef f(): return 6", "f()", "6"},
		"what is left is frozen":  {"seen = []\ndef f():\n    seen.append(1)\n    return len(seen)", "f()", "Error in line 3: append: cannot append to frozen list"},
		"no expression":           {"", "1 +", "Error: got end of file, want primary expression"},
	} {
		t.Run(name, func(t *testing.T) {
			got := valuesOf(t, i.Evaluate(c.program, []string{c.expression}))
			require.Len(t, got, 1)
			if strings.HasPrefix(c.want, "Error") {
				require.Equal(t, Value{Error: c.want}, got[0])
				return
			}
			require.Equal(t, Value{JSON: json.RawMessage(c.want)}, got[0])
		})
	}
	got := valuesOf(t, i.Evaluate("def f(x): return 6 // x", []string{"f(1)", "f(0)", "f(3)", "'a' * 700"}))
	require.Equal(t, []string{"6", "", "2", ""}, []string{string(got[0].JSON), string(got[1].JSON), string(got[2].JSON), string(got[3].JSON)})
	require.Equal(t, "Error: the value takes more than 500 bytes.", got[3].Error)
	require.Equal(t, Answer{Text: "Error in line 2: got end of file, want ')'", Failed: true}, i.Evaluate("print('x')\nf(", []string{"1"}))
}

// A question is read as it was written, and that of a tool has no expressions.
func TestQuestion(t *testing.T) {
	q := Question{Program: "x = '|é'", Limits: Defaults}
	require.NotContains(t, string(q.Ask().Body), "expressions")
	q.Expressions = []string{"f(1)"}
	got, err := ReadQuestion(q.Ask())
	require.NoError(t, err)
	require.Equal(t, q, got)
}
