package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/stack"
)

// needs says which programs an iteration needs, where this build lowers others.
func needs(run string, r workers.Replay, err error) error {
	var differ *activities.ProgramsDiffer
	if !errors.As(err, &differ) {
		return err
	}
	text := fmt.Sprintf("iteration %d of branch %d of %s needs other programs than this build lowers, with fingerprint %s:", r.Iteration, r.Branch, run, r.Wanted)
	for _, p := range differ.Programs {
		text += fmt.Sprintf("\n  %s: needed %s, this build's %s", p.Name, p.Recorded, p.Present)
	}
	return fmt.Errorf("%s\nreplay it with the build that began the branch: %w", text, activities.ErrProgramsDiffer)
}

func replayCommand() *cobra.Command {
	var conn stack.Connection
	var options model.DeviceOptions
	var asJSON bool
	iteration := -1
	cmd := &cobra.Command{
		Use:   "replay RUN --iteration N",
		Short: "recompute one iteration and compare bits",
		Long: `Computes a committed iteration again on this machine's device, from its recorded
inputs, and compares every artifact and state with the recorded ones. Nothing is
written. The policy is rebuilt from the newest snapshot before it and the recorded
updates since.

The exit status is 1 if anything differs, and 3 if this build lowers other programs
than the iteration was computed with: then it says which, and compares nothing.`,
		Example: `  reprise replay bandit-1 --iteration 12`,
		Args:    oneWorkflow("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if iteration < 0 {
				return fmt.Errorf("--iteration N says which iteration, counted from 0")
			}
			s, err := conn.Store()
			if err != nil {
				return err
			}
			if err := committed(cmd.Context(), s, args[0], iteration); err != nil {
				return err
			}
			device, err := model.OpenDevice(options)
			if err != nil {
				return err
			}
			defer device.Close()
			r, err := workers.ReplayIteration(cmd.Context(), s, device, args[0], iteration, func(line string) {
				fmt.Fprintln(cmd.ErrOrStderr(), line)
			})
			if err != nil {
				return needs(args[0], r, err)
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				if err := json.NewEncoder(out).Encode(r); err != nil {
					return err
				}
			case r.Same():
				fmt.Fprintf(out, "iteration %d of %s is the same, bit for bit: manifest %s\n", iteration, args[0], r.Recorded)
			default:
				fmt.Fprintf(out, "iteration %d of %s differs: recorded %s, computed %s\n", iteration, args[0], r.Recorded, r.Computed)
				for _, d := range r.Differences {
					fmt.Fprintln(out, "  "+d)
				}
			}
			if !r.Same() {
				return errSilent
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&iteration, "iteration", -1, "the iteration, counted from 0")
	stack.AddDeviceFlags(cmd.Flags(), &options, ", as the run's worker had them")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	conn.AddTemporalFlags(cmd.Flags())
	return cmd
}
