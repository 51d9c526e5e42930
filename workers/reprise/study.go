package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/workers/measure/study"
	"github.com/reprise-rl/reprise/workers/stack"
)

func studyCommand() *cobra.Command {
	var o study.Options
	var planted bool
	cmd := &cobra.Command{
		Use:   "study",
		Short: "the echo trap on the bandit: what collapses, and what the detectors see",
		Long: `Runs StarPO with GRPO and with PPO, StarPO-S, and StarPO-S without its selection
on the bandit, at a high arm that is the better choice (p = 0.25) and at one that
is not (p = 0.10), with chance drawn for each member and, as in RAGEN's code, for a
whole group; every setting with several seeds. Detectors warn and change nothing.

Each run's record is kept in FOLDER/runs and not computed again, so that a study
that was interrupted goes on, and more seeds can be added: of the same size and on a
device of the same fingerprint, or another --out is asked for at once. Seed 1 of all
settings comes first, then seed 2. What is made of the records, tables, curves and
plots, is written at the end, and is the same for the same records.

With --planted a collapse is planted instead: runs whose learning rate is raised
after iteration 20, by knob, as Train workflows on a dev stack of their own. It ends
with status 1 where a run does not go back, or ends worse than it was before.`,
		Example: `  reprise study
  reprise study --seeds 3 --only 'starpo-s-*'
  reprise study --planted --seeds 3`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if planted {
				recovered, err := study.Plant(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
				if err == nil && !recovered {
					err = errSilent
				}
				return err
			}
			return study.Run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Seeds, "seeds", 5, "runs of each setting, with the seeds 1, 2, …")
	f.StringVar(&o.Out, "out", ".reprise/study", "where records are kept and tables and plots are written")
	f.StringSliceVar(&o.Only, "only", nil, "settings or patterns of them: "+strings.Join(study.Names(), ", "))
	f.IntVar(&o.Size.Iterations, "iterations", 80, "iterations of a run")
	f.IntVar(&o.Size.Layers, "layers", 2, "layers of the starter")
	f.IntVar(&o.Size.Width, "width", 64, "width of the starter")
	f.IntVar(&o.Size.Groups, "groups", 8, "groups of an iteration")
	f.IntVar(&o.Size.GroupSize, "group-size", 16, "members of a group")
	f.Float64Var(&o.Size.LearningRate, "learning-rate", 1e-3, "the policy's learning rate; 0 is the presets'")
	f.BoolVar(&planted, "planted", false, "plant a collapse and go back")
	f.Float64Var(&o.Rate, "planted-rate", 0.1, "the learning rate that is set: some hundred times what a starter stands")
	stack.AddWorkerFlags(f, &o.Worker, 20*time.Second)
	return cmd
}
