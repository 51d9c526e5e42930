package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/command"
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

// askAgain asks the environments of the flags again.
func askAgain(
	ctx context.Context, s store.Store, conn stack.Connection, o workers.Options, run string, iteration int,
) ([]host.Drift, int, error) {
	if len(o.EnvTemporal) > 0 {
		c, err := conn.Temporal(ctx)
		if err != nil {
			return nil, 0, err
		}
		defer c.Close()
		o.Client = c
	}
	return workers.AskAgain(ctx, s, o, run, iteration)
}

// shownDrifts is how many drifts are printed.
const shownDrifts = 20

// printDrifts prints what environments answered otherwise.
func printDrifts(out io.Writer, drifts []host.Drift, compared int) {
	if len(drifts) == 0 {
		fmt.Fprintf(out, "the environments and tools give the same %d answers again\n", compared)
		return
	}
	fmt.Fprintf(out, "the environments answer otherwise now in %d episodes (%d answers compared):\n", len(drifts), compared)
	for _, d := range drifts[:min(len(drifts), shownDrifts)] {
		fmt.Fprintln(out, "  "+d.String())
	}
	if more := len(drifts) - shownDrifts; more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
}

func replayCommand() *cobra.Command {
	var conn stack.Connection
	var options model.DeviceOptions
	var asJSON, tools bool
	var again workers.Options
	iteration := -1
	cmd := &cobra.Command{
		Use:   "replay RUN --iteration N",
		Short: "recompute one iteration and compare bits",
		Long: `Computes a committed iteration again on this machine's device, from its recorded
inputs, and compares every artifact and state with the recorded ones. Nothing is
written. The policy is rebuilt from the newest snapshot before it and the recorded
updates since.

The answers of foreign environments are taken from the record. With --env-process,
--env-temporal or --env-openenv the environments are also asked again, and every answer that they give
otherwise now is shown with its turn and episode. So are the answers of tools, with --tools those of this
program's own, and with --mcp those of MCP servers too; and with --judge those of a language model that judges.

The exit status is 1 if anything differs, and 3 if this build lowers other programs
than the iteration was computed with: then it says which, and compares nothing.`,
		Example: `  reprise replay bandit-1 --iteration 12
  reprise replay guess-1 --iteration 12 --env-process guess=./guess.py`,
		Args: oneWorkflow("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if iteration < 0 {
				return fmt.Errorf("--iteration N says which iteration, counted from 0")
			}
			s, err := storeOf(cmd.Context(), &conn, args[0], false)
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
			var drifts []host.Drift
			compared := 0
			asked := len(again.EnvProcesses) + len(again.EnvTemporal) + len(again.EnvOpenEnv)
			if tools || asked+len(again.ToolServers.MCP)+len(again.Judges.Judges) > 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "asking the environments, the tools and the judge again")
				if drifts, compared, err = askAgain(cmd.Context(), s, conn, again, args[0], iteration); err != nil {
					return err
				}
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				if err := json.NewEncoder(out).Encode(struct {
					workers.Replay
					Compared int          `json:"answers_compared,omitempty"`
					Drift    []host.Drift `json:"drift,omitempty"`
				}{r, compared, drifts}); err != nil {
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
			if !asJSON && compared > 0 {
				printDrifts(out, drifts, compared)
			}
			if !r.Same() || len(drifts) > 0 {
				return command.ErrSilent
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&again.EnvProcesses, "env-process", nil, "`NAME=COMMAND` of a foreign environment that is asked again; may be repeated")
	cmd.Flags().StringArrayVar(&again.EnvTemporal, "env-temporal", nil, "`NAME` of a foreign environment that is asked again over Temporal's queue reprise-env.NAME; may be repeated")
	cmd.Flags().StringArrayVar(&again.EnvOpenEnv, "env-openenv", nil, "`NAME=URL` of an environment of OpenEnv's that is asked again; may be repeated")
	cmd.Flags().BoolVar(&tools, "tools", false, "ask the tools of this program again, those that run programs too; --mcp asks the servers")
	stack.AddToolFlags(cmd.Flags(), &again.ToolServers, " and that is asked again")
	stack.AddJudgeFlags(cmd.Flags(), &again.Judges, "that judges episodes and is asked again")
	cmd.Flags().IntVar(&iteration, "iteration", -1, "the iteration, counted from 0")
	stack.AddDeviceFlags(cmd.Flags(), &options, ", as the run's worker had them")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	conn.AddTemporalFlags(cmd.Flags())
	return cmd
}
