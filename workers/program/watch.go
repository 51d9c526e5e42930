package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
)

func watchCommand() *cobra.Command {
	var every time.Duration
	var conn stack.Connection
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "follow a run, a sweep or an evaluation live in the terminal",
		Long: `Follows a Train workflow until it ends: progress, reward, success, entropy, time
left, and each evaluation's success with its 95 % interval. For an Evaluate workflow
it shows the suites as they come: success, reward, and the success of a random player
and of the best play. For a Sweep workflow it shows the trials, and each setting's
mean over its seeds with a 95 % interval.

Outside a terminal it prints a line for each iteration (not for every one, if they are
faster than --every), for each evaluation or suite, and for each trial that begins,
waits or ends. It says what is being retried, and why. Ctrl-C stops watching, not the
workflow.`,
		Example: `  reprise watch bandit-1
  reprise watch bandit-1 > bandit-1.log
  reprise watch fig7
  reprise watch eval-1`,
		Args: oneWorkflow("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, by, err := conn.TemporalDecoded(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			w := watch.New(c, args[0], cmd.OutOrStdout(), every)
			w.Converter = by
			err = w.Follow(cmd.Context())
			if errors.Is(err, context.Canceled) {
				fmt.Fprintln(cmd.ErrOrStderr(), "\nstopped watching; "+args[0]+" goes on")
				return nil
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&every, "every", 500*time.Millisecond, "how often the status is queried")
	conn.AddTemporalFlags(cmd.Flags())
	return cmd
}
