package starlark

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

func TestDeclare(t *testing.T) {
	for text, want := range map[string]Limits{
		"": Defaults,
		`{"steps":5,"seconds":0.25,"memory_mb":64,"output_bytes":10}`: {Steps: 5, Output: 10, Deadline: 250 * time.Millisecond, Memory: 64 << 20},
	} {
		var got Limits
		_, problems := envs.ReadOptions(json.RawMessage(text), func(o *envs.Options) { got = Declare(o) })
		require.Empty(t, problems)
		require.Equal(t, want, got)
		require.NoError(t, got.check())
	}
	for text, message := range map[string]string{
		`{"steps":0}`: "from 1 to 1000000000", `{"seconds":0}`: "from 0.05 to 60", `{"memory_mb":1}`: "from 16 to 16384", `{"output_bytes":0}`: "from 1",
		`{"memory":1}`: "one of the options",
	} {
		_, problems := envs.ReadOptions(json.RawMessage(text), func(o *envs.Options) { Declare(o) })
		require.ErrorContains(t, problems.Err(), message)
	}
}

func TestDescribe(t *testing.T) {
	d := Describe(Defaults)
	require.Equal(t, Name, d.Name)
	require.Contains(t, d.Description, "1000000 steps")
	require.JSONEq(t, `{"type":"object","required":["program"],
		"properties":{"program":{"type":"string","description":"The program; it prints its results."}}}`, string(d.Parameters))
}

func TestProgram(t *testing.T) {
	for arguments, want := range map[string]string{`{"program":"print(1)\n"}`: "print(1)\n", `{"x":1,"program":""}`: ""} {
		program, ok := Program(json.RawMessage(arguments))
		require.True(t, ok)
		require.Equal(t, want, program)
	}
	for _, arguments := range []string{``, `{`, `[]`, `{}`, `{"program":1}`, `{"Program":"x"}`, `"x"`} {
		_, ok := Program(json.RawMessage(arguments))
		require.False(t, ok, arguments)
	}
}

// Each example is a program that works.
func TestExamples(t *testing.T) {
	for _, arguments := range Examples() {
		program, ok := Program(arguments)
		require.True(t, ok)
		answer := small.Run(program)
		require.False(t, answer.Failed, answer.Text)
		require.NotEmpty(t, answer.Text)
	}
}
