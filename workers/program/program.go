// Package program is the program reprise: the worker and the toolbox for a run's artifacts, one
// file a command. Runs are started, watched, cancelled and inspected with the temporal CLI and
// the Temporal Web UI: reprise never becomes a second way to start one.
package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/stack"
)

// Main is the main function of a program that is reprise, with what the options link: environments and methods of your
// own, without a fork. It runs the command that the arguments name, and exits with its status: 2 if an option cannot be
// linked, as for a name that is taken.
func Main(options ...Option) {
	if err := Link(options...); err != nil {
		fmt.Fprintf(os.Stderr, "%s: this program cannot start: %v\n", stack.ProgramName(), err)
		os.Exit(statusUsage)
	}
	command.Main(root(), status)
}

// status is the program's exit status for an error.
func status(err error) int {
	if errors.Is(err, activities.ErrProgramsDiffer) {
		return statusOtherPrograms
	}
	if errors.Is(err, errMoved) {
		return statusUsage
	}
	return workers.ExitCode(err)
}

// errMoved says that what was asked of this program is asked of another.
var errMoved = errors.New("a command of the measuring tools")

// statusUsage says that the command line was not for this program, or that the program's options do not fit.
const statusUsage = 2

// statusOtherPrograms says that this build lowers other programs than those that were to be
// run again: nothing was compared, and nothing is wrong.
const statusOtherPrograms = 3

func root() *cobra.Command {
	cmd := command.Root("reprise", "train language-model agents as durable workflows, bit for bit", `Reprise trains language-model agents by multi-turn reinforcement learning as
durable Temporal workflows. This program is the worker, and the toolbox for a
run's artifacts. Runs are started with the temporal CLI:

  temporal workflow start --type Train --task-queue reprise \
    --workflow-id bandit-1 --input-file infra/presets/bandit-demo.json`)
	cmd.AddGroup(
		&cobra.Group{ID: "serve", Title: "Serve:"},
		&cobra.Group{ID: "runs", Title: "Look at runs:"},
		&cobra.Group{ID: "tools", Title: "Specs, policies and environments:"},
	)
	cmd.AddCommand(
		grouped("serve", command.Worker(), devCommand(), demoCommand(), codecServerCommand(), doctorCommand(), pluginCommand(), versionCommand())...)
	cmd.AddCommand(grouped("runs", runsCommand(), statusCommand(), watchCommand(), reportCommand(), pagesCommand(), trajectoriesCommand(),
		metricsCommand(), verifyCommand(), replayCommand(), exportCommand(), publishCommand(), duCommand(), rmCommand(), gcCommand())...)
	cmd.AddCommand(grouped("tools", validateCommand(), policyCommand(), envCommand())...)
	for _, name := range []string{"bench", "gpu", "learn", "study"} {
		cmd.AddCommand(moved(name))
	}
	return cmd
}

// moved answers for a command that the program reprise-lab has.
func moved(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("%s is %w: %s-lab %[1]s", name, errMoved, stack.ProgramName())
		},
	}
}

func grouped(id string, cmds ...*cobra.Command) []*cobra.Command {
	for _, c := range cmds {
		c.GroupID = id
	}
	return cmds
}

// printJSON prints a value as one line of JSON without escaping HTML.
func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
