package command

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-rl/reprise/infra/notices"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/stack"
)

// Worker is the command worker.
func Worker() *cobra.Command {
	var conn stack.Connection
	var o workers.Options
	var roles []string
	var supervised, one bool
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "serve the task queues: decide, step, compute",
		Long: `Serves the task queues until it is stopped. One process can take all roles; on a
cluster --roles splits them:

  workflow  decides what happens next
  host      environment steps, selection, commits
  device    generation, scores, updates: one run at a time on one device

A device worker is two processes. This one opens no device: it gives the device to one
run at a time, first come, first served, and says at once if the other process, which
computes, has ended; then it starts that one again. With --one-process there is no other.

On SIGTERM, on SIGUSR1 (Slurm's --signal) and on a cloud's notice that the machine ends
(--notices) a device worker takes no new work, finishes the running step within --grace,
and gives the device up: the run resumes elsewhere at once.

With --deployment and --build the roles workflow and host are a version of a deployment
(Temporal's Worker Versioning): runs stay on the build on which they began until they are
moved. docs/upgrading.md says how to roll out a build, and back.

If the device cannot be used in the process that computes any more, that one exits.
With --one-process the worker does, for systemd or Kubernetes to start it again:
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
			o.Notices = watched(o.Notices, supervised)
			o.LeaseHeartbeat = leaseSilence(cmd.Flags(), o.LeaseHeartbeat, one)
			if err := o.Check(); err != nil {
				return err
			}
			var err error
			if o.Faults, err = faults.FromEnvironment(os.Getenv); err != nil {
				return err
			}
			switch {
			case supervised:
				o.Parent, o.Roles = workers.ConnectParent(), []workers.Role{workers.RoleDevice}
			case o.Has(workers.RoleDevice) && !one:
				if o.Child, err = stack.Child(os.Args[1:], o.MetricsListen != "", os.Stderr); err != nil {
					return err
				}
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
	cmd.Flags().StringVar(&o.Deployment, "deployment", "", "`name` of the Worker Deployment that this worker belongs to, with --build (default: unversioned)")
	cmd.Flags().StringVar(&o.Build, "build", "", "`id` of this worker's build in the --deployment: runs that begin on it stay on it")
	cmd.Flags().BoolVar(&one, "one-process", false, "compute in this process, and start no other: if it ends, runs notice it by its silence")
	cmd.Flags().BoolVar(&supervised, stack.SupervisedFlag, false, "this process computes for another one")
	cmd.Flags().BoolVar(&conn.Quiet, stack.QuietFlag, false, "log errors only")
	for _, hidden := range []string{stack.SupervisedFlag, stack.QuietFlag} {
		if err := cmd.Flags().MarkHidden(hidden); err != nil {
			panic(err) // the flag is there
		}
	}
	stack.AddWorkerFlags(cmd.Flags(), &o, 20*time.Second)
	stack.AddLogFormat(cmd.Flags(), &conn.Format, stack.LogAuto)
	conn.AddFlags(cmd.Flags())
	return cmd
}

// leaseHeartbeat is the silence after which a lease is lost, by default: the shortest of 1, 2, 3, 5 and 10 s in which no lease was
// lost on a machine with five times as much to do as it could, or in a restart of the server (reprise-lab bench --part heartbeats;
// docs/results/benchmarks.md).
const leaseHeartbeat = 3 * time.Second

// leaseSilence is the silence after which a lease is lost, by its flag. Where that is not given, --session-heartbeat holds (0), if that
// is given or one process computes and sends the heartbeats.
func leaseSilence(flags *pflag.FlagSet, flag time.Duration, one bool) time.Duration {
	if !flags.Changed("lease-heartbeat") && !flags.Changed("session-heartbeat") && !one {
		return leaseHeartbeat
	}
	return flag
}

// watched is whose notices a worker watches, by its flag: by default it finds out. What computes for another process leaves it to
// that one.
func watched(flag string, supervised bool) string {
	switch {
	case supervised:
		return notices.None
	case flag == "":
		return notices.Auto
	}
	return flag
}

// exitCodes lists the exit codes that ask for a new process, a line each.
func exitCodes() string {
	var b strings.Builder
	for _, e := range workers.Exits {
		fmt.Fprintf(&b, "\n  %d  %s", e.Code, e.Meaning)
	}
	return b.String()
}
