package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/faults"
)

// serving are the flags of everything that runs a worker.
type serving struct {
	roles            []string
	plugin, xlaFlags string
	heartbeat, grace time.Duration
	continueAfter    int
	hostSlots        int
	metricsListen    string
	metricsRuns      int
}

func (s *serving) addFlags(cmd *cobra.Command, heartbeat time.Duration) {
	f := cmd.Flags()
	addDeviceFlags(cmd, &s.plugin, &s.xlaFlags)
	f.DurationVar(&s.heartbeat, "session-heartbeat", heartbeat, "silence after which a device worker's session is lost; a server restart must fit into it")
	f.DurationVar(&s.grace, "grace", 25*time.Second, "how long the running step may finish after SIGTERM")
	f.IntVar(&s.hostSlots, "host-slots", 8, "host activities at once")
	f.IntVar(&s.continueAfter, "continue-as-new-after", 0, "iterations before a run continues as new (0: when the server suggests it)")
	f.StringVar(&s.metricsListen, "metrics-listen", "", "host:port at which Prometheus reads this worker's metrics (default: none; without a host 127.0.0.1)")
	f.IntVar(&s.metricsRuns, "metrics-runs", 1, "how many runs at once are named in the metrics' labels: the ones that committed last (0: none)")
}

func (s *serving) options() (workers.Options, error) {
	o := workers.Options{
		Device:           model.DeviceOptions{Plugin: s.plugin, XLAFlags: s.xlaFlags},
		SessionHeartbeat: s.heartbeat, Grace: s.grace, ContinueAfter: s.continueAfter, HostSlots: s.hostSlots,
		MetricsListen: s.metricsListen, MetricsRuns: s.metricsRuns,
	}
	if s.metricsRuns < 0 {
		return o, fmt.Errorf("--metrics-runs is %d: it cannot be negative", s.metricsRuns)
	}
	if len(s.roles) == 0 {
		o.Roles = workers.Roles
	}
	for _, name := range s.roles {
		role, err := workers.ParseRole(name)
		if err != nil {
			return o, fmt.Errorf("--roles: %w", err)
		}
		o.Roles = append(o.Roles, role)
	}
	return o, nil
}

func workerCommand() *cobra.Command {
	var conn connection
	var serve serving
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "serve the task queues: decide, step, compute",
		Long: `Serves the task queues until it is told to stop. One process can take all
roles; on a cluster --roles splits them:

  workflow  decides what happens next
  host      environment steps, selection, commits
  device    generation, scores, updates: one session at a time on one device

On SIGTERM (a preemption notice) a device worker takes no new work, finishes the
step that runs within --grace, and gives the session back: the run goes on
elsewhere at once.`,
		Example: `  reprise worker
  reprise worker --roles device --session-heartbeat 20s
  reprise worker --roles workflow,host --address temporal.internal:7233`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := serve.options()
			if err != nil {
				return err
			}
			if o.Faults, err = faults.FromEnvironment(os.Getenv); err != nil {
				return err
			}
			o.Logger = conn.logger()
			target, err := conn.settings.TemporalTarget()
			if err != nil {
				return err
			}
			o.Namespace = target.Namespace
			if o.Client, err = conn.temporal(cmd.Context()); err != nil {
				return err
			}
			defer o.Client.Close()
			if o.Store, err = conn.store(); err != nil {
				return err
			}
			return workers.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringSliceVar(&serve.roles, "roles", nil, "workflow, host, device (default all)")
	serve.addFlags(cmd, 20*time.Second)
	conn.addFlags(cmd)
	return cmd
}

func devCommand() *cobra.Command {
	var stack dev.Options
	var serve serving
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Temporal, S3 and a worker in one terminal",
		Long: `Starts the Temporal dev server, an S3 server and a worker on 127.0.0.1, with
their data under .reprise/dev. Ctrl-C ends all of them; started again, it goes on
where the runs were.`,
		Example: `  reprise dev
  reprise dev --temporal-port 17233 --ui-port 18233`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stack.Stdout = cmd.OutOrStdout()
			return withStack(cmd.Context(), stack, serve, func(ctx context.Context, s served) error {
				devBanner(cmd.OutOrStdout(), s.Stack, s.device)
				fmt.Fprintln(cmd.OutOrStdout(), metricsLine(serve.metricsListen))
				<-ctx.Done()
				fmt.Fprintln(cmd.OutOrStdout(), "\nstopping; start it again and the runs go on")
				return nil
			})
		},
	}
	stack.AddFlags(cmd.Flags())
	serve.addFlags(cmd, 5*time.Second)
	return cmd
}

