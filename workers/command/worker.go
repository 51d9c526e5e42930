package command

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/stack"
)

// Worker is the command worker.
func Worker() *cobra.Command {
	var conn stack.Connection
	var o workers.Options
	var roles []string
	var supervised bool
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "serve the task queues: decide, step, compute",
		Long: `Serves the task queues until it is stopped. One process can take all roles; on a
cluster --roles splits them:

  workflow  decides what happens next
  host      environment steps, selection, commits
  device    generation, scores, updates: one session at a time on one device

On SIGTERM (a preemption notice) a device worker takes no new work, finishes the
running step within --grace, and gives the session back: the run resumes elsewhere
at once.

If the device cannot be used in this process any more, the worker gives the session back
and exits, for systemd or Kubernetes to start it again:
` + exitCodes(),
		Example: `  reprise worker
  reprise worker --roles device --session-heartbeat 20s
  reprise worker --roles workflow,host --address temporal.internal:7233`,
		Args: None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range roles {
				role, err := workers.ParseRole(name)
				if err != nil {
					return fmt.Errorf("--roles: %w", err)
				}
				o.Roles = append(o.Roles, role)
			}
			if len(roles) == 0 {
				o.Roles = workers.Roles
			}
			if err := o.Check(); err != nil {
				return err
			}
			var err error
			if o.Faults, err = faults.FromEnvironment(os.Getenv); err != nil {
				return err
			}
			if conn.Quiet = supervised; supervised {
				o.Ready = stack.Report()
			}
			o.Logger = conn.Logger()
			target, err := conn.Settings.TemporalTarget()
			if err != nil {
				return err
			}
			o.Namespace, o.Codec = target.Namespace, target.Codec
			if o.Client, err = conn.Temporal(cmd.Context()); err != nil {
				return err
			}
			defer o.Client.Close()
			if o.Store, err = conn.Store(); err != nil {
				return err
			}
			return workers.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringSliceVar(&roles, "roles", nil, "workflow, host, device (default all)")
	cmd.Flags().BoolVar(&supervised, stack.SupervisedFlag, false, "another process keeps this one")
	if err := cmd.Flags().MarkHidden(stack.SupervisedFlag); err != nil {
		panic(err) // the flag is there
	}
	stack.AddWorkerFlags(cmd.Flags(), &o, 20*time.Second)
	stack.AddLogFormat(cmd.Flags(), &conn.Format, stack.LogAuto)
	conn.AddFlags(cmd.Flags())
	return cmd
}

// exitCodes lists the exit codes that ask for a new process, a line each.
func exitCodes() string {
	var b strings.Builder
	for _, e := range workers.Exits {
		fmt.Fprintf(&b, "\n  %d  %s", e.Code, e.Meaning)
	}
	return b.String()
}
