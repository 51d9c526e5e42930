package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/connect"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/live"
	pages "github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
	"github.com/reprise-rl/reprise/workflows"
)

// demoPreset is what a demo runs unless a flag names another preset.
const demoPreset = "bandit-demo"

func demoCommand() *cobra.Command {
	var servers dev.Options
	var worker workers.Options
	var preset string
	var served devPages
	var keys connect.Settings
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "start everything, train a small policy, show what it learned",
		Long: `Starts the dev stack and a worker, starts a preset through the temporal CLI,
shows it live, and ends with what was learned and where everything is. In a
terminal the stack stays up until Ctrl-C, so that the links work. A demo that was
interrupted resumes where it was.`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			servers.Stdout = out
			var err error
			if worker.Codec, err = keys.PayloadCodec(); err != nil {
				return err
			}
			if err := served.listen(cmd.Context(), cmd.Flags()); err != nil {
				return err
			}
			defer served.listener.Close()
			return stack.WithProcess(cmd.Context(), servers, worker, cmd.Flags(), out, func(ctx context.Context, s stack.Served) error {
				return served.serve(ctx, s, func() error {
					devBanner(out, s, live.URL(served.listener))
					return runDemo(ctx, out, s, preset, worker.Device.Plugin)
				})
			})
		},
	}
	servers.AddFlags(cmd.Flags())
	served.addFlag(cmd.Flags())
	stack.AddWorkerFlags(cmd.Flags(), &worker, stack.DevHeartbeat)
	keys.AddCodecFlag(cmd.Flags())
	cmd.Flags().StringVar(&preset, "preset", demoPreset, "which preset to run")
	return cmd
}

func runDemo(ctx context.Context, out io.Writer, on stack.Served, preset, pluginName string) error {
	run, under, err := demoRun(ctx, on.Client, preset)
	if err != nil {
		return err
	}
	if under {
		fmt.Fprintf(out, "\n%s was interrupted: it continues.\n\n", run)
	} else if err := startDemo(ctx, out, on.Stack, run, preset, pluginName); err != nil {
		return err
	}
	fmt.Fprint(out, "The first run of a model on a machine compiles its programs: some ten seconds of quiet at its first step.\n\n")
	began := time.Now()
	w := watch.New(on.Client, run, out, 500*time.Millisecond)
	w.Converter = on.Codec.DataConverter()
	err = w.Follow(ctx)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(out, "\nstopped; the same command continues %s\n", run)
		return nil
	}
	if err != nil {
		return err
	}
	if err := summary(ctx, out, on.Bucket, on.Stack, run, w.Last(), time.Since(began)); err != nil {
		return err
	}
	if human.Terminal(out) != nil {
		fmt.Fprintln(out, "\nThe stack stays up. Ctrl-C ends it.")
		<-ctx.Done()
		return nil
	}
	fmt.Fprintf(out, "\nThe stack stops now, because the output is no terminal. `%s dev` starts it again for these commands.\n", stack.ProgramName())
	return nil
}

// demoRun finds the demo's workflow id: a running demo's, or the first unused one.
func demoRun(ctx context.Context, c client.Client, preset string) (id string, under bool, err error) {
	for n := 1; ; n++ {
		id = fmt.Sprintf("%s-%d", preset, n)
		d, err := c.DescribeWorkflowExecution(ctx, id, "")
		var missing *serviceerror.NotFound
		switch {
		case errors.As(err, &missing):
			return id, false, nil
		case err != nil:
			return "", false, fmt.Errorf("look for %s: %w", id, err)
		case d.WorkflowExecutionInfo.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
			return id, true, nil
		}
	}
}

// startDemo starts the run as a user would, with the temporal CLI. On a card it is one without policy.exact, which is shown for CPUs alone.
func startDemo(ctx context.Context, out io.Writer, servers *dev.Stack, run, preset, pluginName string) error {
	cli, err := dev.TemporalCLI()
	if err != nil {
		return err
	}
	file := stack.PresetFile(preset)
	path, _, found := plugin.Find(pluginName, "")
	onCard := found == nil && plugin.IsCUDA(path)
	if file == "" || onCard {
		text, err := presets.Read(preset)
		if onCard {
			text, err = presets.With(preset, map[string]any{"policy": map[string]any{"exact": false}})
		}
		if err != nil {
			return err
		}
		file = filepath.Join(servers.Dir(), preset+".json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
	}
	args := []string{"workflow", "start", "--type", "Train", "--task-queue", activities.WorkflowQueue,
		"--workflow-id", run, "--input-file", file, "--address", servers.TemporalAddress()}
	fmt.Fprintf(out, "\n$ %s workflow start --type Train --task-queue %s --workflow-id %s --input-file %s%s\n\n",
		stack.TemporalName(), activities.WorkflowQueue, run, file, stack.AddressFlag(servers))
	cmd := exec.CommandContext(ctx, cli, args...)
	cmd.Env = dev.CLIEnvironment()
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("temporal workflow start: %w\n%s", err, text)
	}
	return nil
}

// summary prints the results of the run and where to find them.
func summary(
	ctx context.Context, out io.Writer, s store.Store, servers *dev.Stack, run string, status workflows.Status, took time.Duration,
) error {
	head, err := store.Head(ctx, s, run)
	if err != nil {
		return err
	}
	chain, err := store.LoadChain(ctx, s, head.Ref)
	if err != nil {
		return err
	}
	var success []float64
	for _, link := range chain {
		success = append(success, 100*float64(link.Manifest.Metrics["success/mean"]))
	}
	fmt.Fprintf(out, "\n%s\n\n", asciigraph.Plot(success,
		asciigraph.Height(10), asciigraph.Width(60), asciigraph.LowerBound(0), asciigraph.UpperBound(100),
		asciigraph.Precision(0), asciigraph.Caption("success in training, % of the trajectories of each iteration")))
	if first, last := status.First, status.Last; first != nil && last != nil {
		fmt.Fprintln(out, "Evaluation on the same fixed instances:")
		fmt.Fprintf(out, "  before (version %3d)   success %s   mean reward %s\n", first.Version, watch.Percent(first.Metrics, "success/mean"), watch.Value(first.Metrics, "reward/mean", "%.3f"))
		fmt.Fprintf(out, "  after  (version %3d)   success %s   mean reward %s\n\n", last.Version, watch.Percent(last.Metrics, "success/mean"), watch.Value(last.Metrics, "reward/mean", "%.3f"))
	}
	page := filepath.Join(servers.Dir(), "reports", store.EscapeSegment(run))
	if _, err := pages.Write(ctx, s, run, pages.IntoFolder(page)); err != nil {
		return err
	}
	fmt.Fprintf(out, `%[1]d iterations in %[2]s; every one is committed, named by digest and verifiable.

  Report      %[10]s
  Web UI      %[3]s/namespaces/%[4]s/workflows/%[5]s
  Artifacts   %[6]s
  State       %[7]s

Go on:

  %[8]s verify %[5]s%[11]s                    # walk the digest chain, re-hash every artifact
  %[8]s replay %[5]s --iteration %[9]d%[11]s     # recompute one iteration, compare bits
  %[8]s status %[5]s%[11]s
`, len(chain), took.Round(time.Second), servers.UIURL(), servers.Namespace(), run, s.Location(store.RunDir(run)), status.State,
		stack.ProgramName(), len(chain)/2, filepath.Join(page, "index.html"), stack.DirFlag(servers))
	return nil
}
