package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/stack"
)

func workerCommand() *cobra.Command {
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
		Args: none,
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

func devCommand() *cobra.Command {
	var servers dev.Options
	var worker workers.Options
	var keys connect.Settings
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Temporal, S3 and a worker in one terminal",
		Long: `Starts the Temporal dev server, an S3 server and a worker on 127.0.0.1, with
their data under .reprise/dev. Ctrl-C ends all of them. Start it again and the runs
resume. The worker is a process of its own: if it ends because the device failed, it
starts again.`,
		Example: `  reprise dev
  reprise dev --temporal-port 17233 --ui-port 18233
  reprise dev --codec-key-file codec.keys`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			servers.Stdout = cmd.OutOrStdout()
			var err error
			if worker.Codec, err = keys.PayloadCodec(); err != nil {
				return err
			}
			return stack.WithProcess(cmd.Context(), servers, worker, cmd.Flags(), cmd.OutOrStdout(), func(ctx context.Context, s stack.Served) error {
				devBanner(cmd.OutOrStdout(), s)
				fmt.Fprintln(cmd.OutOrStdout(), metricsLine(worker.MetricsListen))
				<-ctx.Done()
				fmt.Fprintln(cmd.OutOrStdout(), "\nstopping; start it again and the runs go on")
				return nil
			})
		},
	}
	servers.AddFlags(cmd.Flags())
	stack.AddWorkerFlags(cmd.Flags(), &worker, 5*time.Second)
	keys.AddCodecFlag(cmd.Flags())
	return cmd
}

func devBanner(w io.Writer, s stack.Served) {
	fmt.Fprintf(w, `
Reprise is up. Device fingerprint %s.

  Web UI     %s
  Temporal   %s
  S3         http://%s, bucket %s (keys: %s)

Try, in another terminal:

  %[7]s workflow start --type Train --task-queue reprise --workflow-id bandit-1 \
    --input-file infra/presets/bandit-demo.json%[8]s
  %[9]s watch bandit-1%[10]s
  %[9]s status bandit-1%[10]s
  %[7]s workflow update execute -w bandit-1 --name pause%[8]s
%[11]s
Ctrl-C stops everything.
`, s.Device.Fingerprint, s.UIURL(), s.TemporalAddress(), s.S3().Endpoint, s.S3().Bucket, s.Dir(), stack.TemporalName(), stack.AddressFlag(s.Stack), stack.ProgramName(), stack.DirFlag(s.Stack), codecHint(s))
}

// codecHint says how to read encrypted payloads; "" where they are plain.
func codecHint(s stack.Served) string {
	if s.Codec == nil {
		return ""
	}
	return fmt.Sprintf(`
What Temporal stores is encrypted with the key %[1]q. Commands of reprise read it with
--codec-key-file FILE or %[2]s=FILE; the temporal CLI and the Web UI through

  %[3]s codec-server --codec-key-file FILE%[4]s
`, s.Codec.KeyID(), codec.EnvKeyFile, stack.ProgramName(), stack.DirFlag(s.Stack))
}

// metricsLine is the address for Prometheus, or how to set one.
func metricsLine(address string) string {
	if address == "" {
		return "For Prometheus: --metrics-listen 127.0.0.1:9464"
	}
	return "Prometheus reads http://" + address + "/metrics"
}
