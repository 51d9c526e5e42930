// Command reprise-lab measures: speeds, what learns and what does not, what methods are worth
// beside each other, and what a machine with a GPU computes. A user of runs needs none of it: that
// is the program reprise.
package main

import (
	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/command"
)

func main() { command.Main(root(), workers.ExitCode) }

func root() *cobra.Command {
	cmd := command.Root("reprise-lab", "measure Reprise: speeds, learning, methods, GPUs", `Measures what Reprise is worth, with dev stacks of its own. Runs are made and looked
at with the program reprise.`)
	worker := command.Worker() // those that a measure starts and kills
	worker.Hidden = true
	cmd.AddCommand(benchCommand(), figureCommand(), gpuCommand(), learnCommand(), studyCommand(), worker)
	return cmd
}
