package starlark

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// small are limits in which each program of the tables ends at once.
var small = Interpreter{Steps: 20_000, Output: 200}

func TestGoodPrograms(t *testing.T) {
	for program, want := range map[string]string{
		`print(1 + 2)`:                                                 "3",
		"print(7 // 2, 7 % 2, 7 / 2)":                                  "3 1 3.5",
		"x = 0\nfor i in range(5):\n    x += i\nprint(x)":              "10",
		"if 1 < 2:\n    print('yes')":                                  "yes",
		"def f(n):\n    return [i * i for i in range(n)]\nprint(f(4))": "[0, 1, 4, 9]",
		"print(set([3, 1, 3]))":                                        "set([3, 1])",
		"d = {'b': 1, 'a': 2}\nd['c'] = 3\nprint(d, sorted(d))":        `{"b": 1, "a": 2, "c": 3} ["a", "b", "c"]`,
		"print(json.encode({'b': [1, None, True], 'a': 'x'}))":         `{"a":"x","b":[1,null,true]}`,
		"print(json.decode('[1, 2.5]')[1] + math.floor(2.7))":          "4.5",
		"print(2 * 3)\nprint()\nprint('a\\nb')\n":                      "6\n\na\nb",
		"x = 1":     "",
		"":          "",
		"# nothing": "",
		"print(100000000000000000000 * 100000000000000000000)":     "10000000000000000000000000000000000000000",
		"print(' '.join(['é', '日本']).upper())":                     "É 日本",
		"print(hash('a'), repr(len), type(print), str(lambda: 1))": "97 <built-in function len> builtin_function_or_method <function lambda>",
		`print("\u00ff")`:                   "\xc3\xbf",
		`print(b"\xff")`:                    "\uFFFD",
		"print([x for x in dir(math)][:3])": `["acos", "acosh", "asin"]`,
	} {
		assert.Equal(t, Answer{Text: want}, small.Run(program), program)
	}
}

func TestFailedPrograms(t *testing.T) {
	for program, want := range map[string]string{
		"print(1)\nprint(1 // 0)":                      "1\nError in line 2: floored division by zero",
		"print(":                                       "Error in line 1: got end of file, want ')'",
		"x = 1\n  y = 2":                               "Error in line 2: got indent, want primary expression",
		"print(y)":                                     "Error in line 1: undefined: y",
		"x = [1]\nprint(x[3])":                         "Error in line 2: list index 3 out of range [-1:0]",
		"fail('no', 1)":                                "Error in line 1: fail: no 1",
		"def f(n):\n    return f(n)\nf(1)":             "Error in line 2: function f called recursively",
		"while True:\n    pass":                        "Error in line 1: this Starlark dialect does not support while loops",
		"def f():\n    return {}['k']\n\n\nf()":        `Error in line 2: key "k" not in dict`,
		"print('a' + 1)":                               "Error in line 1: unknown binary op: string + int",
		"import os":                                    "Error in line 1: got import, want primary expression",
		"load('os', 'system')":                         "Error in line 1: cannot load os: there are no other files",
		"open('/etc/passwd')":                          "Error in line 1: undefined: open",
		"os.fork()":                                    "Error in line 1: undefined: os",
		"time.now()":                                   "Error in line 1: undefined: time",
		"print(__import__('os'))":                      "Error in line 1: undefined: __import__",
		"print(getattr(print, '__globals__'))":         "Error in line 1: getattr: builtin_function_or_method has no .__globals__ field or method",
		"math.pi = 3":                                  "Error in line 1: can't assign to .pi field of module",
		"x = [1]\nfor i in x:\n    x.append(i)":        "Error in line 3: append: cannot append to list during iteration",
		"int('x')":                                     `Error in line 1: int: invalid literal with base 10: x`,
		"x = 'a' * (1 << 40)":                          "Error in line 1: repeat count 1099511627776 too large",
		"1 << 100000":                                  "Error in line 1: shift count too large: 100000",
		"for i in range(1000000000): pass":             "Error: the program took more than 20000 steps.",
		"print('a' * 300)":                             strings.Repeat("a", 200) + "…\nError: the program printed more than 200 bytes.",
		"for i in range(10000): print('é' * 15)":       strings.Repeat(strings.Repeat("é", 15)+"\n", 6) + strings.Repeat("é", 7) + "…\nError: the program printed more than 200 bytes.",
		"print('x')\nfor i in range(10000): print('')": "x\nError: the program printed more than 200 bytes.",
		"fail('é' * 400)":                              "Error in line 1: fail: " + strings.Repeat("é", 147) + "…",
		"print(\"\xff\")":                              "Error: the program is not UTF-8.",
		strings.Repeat("#", MaxProgram+1):              "Error: the program has 65537 bytes, at most 65536 are allowed.",
		"x = [1]\nx.append(x)\nprint(x)\nx < x":        "[1, [...]]\nError in line 4: comparison exceeded maximum recursion depth",
	} {
		assert.Equal(t, Answer{Text: want, Failed: true}, small.Run(program), program)
	}
}

// A program cannot change what the next one has, and both may run at the same time.
func TestProgramsAreApart(t *testing.T) {
	t.Parallel()
	done := make(chan Answer)
	for range 8 {
		go func() {
			small.Run("x = 1\nmath.x = 2")
			done <- small.Run("print(len(dir(math)), [n for n in ['x'] if n in dir(math)])")
		}()
	}
	first := <-done
	require.False(t, first.Failed, first.Text)
	for range 7 {
		require.Equal(t, first, <-done)
	}
}

// Whatever a program is, it has one answer, of bounded size.
func FuzzInterpreter(f *testing.F) {
	for _, program := range []string{
		"print(1)", "print(", "x = [1]\nx.append(x)\nprint(x)", "for i in range(1000000): pass", "def f():\n\treturn f()\nf()", "\xff", "fail(1)",
		"print(json.decode('{'))", "print('%s' % 1, b'\\xff')", "load('a', 'b')", "1 << 511", "print({1: set([2])})", "[[[((",
	} {
		f.Add(program)
	}
	limits := Interpreter{Steps: 1000, Output: 100}
	f.Fuzz(func(t *testing.T, program string) {
		if len(program) > 256 { // a single built-in function may take long: that is what children are for
			return
		}
		answer := limits.Run(program)
		require.Equal(t, answer, limits.Run(program))
		require.True(t, utf8.ValidString(answer.Text))
		require.Less(t, len(answer.Text), 3*limits.Output+2*maxMessage)
		require.False(t, answer.Killed)
		require.NotContains(t, answer.Text, "the interpreter failed")
	})
}
