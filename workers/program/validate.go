package program

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/validate"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func validateCommand() *cobra.Command {
	var asJSON, evaluate, sweeps, summary bool
	var card string
	var devices int
	var conn stack.Connection
	var ask workers.Options
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "check a spec, a sweep or an evaluation's input, and print what follows from it",
		Long: `Checks a spec as the start of a run does. It prints every problem at once (status 1),
or the resolved spec with all defaults and the numbers that follow from it:
trajectories and tokens an iteration, actions that Temporal Cloud bills, device memory,
bytes to S3. "-" reads standard input. The numbers that need the model are given for
the starter, for a folder on this machine, and for names of Qwen2.5, Qwen3 and Llama 3 on the hub.

--card 80GB compares the peak with the memory of a device, names the host's memory and
the seconds to load, and says which changes make it fit if it does not (status 1). With a
sweep it does so for each trial. 1 GB is 10^9 bytes, 1 GiB is 2^30.

--devices 8 says what a spec's run has of so many devices of one process: the memory of the
first and of the others, the rounds in which blocks, micro-batches and shards are dealt,
what that gains at most, and which devices have nothing to do (docs/operations.md).

--card h100 computes the seconds of an iteration of a spec and what a preemption costs as
well, from data sheets and public measurements; --card FILE.json does so with figures of
your own (docs/many-devices.md).

A foreign environment describes itself at the start of a run. --env-process asks it here, so that widths, memory
and bytes are known.

A sweep is expanded: each trial's spec is checked, and the trials are listed. A
document with base, grid, list, random or seeds is a sweep; --sweep makes any other
document one.

With --evaluate it checks the input of an Evaluate workflow, and prints it with its
suites complete. It looks up a run's policy in the store, if a store is set and
answers. Nothing is written.`,
		Example: `  reprise validate infra/presets/bandit-demo.json
  reprise validate infra/presets/bandit-demo.json --summary
  jq '.iterations = 5' infra/presets/bandit-demo.json | reprise validate -
  reprise validate infra/presets/fig7-filter.json
  reprise validate infra/presets/fig7-filter.json --card 80GB
  reprise validate infra/presets/chaos-devices.json --summary --devices 4
  reprise validate docs/devices/qwen2.5-0.5b.json --summary --devices 8 --card h100
  reprise validate docs/own/lights.json --summary --env-process lights=./docs/own/lights.py
  reprise validate --evaluate evaluation.json
  echo '{"policy": "bandit-1", "suites": ["bandit-test"]}' | reprise validate --evaluate -`,
		Args: one("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := readSpec(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			var bytes int64
			var figures *validate.Figures
			if card != "" {
				if bytes, figures, err = validate.ReadCard(card); err != nil {
					return err
				}
				if evaluate {
					return fmt.Errorf("--card is for specs and sweeps, not with --evaluate")
				}
			}
			several := cmd.Flags().Changed("devices")
			if several && (devices < 1 || devices > validate.MaxDevices) {
				return fmt.Errorf("--devices is %d: give a number from 1 to %d", devices, validate.MaxDevices)
			}
			if several && (evaluate || sweeps || validate.IsSweep(b)) {
				return fmt.Errorf("--devices is for specs: give it with a trial's spec, not with a sweep or --evaluate")
			}
			var describe validate.Describe
			if len(ask.EnvProcesses)+len(ask.EnvOpenEnv)+len(ask.ToolServers.MCP) > 0 {
				if evaluate {
					return fmt.Errorf("--env-process, --env-openenv and --mcp are for specs and sweeps, not with --evaluate")
				}
				if bytes == 0 && (sweeps || validate.IsSweep(b)) {
					return fmt.Errorf("--env-process, --env-openenv and --mcp: a sweep has no numbers without --card")
				}
				asked, end, err := ask.Describer()
				if err != nil {
					return err
				}
				defer end()
				describe = func(t spec.Train) (spec.Train, error) { return asked(cmd.Context(), t) }
			}
			var v validate.Result
			switch {
			case evaluate:
				v, err = validate.CheckEvaluation(cmd.Context(), b, conn.Store)
			case sweeps || validate.IsSweep(b):
				v, err = validate.CheckSweep(b, bytes, describe)
			default:
				v, err = validate.CheckTrain(b, validate.Machine{Card: bytes, Devices: devices, Figures: figures}, describe)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			switch {
			case asJSON:
				err = printJSON(cmd.OutOrStdout(), v)
			case summary:
				err = validate.Summarize(cmd.OutOrStdout(), args[0], v)
			default:
				err = validate.Print(cmd.OutOrStdout(), args[0], v)
			}
			if err == nil && (!v.Sound() || !v.Fits()) {
				err = command.ErrSilent
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&summary, "summary", false, "print the numbers alone, without the resolved spec")
	cmd.Flags().StringVar(&card, "card", "", "the device that the run must fit: its memory, such as 80GB or 24GiB; h100; or a file of figures, FILE.json")
	cmd.Flags().IntVar(&devices, "devices", 0, "say what the run has of `N` devices of one process")
	cmd.Flags().StringArrayVar(&ask.EnvProcesses, "env-process", nil, "`NAME=COMMAND` of a foreign environment that is asked to describe itself; may be repeated")
	cmd.Flags().StringArrayVar(&ask.EnvOpenEnv, "env-openenv", nil, "`NAME=URL` of an environment of OpenEnv's that is asked to describe itself; may be repeated")
	stack.AddToolFlags(cmd.Flags(), &ask.ToolServers, " and that is asked to describe them")
	cmd.Flags().BoolVar(&sweeps, "sweep", false, "FILE is a sweep")
	cmd.Flags().BoolVar(&evaluate, "evaluate", false, "FILE is the input of an Evaluate workflow")
	conn.AddStoreFlags(cmd.Flags())
	return cmd
}

// readSpec reads a spec's text, at most one byte more than allowed: the check reports it.
func readSpec(in io.Reader, name string) ([]byte, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read spec: %w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, spec.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read spec %s: %w", name, err)
	}
	return b, nil
}
