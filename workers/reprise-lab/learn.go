package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/lab/learn"
	"github.com/reprise-rl/reprise/workers/stack"
)

func learnCommand() *cobra.Command {
	var o learn.KilledOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "learn",
		Short: "check that policies learn the right thing: bandit, FrozenLake, Sokoban, WebShop, roles, a published model, rewards, three seeds each",
		Long: `Trains in several settings with three seeds each, as Train workflows on its own dev
stack, and measures the success on fixed instances before and after. A second table
has the success of the episodes sampled during the runs, and a third the metrics
that parts of a reward are about. It ends with status 1 if a promise is broken. The bandit's high arm pays 1 with probability p,
the low arm 0.15 for certain, and success is the share of the high arm:

  p = 0.25, a quarter of the groups kept   from 35–65 % to at least 90 %
  p = 0.25, all groups                     the same
  p = 0.10, all groups                     to at most 20 %: the low arm pays more
  p = 0.10, a quarter kept                 no promise: selection by the standard
                                           deviation of rewards favours risk
  p = 0.25, all groups, advantages         no promise: a group without a win counts
  divided by the group's std               as much as a group with wins
  p = 0.25, a quarter kept, adapters       from 35–65 % to at least 90 % by iteration 20
  FrozenLake, Sokoban (several turns)      success rises by 3 standard errors
  WebShop's starter shop                   the same, and success comes a third of the way
                                           from random to best play
  a lake for two, by Dr. MAS               rises by 3 standard errors
  a lake for two, by GRPO                  no promise: to compare
  programs (code-starter)                  the same, on functions that are not trained on
  questions and a search (lookup-starter)  the same, about people that are not trained on;
                                           lookup-starter-alone has no search, to compare
  programs by distillation (code-distill)  the same: the run of seed 1 before it teaches
  SmolLM2-135M on the bandit, all weights  success rises by 3 standard errors; the model is the
  or adapters, and on 32 lakes             one of make pretrained
  rewards in parts (reward-NAME)           the part's metric ends in a range that it does not
                                           reach unpaid; reward-NAME-unpaid measures the part
                                           and does not pay it, to compare

With --dir the stack's data and a record of each run that has ended are kept: what was
interrupted resumes, and what has ended is not trained again.

With --killed N the setting of --only is trained twice, with the seed 1: undisturbed, and with
its worker killed N times by SIGKILL, in Generate, Update, Snapshot, Commit and Restore in turn.
Each kill must have left its mark in the run's history. Both curves go to killed.json, and a
picture of them to killed.svg, in the folder of --out. It ends with status 1 if a state
fingerprint differs.`,
		Example: `  reprise-lab learn
  reprise-lab learn --seeds 1 --only p25-keep25
  reprise-lab learn --only code-starter,code-distill
  reprise-lab learn --only reward-gamed
  reprise-lab learn --dir .reprise/learn --json
  reprise-lab learn --only smol-bandit --killed 9`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("killed") {
				return learnKilled(cmd, o, asJSON)
			}
			results, err := learn.Run(cmd.Context(), o.Options, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(results)
			} else {
				err = learn.Print(cmd.OutOrStdout(), results)
			}
			if err != nil {
				return err
			}
			for _, t := range results {
				for _, r := range t.Runs {
					if r.Broken != "" {
						return command.ErrSilent
					}
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "", "keep the stack's data in this folder (default: nothing is kept)")
	f.IntVar(&o.Seeds, "seeds", 3, "runs of each setting, with the seeds 1, 2, …")
	f.StringVar(&o.Only, "only", "", "only these settings, with commas between them: "+learn.Names())
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.IntVar(&o.Kills, "killed", 0, "train the setting of --only undisturbed and with so many kills of its worker")
	f.StringVar(&o.Out, "out", filepath.Join("docs", "learning"), "with --killed: the folder of killed.json and killed.svg")
	// A busy machine should not look like a lost one.
	stack.AddWorkerFlags(f, &o.Worker, 20*time.Second)
	return cmd
}

// learnKilled trains undisturbed and killed, and fails if the two differ.
func learnKilled(cmd *cobra.Command, o learn.KilledOptions, asJSON bool) error {
	killed, err := learn.RunKilled(cmd.Context(), o, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(killed)
	} else {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\nwritten: %s, %s\n", killed,
			filepath.Join(o.Out, learn.KilledFile), filepath.Join(o.Out, learn.PictureFile))
	}
	if err == nil && !killed.Equal {
		err = command.ErrSilent
	}
	return err
}
