// Package command is what the programs share: what a program says and how it ends, and the command
// worker, which a program that kills its workers starts as a process of its own.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/reprise-rl/reprise/infra/build"
	"github.com/reprise-rl/reprise/infra/keeper"
)

// ErrSilent ends a program with status 1 after the command has printed why.
var ErrSilent = errors.New("")

// Root is a program without commands yet. Its commands' flags may come from the environment.
func Root(name, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long,
		SilenceUsage: true, SilenceErrors: true, Version: build.Read().String(),
	}
	cmd.SetFlagErrorFunc(flagError)
	cmd.PersistentPreRunE = fromEnvironment
	cmd.SetUsageTemplate(cmd.UsageTemplate() + environmentHelp)
	return cmd
}

// Main runs a program until its command ends, or it is interrupted: by SIGINT, by SIGTERM, or by SIGUSR1, which is what Slurm
// sends before it ends a job. It prints the error and exits
// with its status; a command that ends because it was interrupted says that it has stopped. Other programs of the same
// user, an environment's among them, cannot read its keys.
func Main(cmd *cobra.Command, status func(error) int) {
	_ = keeper.Hide() // a system that cannot: what starts a foreign program asks again, and says it
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1)
	var by atomic.Int32 // the first signal
	go func() {
		if s, ok := (<-signals).(syscall.Signal); ok {
			by.Store(int32(s))
		}
		stop()
	}()
	if err := cmd.ExecuteContext(ctx); err != nil {
		text, code := end(err, syscall.Signal(by.Load()), status)
		if text != "" {
			fmt.Fprintln(os.Stderr, cmd.Name()+": "+origin(cmd, os.Args[1:], text))
		}
		os.Exit(code)
	}
}

// end is what a program says of the error that its command ended with, and the exit status. by is the signal that
// interrupted it, or 0. The status of an interrupted command is the shell's for the signal: 130 or 143.
func end(err error, by syscall.Signal, status func(error) int) (text string, code int) {
	switch {
	case by != 0 && cancelled(err):
		return "stopped", 128 + int(by)
	case errors.Is(err, ErrSilent):
		return "", status(err)
	}
	return err.Error(), status(err)
}

// cancelled reports whether an error says only that what was under way was cancelled. Servers' clients have kinds of their
// own for that.
func cancelled(err error) bool {
	if errors.Is(err, context.Canceled) {
		return true
	}
	_, server := errors.AsType[*serviceerror.Canceled](err)
	return server || grpcstatus.Code(err) == codes.Canceled || strings.HasSuffix(err.Error(), context.Canceled.Error())
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
