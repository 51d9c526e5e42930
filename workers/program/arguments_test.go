package program

import (
	"io"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/stack"
)

// said is the error of a command line that is wrong before any request is made.
func said(t *testing.T, args ...string) error {
	t.Helper()
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	require.Error(t, err)
	return err
}

// Wrong command lines are answered with what to write.
func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"RUN is missing: reprise verify RUN (reprise verify --help has examples)":                                          {"verify"},
		"ID is missing: reprise watch ID (reprise watch --help has examples)":                                              {"watch"},
		"FILE is missing: reprise validate FILE (reprise validate --help has examples)":                                    {"validate"},
		"reprise status takes one ID, and has 2 arguments: quote one that has spaces (reprise status --help has examples)": {"status", "a", "b"},
		`unknown command "bandit-1" for "reprise dev", which takes no arguments (see reprise dev --help)`:                  {"dev", "bandit-1"},
		`unknown command "lst" for "reprise env", which takes no arguments (see reprise env --help)`:                       {"env", "lst"},
		"unknown flag: --iteratoin (reprise watch --help has the flags)":                                                   {"watch", "r", "--iteratoin=1"},
	} {
		require.EqualError(t, said(t, args...), want)
	}
	require.ErrorContains(t, said(t, "statsu"), "Did you mean this?\n\tstatus")
}

// What the measuring tools do is answered with their program, whatever else was written.
func TestMeasuresMoved(t *testing.T) {
	for _, name := range []string{"bench", "gpu", "learn", "study"} {
		for _, args := range [][]string{{name}, {name, "--help"}, {name, "--part", "speed", "x"}} {
			err := said(t, args...)
			require.ErrorContains(t, err, name+" is a command of the measuring tools: ")
			require.ErrorContains(t, err, "-lab "+name)
			require.Equal(t, statusUsage, status(err))
		}
	}
}

// Every command that takes a workflow's id refuses one that no workflow can have, before
// it asks any server; and every command says what it takes.
func TestIDs(t *testing.T) {
	for _, command := range []string{"watch", "status", "report", "trajectories", "metrics", "verify", "replay", "export", "rm", "gc"} {
		require.ErrorIs(t, said(t, command, "odd id/\xff"), stack.ErrID, command)
	}
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		if cmd.HasParent() {
			require.NotNil(t, cmd.Args, cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			each(sub)
		}
	}
	each(root())
}
