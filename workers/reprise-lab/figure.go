package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/build"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/lab/figures"
)

func figureCommand() *cobra.Command {
	var o figures.Options
	var file string
	var stale bool
	cmd := &cobra.Command{
		Use:   "figure [ID ...]",
		Short: "measure numbers of README and docs again, or list them",
		Long: `Each measured number of README.md and docs is a row of ` + figures.File + `: id, value,
interval, unit, the command that prints it, where it stands in the command's JSON (read),
date, commit, numerics, and processor or card. This command runs the commands of the named
rows, each once, and writes what they measured into the rows; go generate ./docs then
writes it into the pages. An ID may be a pattern: 'report/*'.

Without an ID it lists the rows. Those that were measured before the last raise of numerics
say so, and have a † in the pages.

A new figure is a row with id, command and read. A row without a read is read by a person.
What was measured on another machine is taken from the JSON printed there, with --from.`,
		Example: `  reprise-lab figure
  reprise-lab figure --stale
  reprise-lab figure report/memory
  reprise-lab figure 'speed/smollm2/*/tokens'
  reprise-lab figure 'gpu/h100/*/0.5b-bfloat16' --from results/gpu.json --machine 'NVIDIA H100 80GB HBM3'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := readFigures(file)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return figures.List(cmd.OutOrStdout(), all, model.Numerics, stale)
			}
			o.IDs = args
			if o.Program, err = os.Executable(); err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			save := func(measured []figures.Figure) error {
				now, err := readFigures(file)
				if err != nil {
					return err
				}
				return os.WriteFile(file, figures.Encode(figures.Replace(now, measured)), 0o644)
			}
			return figures.Refresh(cmd.Context(), all, o, measuredBuild(), save, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
		Args: cobra.ArbitraryArgs,
	}
	f := cmd.Flags()
	f.StringVar(&file, "file", figures.File, "the file of the rows")
	f.StringVar(&o.From, "from", "", "do not run the command: its JSON, printed by this build, is in this file")
	f.StringVar(&o.Machine, "machine", "", "the processor or card that was measured (default: this machine's processor)")
	f.BoolVar(&stale, "stale", false, "list the rows of older numerics alone")
	return cmd
}

// readFigures reads a file of rows.
func readFigures(file string) ([]figures.Figure, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := figures.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// measuredBuild is this program, as a row tells it.
func measuredBuild() figures.Build {
	b := build.Read()
	commit := b.Commit[:min(12, len(b.Commit))]
	if commit == "" {
		commit = "unknown"
	}
	if b.Modified {
		commit += ", modified"
	}
	return figures.Build{Commit: commit, Numerics: model.Numerics}
}
