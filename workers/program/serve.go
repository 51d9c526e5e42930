package program

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/live"
	"github.com/reprise-rl/reprise/workers/stack"
)

func devCommand() *cobra.Command {
	var servers dev.Options
	var worker workers.Options
	var keys connect.Settings
	var pages devPages
	var format stack.LogFormat // the worker's: see stack.WithProcess
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Temporal, S3 and a worker in one terminal",
		Long: `Starts the Temporal dev server, an S3 server and a worker on 127.0.0.1, with
their data under .reprise/dev. Ctrl-C ends all of them. Start it again and the runs
resume. What computes is a process of its own: if it ends because the device failed, it
starts again. The pages of runs and sweeps are served while they run: see reprise pages.

Environments of your own are served with --env-process, or while the stack runs: reprise env add.`,
		Example: `  reprise dev
  reprise dev --env-process guess=./docs/own/guess.py
  reprise dev --temporal-port 17233 --ui-port 18233
  reprise dev --codec-key-file codec.keys`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			servers.Stdout = cmd.OutOrStdout()
			var err error
			if worker.Codec, err = keys.PayloadCodec(); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if err := pages.listen(cmd.Context(), cmd.Flags()); err != nil {
				return err
			}
			defer pages.listener.Close()
			return stack.WithProcess(cmd.Context(), servers, worker, cmd.Flags(), out, func(ctx context.Context, s stack.Served) error {
				return pages.serve(ctx, s, func() error {
					devBanner(out, s, live.URL(pages.listener))
					fmt.Fprintln(out, metricsLine(worker.MetricsListen))
					<-ctx.Done()
					fmt.Fprintln(out, "\nstopping; start it again and the runs go on")
					return nil
				})
			})
		},
	}
	servers.AddFlags(cmd.Flags())
	pages.addFlag(cmd.Flags())
	stack.AddWorkerFlags(cmd.Flags(), &worker, stack.DevHeartbeat)
	stack.AddLogFormat(cmd.Flags(), &format, stack.LogText)
	keys.AddCodecFlag(cmd.Flags())
	return cmd
}

func devBanner(w io.Writer, s stack.Served, pages string) {
	fmt.Fprintf(w, `
Reprise is up. Device fingerprint %[1]s.

  Web UI     %[2]s
  Temporal   %[3]s
  S3         http://%[4]s, bucket %[5]s (keys: %[6]s)
  Pages      %[12]s

Try, in another terminal:

  %[7]s workflow start --type Train --task-queue reprise --workflow-id bandit-1 \
    --input-file %[13]s%[8]s
  %[9]s watch bandit-1%[10]s
  %[9]s status bandit-1%[10]s
  %[7]s workflow update execute -w bandit-1 --name pause%[8]s
%[11]s
Ctrl-C stops everything.
`, s.Device.Fingerprint, s.UIURL(), s.TemporalAddress(), s.S3().Endpoint, s.S3().Bucket, s.Dir(),
		stack.TemporalName(), stack.AddressFlag(s.Stack), stack.ProgramName(), stack.DirFlag(s.Stack), codecHint(s), pages,
		cmp.Or(stack.PresetFile(demoPreset), "infra/presets/"+demoPreset+".json"))
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
