package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/command/commandtest"
)

// Wrong command lines are answered by this program's name, and the command worker is there for
// the measures that start it.
func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		`unknown command "x" for "reprise-lab bench", which takes no arguments (see reprise-lab bench --help)`:   {"bench", "x"},
		"unknown flag: --seed (reprise-lab learn --help has the flags)":                                          {"learn", "--seed=1"},
		`unknown command "x" for "reprise-lab worker", which takes no arguments (see reprise-lab worker --help)`: {"worker", "x"},
	} {
		cmd := root()
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		require.EqualError(t, cmd.ExecuteContext(t.Context()), want)
	}
	for _, cmd := range root().Commands() {
		require.NotNil(t, cmd.Args, cmd.CommandPath())
		for _, example := range strings.Split(cmd.Example, "\n") {
			if !cmd.Hidden {
				require.Contains(t, example, "reprise-lab "+cmd.Name())
			}
		}
	}
}

func TestVariables(t *testing.T) { commandtest.Variables(t, root(), "../..") }
