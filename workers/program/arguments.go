package program

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/workers/stack"
)

// one wants exactly one argument, a thing of this name.
func one(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s is missing: %s %[1]s (%[2]s --help has examples)", name, cmd.CommandPath())
		case len(args) > 1:
			return fmt.Errorf("%s takes one %s, and has %d arguments: quote one that has spaces (%[1]s --help has examples)", cmd.CommandPath(), name, len(args))
		}
		return nil
	}
}

// oneWorkflow wants exactly one workflow id: a run's, or what else the name says.
func oneWorkflow(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := one(name)(cmd, args); err != nil {
			return err
		}
		return stack.CheckID(args[0])
	}
}

// someWorkflows wants one workflow id or more.
func someWorkflows(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return one(name)(cmd, args)
		}
		return anyWorkflows(cmd, args)
	}
}

// anyWorkflows wants workflow ids, or nothing.
func anyWorkflows(_ *cobra.Command, args []string) error {
	for _, id := range args {
		if err := stack.CheckID(id); err != nil {
			return err
		}
	}
	return nil
}
