// Package command is what the programs share: what a program says and how it ends, and the command
// worker, which a program that kills its workers starts as a process of its own.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/build"
	"github.com/reprise-rl/reprise/infra/keeper"
)

// ErrSilent ends a program with status 1 after the command has printed why.
var ErrSilent = errors.New("")

// Root is a program without commands yet.
func Root(name, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long,
		SilenceUsage: true, SilenceErrors: true, Version: build.Read().String(),
	}
	cmd.SetFlagErrorFunc(flagError)
	return cmd
}

// Main runs a program until its command ends, or it is interrupted. It prints the error and exits
// with its status. Other programs of the same user, an environment's among them, cannot read its keys.
func Main(cmd *cobra.Command, status func(error) int) {
	_ = keeper.Hide() // a system that cannot: what starts a foreign program asks again, and says it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := cmd.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, ErrSilent) {
			fmt.Fprintln(os.Stderr, cmd.Name()+": "+err.Error())
		}
		os.Exit(status(err))
	}
}

// None wants no argument.
func None(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q for %q, which takes no arguments (see %[2]s --help)", args[0], cmd.CommandPath())
	}
	return nil
}

// flagError says where the flags of a command are listed.
func flagError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w (%s --help has the flags)", err, cmd.CommandPath())
}
