package main

import (
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/workers/measure/learn"
	"github.com/reprise-rl/reprise/workers/stack"
)

func learnCommand() *cobra.Command {
	var o learn.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "learn",
		Short: "check that policies learn the right thing: bandit, FrozenLake, Sokoban, WebShop, roles, rewards, three seeds each",
		Long: `Trains in several settings with three seeds each, as Train workflows on its own dev
stack, and measures the success on fixed instances before and after. A second table
has the success of the episodes sampled during the short runs, and a third the metrics
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
  rewards in parts (reward-NAME)           the part's metric ends in a range that it does not
                                           reach unpaid; reward-NAME-unpaid measures the part
                                           and does not pay it, to compare

With --dir the stack's data is kept, and interrupted runs resume.`,
		Example: `  reprise learn
  reprise learn --seeds 1 --only p25-keep25
  reprise learn --only sokoban
  reprise learn --only reward-gamed
  reprise learn --dir .reprise/learn --json`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			results, err := learn.Run(cmd.Context(), o, cmd.ErrOrStderr())
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
						return errSilent
					}
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "", "keep the stack's data in this folder (default: nothing is kept)")
	f.IntVar(&o.Seeds, "seeds", 3, "runs of each setting, with the seeds 1, 2, …")
	f.StringVar(&o.Only, "only", "", "only this setting: "+learn.Names())
	f.BoolVar(&asJSON, "json", false, "print JSON")
	// Nothing is killed here: a busy machine should not look like a lost one.
	stack.AddWorkerFlags(f, &o.Worker, 20*time.Second)
	return cmd
}
