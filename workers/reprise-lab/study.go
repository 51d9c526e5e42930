package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/lab/mechanism"
	"github.com/reprise-rl/reprise/workers/lab/methods"
	"github.com/reprise-rl/reprise/workers/lab/study"
	"github.com/reprise-rl/reprise/workers/stack"
)

func studyCommand() *cobra.Command {
	var o study.Options
	var planted, mechanisms, compared bool
	var tokens int
	var task string
	cmd := &cobra.Command{
		Use:   "study",
		Short: "the echo trap on the bandit: what collapses, and what the detectors see",
		Long: `Runs StarPO with GRPO and with PPO, StarPO-S, and StarPO-S without its selection on
the bandit. The high arm is the better choice (p = 0.25) or the worse one (p = 0.10).
Chance is drawn for each member or, as in RAGEN's code, for a whole group. Every
setting has several seeds. Detectors warn and change nothing.

Each run's record is a line of FOLDER/records.jsonl and not computed again, so that a
study that was interrupted continues, and more seeds can be added: of the same size and
on a device of the same fingerprint, or another --out is asked for at once. Seed 1 of
all settings comes first, then seed 2. Tables and plots are drawn from the records at
the end, and are the same for the same records.

With --planted it plants a collapse instead: Train workflows on their own dev stack,
whose learning rate is raised by knob after iteration 20. It ends with status 1 if a
run does not roll back, or ends worse than it was before. With --planted-supervised the
runs continue without a rollback, and a quarter of an update's rows are imitated.

With --mechanism it trains nothing: it sets every advantage beside the true one on lakes
of 2 x 2, which it enumerates, and prints bias, noise and wrong signs over 1,000 groups.
That takes a second, and no device.

With --methods it compares methods at equal numbers of sampled tokens, those that a search drops
with them, on lakes of eight turns, all from one warm start: ` + strings.Join(methods.Names(methods.Lakes, false), ", ") + `;
and where --only names them ` + strings.Join(methods.Names(methods.Lakes, true), ", ") + `.
Each is tried with two learning rates for a third of --tokens on two seeds, and then trained with the
better one for --tokens on --seeds. The runs are the trials of one Sweep on a dev stack in FOLDER/dev,
where an interrupted study continues. Records, a table with t intervals and a plot are written to
--out; a run with a record is not made again.

With --methods --task smollm2 it compares ` + strings.Join(methods.Names("smollm2", false), ", ") + ` on SmolLM2-135M-Instruct (make pretrained)
and the lakes of smol-frozenlake. There is one learning rate, so none is tried. With --tokens 13000 a run
takes 40 minutes on two cores, as its first iterations let one expect.`,
		Example: `  reprise-lab study
  reprise-lab study --seeds 3 --only 'starpo-s-*'
  reprise-lab study --planted --seeds 3
  reprise-lab study --planted --planted-rate 0.01 --planted-supervised demonstrations
  reprise-lab study --mechanism
  reprise-lab study --methods --only grpo,gigpo
  reprise-lab study --methods --task smollm2 --tokens 13000 --seeds 3 --session-heartbeat 20s`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if mechanisms {
				return mechanism.Run(cmd.Context(), cmd.OutOrStdout())
			}
			if compared {
				of := methods.Options{Worker: o.Worker, Seeds: o.Seeds, Tokens: tokens, Out: o.Out, Only: o.Only, Task: task}
				if !cmd.Flags().Changed("out") {
					of.Out = ".reprise/methods"
					if task != methods.Lakes {
						of.Out += "-" + task
					}
				}
				return methods.Run(cmd.Context(), of, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			if planted {
				recovered, err := study.Plant(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
				if err == nil && !recovered {
					err = command.ErrSilent
				}
				return err
			}
			return study.Run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Seeds, "seeds", 5, "runs of each setting, with the seeds 1, 2, …")
	f.StringVar(&o.Out, "out", ".reprise/study", "where records are kept and tables and plots are written; with --methods .reprise/methods unless given")
	f.StringSliceVar(&o.Only, "only", nil, "settings or patterns of them: "+strings.Join(study.Names(), ", ")+"; with --methods: methods")
	f.IntVar(&o.Size.Iterations, "iterations", 80, "iterations of a run")
	f.IntVar(&o.Size.Layers, "layers", 2, "layers of the starter")
	f.IntVar(&o.Size.Width, "width", 64, "width of the starter")
	f.IntVar(&o.Size.Groups, "groups", 8, "groups of an iteration")
	f.IntVar(&o.Size.GroupSize, "group-size", 16, "members of a group")
	f.Float64Var(&o.Size.LearningRate, "learning-rate", 1e-3, "the policy's learning rate; 0 is that of the presets")
	f.BoolVar(&compared, "methods", false, "compare methods at equal numbers of sampled tokens")
	f.StringVar(&task, "task", methods.Lakes, "with --methods, what they are compared on: "+strings.Join(methods.Tasks, " or "))
	f.IntVar(&tokens, "tokens", 60_000, "with --methods, after how many sampled tokens a run ends")
	f.BoolVar(&mechanisms, "mechanism", false, "compare advantages with the true ones, without training")
	f.BoolVar(&planted, "planted", false, "plant a collapse and let the runs roll back")
	f.Float64Var(&o.Rate, "planted-rate", 0.1, "the learning rate that is set: about a hundred times too high for a starter")
	stack.AddWorkerFlags(f, &o.Worker, 20*time.Second)
	f.StringVar(&o.Supervised, "planted-supervised", "", "continue through the collapse without a rollback, with supervised rows: none, demonstrations or own_successes")
	cmd.MarkFlagsMutuallyExclusive("mechanism", "planted", "methods")
	return cmd
}