func devBanner(w io.Writer, s *dev.Stack, info activities.DeviceInfo) {
	fmt.Fprintf(w, `
Reprise is up. Device fingerprint %s.

  Web UI     %s
  Temporal   %s
  S3         http://%s, bucket %s (keys: %s)

Try, in another terminal:

  %[7]s workflow start --type Train --task-queue reprise --workflow-id bandit-1 \
    --input-file infra/presets/bandit-demo.json%[8]s
  %[9]s watch bandit-1%[10]s
  %[7]s workflow query -w bandit-1 --type status%[8]s
  %[7]s workflow update execute -w bandit-1 --name pause%[8]s

Ctrl-C stops everything.
`, info.Fingerprint, s.UIURL(), s.TemporalAddress(), s.S3().Endpoint, s.S3().Bucket, s.Dir(), temporalName(), addressFlag(s), programName(), dirFlag(s))
}

// metricsLine says where Prometheus reads, or how it could.
func metricsLine(address string) string {
	if address == "" {
		return "For Prometheus: --metrics-listen 127.0.0.1:9464"
	}
	return "Prometheus reads http://" + address + "/metrics"
}

// programName is how this program can be called from here.
func programName() string {
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		return fromHere(os.Args[0])
	}
	return "reprise"
}

// temporalName is how the temporal CLI can be called from here.
func temporalName() string {
	cli, err := dev.TemporalCLI()
	if err != nil {
		return "temporal"
	}
	return fromHere(cli)
}

// fromHere shortens a path below the working directory.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, absolute); err == nil && filepath.IsLocal(short) {
		return short
	}
	return absolute
}

// addressFlag is what a temporal command needs besides where the port is not its
// default, or where the environment names another server.
func addressFlag(s *dev.Stack) string {
	if os.Getenv("TEMPORAL_ADDRESS") == "" && strings.HasSuffix(s.TemporalAddress(), fmt.Sprintf(":%d", dev.DefaultTemporalPort)) {
		return ""
	}
	return " --address " + s.TemporalAddress()
}

// served is a dev stack with a worker, and how to reach it.
type served struct {
	*dev.Stack
	client client.Client
	bucket store.Store
	device activities.DeviceInfo
}

// dirFlag is what a reprise command needs where the stack's folder is not the
// default, or where the environment names other servers.
func dirFlag(s *dev.Stack) string {
	if usual, err := filepath.Abs(dev.DefaultDir); err == nil && s.Dir() == usual && !connect.EnvironmentNamesServers() {
		return ""
	}
	return " --dev-dir " + fromHere(s.Dir())
}

// withStack runs f on a dev stack with a worker, and ends both afterwards. The
// worker is part of this process; f's context ends when it, a server, or the
// caller's context does.
func withStack(ctx context.Context, stack dev.Options, serve serving, f func(context.Context, served) error) (err error) {
	o, err := serve.options()
	if err != nil {
		return err
	}
	s, err := dev.Start(ctx, stack)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := s.Stop(); err == nil {
			err = stopErr
		}
	}()
	conn := connection{quiet: true}
	conn.settings.DevDir = s.Dir()
	o.Logger, o.Namespace = conn.logger(), s.Namespace()
	if o.Client, err = conn.temporal(ctx); err != nil {
		return err
	}
	defer o.Client.Close()
	if o.Store, err = conn.store(); err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan activities.DeviceInfo, 1)
	o.Ready = func(info activities.DeviceInfo) { ready <- info }
	ended := make(chan error, 1)
	go func() { ended <- workers.Run(running, o) }()
	select {
	case info := <-ready:
		watched, stop := context.WithCancelCause(running)
		go func() {
			select {
			case died := <-s.Failed():
				stop(died)
			case <-watched.Done():
			}
		}()
		err = f(watched, served{Stack: s, client: o.Client, bucket: o.Store, device: info})
		if cause := context.Cause(watched); err == nil && ctx.Err() == nil && cause != nil {
			err = cause
		}
		stop(nil)
	case err := <-ended:
		return err
	}
	cancel()
	if workerErr := <-ended; err == nil {
		err = workerErr
	}
	return err
}
