package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/build"
	"github.com/reprise-rl/reprise/infra/pretrained"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/lab/gpu"
	"github.com/reprise-rl/reprise/workers/stack"
)

func gpuCommand() *cobra.Command {
	var o gpu.Options
	var child, scratch string
	cmd := &cobra.Command{
		Use:   "gpu",
		Short: "find out what a machine with a GPU computes, and how fast",
		Long: `Runs what a GPU has to be asked first, in the order of what it is worth, each part in
a process of its own with a limit of time: what the device is and which libraries it
loaded; an update and a generation twice; log-probs beside goldens; a run trained twice;
the speed of single operations; the shapes of Qwen2.5-0.5B and 1.5B with random weights
(tokens a second, MFU, memory beside what validate computes, compile times); durable runs
whose worker is killed, one of 0.5B among them; kernels chosen by their time. Two parts
train SmolLM2-135M-Instruct: smol-bandit and smol-frozenlake, 200 iterations of 8 groups
of 16, undisturbed and with the worker killed five times, the states compared after each
iteration. They end within --limit with what they have, in PART.json; called again with
the same --out and --keep they go on.

Whatever fails is a line of the summary. After each part the folder --out has all that is
known, in ` + gpu.ReportFile + ` and ` + gpu.SummaryFile + `. The exit status is 1 if a part failed.

The parts are ` + strings.Join(gpu.Parts(), ", ") + `.`,
		Example: `  reprise-lab gpu --plugin cuda13 --out results
  reprise-lab gpu --plugin cuda13 --out results --part device,self-test,goldens
  reprise-lab gpu --plugin cuda13 --part smol-bandit,smol-frozenlake --model smol.gguf.0,smol.gguf.1 --limit 9m
  reprise-lab gpu --tiny --out results        # on a CPU: only that the parts work`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if child != "" {
				return gpu.Measure(cmd.Context(), child, scratch, o, cmd.OutOrStdout())
			}
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			o.Program, o.Arguments = program, []string{"gpu"}
			report, err := gpu.Run(cmd.Context(), o, build.Read().String(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			gpu.Print(cmd.OutOrStdout(), report)
			if report.Failed() {
				return command.ErrSilent
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Out, "out", "gpu-results", "folder of the results")
	f.StringSliceVar(&o.Parts, "part", nil, "which parts are run (default: all)")
	f.BoolVar(&o.Tiny, "tiny", false, "at sizes for a CPU: shows that the parts work, and nothing about speed")
	f.DurationVar(&o.Limit, "limit", time.Hour, "time for all parts; each has a limit of its own besides")
	f.StringVar(&o.Keep, "keep", "", "folder of what is kept for a later call: the model, compiled programs, runs that go on (default: kept in --out)")
	f.StringSliceVar(&o.Model, "model", nil, "SmolLM2-135M-Instruct: its folder, or its GGUF `FILE` or the wheel with it, whole or in parts in their order (default: "+
		pretrained.Folder+")")
	f.StringSliceVar(&o.Goldens, "goldens", []string{"model/testdata"}, "folders of goldens")
	command.WrittenOnly(f, "goldens") // tests read another REPRISE_GOLDENS
	f.StringVar(&child, "child", "", "run one part in this process")
	f.StringVar(&scratch, "scratch", "", "folder for files between parts")
	_ = f.MarkHidden("child")
	_ = f.MarkHidden("scratch")
	stack.AddWorkerFlags(f, &o.Worker, 5*time.Second)
	return cmd
}
