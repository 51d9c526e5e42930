package code

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
	"github.com/reprise-rl/reprise/model/draw"
)

// asChild is the argument with which the test's program runs programs.
const asChild = "starlark-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asChild {
		if err := starlark.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A child grades, and what is too much for it is the policy's failure.
func TestGradedInAChild(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	limits := starlark.Limits{Steps: 100_000, Output: 4096, Deadline: 10 * time.Second, Memory: 32 << 20}
	pool, err := starlark.NewPool([]string{program, asChild}, limits, 1)
	require.NoError(t, err)
	defer pool.Close()
	c := newCode(t, `{"levels":"1-3","tries":2,"steps":100000,"memory_mb":32,"seconds":10}`)
	require.Equal(t, limits, c.options.Limits)
	grade := func(e envs.Episode, action string) envs.Outcome {
		q, ok := e.(envs.Graded).Question(action)
		require.True(t, ok)
		asked, err := starlark.ReadQuestion(q)
		require.NoError(t, err)
		require.Equal(t, limits, asked.Limits)
		a, err := pool.Evaluate(t.Context(), asked.Program, asked.Expressions)
		require.NoError(t, err)
		return e.Step(e.(envs.Graded).WithAnswer(action, envs.ToolAnswer{Text: a.Text, Failed: a.Failed, Killed: a.Killed}))
	}
	for n := range 20 {
		e := c.Reset(instance(n), draw.Address{}).(*episode)
		require.False(t, grade(e, "def f(x): return None").Success)
		require.True(t, grade(e, e.problem.reference).Success, e.problem.reference)
	}
	for program, want := range map[string]string{
		"def f(x): return 'a' * 1000000000":            "The program fails. Error: the program was stopped, since it took more than 32 MiB of memory.",
		"def f(x):\n    for y in range(1000000): pass": "Example 1 fails. Error: the program took more than 100000 steps.",
		"def f(x): return g(x)":                        "The program fails. Error in line 1: undefined: g",
		"import os":                                    "The program fails. Error in line 1: got import, want primary expression",
		"print('[1, 2, 3]')\ndef f(x): print(x)":       "Example 1 fails. It gives null.",
		"def f(x): return f":                           "Example 1 fails. Error: json.encode: cannot encode function as JSON",
		"def f(x): return 'a' * 5000":                  "Example 1 fails. Error: the value takes more than 409 bytes.",
		"def f(x, y): return x":                        "Example 1 fails. Error in line 1: function f missing 1 argument (y)",
		"x = 'f'":                                      "Example 1 fails. Error: undefined: f",
		"def f(x): fail('" + "é" + "')":                "Example 1 fails. Error in line 1: fail: ?",
	} {
		o := grade(c.Reset(instance(1), draw.Address{}), program)
		require.Equal(t, envs.Outcome{Effective: true, Text: want}, o, program)
	}
}
