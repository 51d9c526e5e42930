package program

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/train"
)

const (
	// maxTriedGroups bounds the groups of a trial; a spec has at most as many.
	maxTriedGroups = 4096
	// maxTriedReplies bounds the replies that are printed.
	maxTriedReplies = 65536
)

func tryCommand() *cobra.Command {
	var options model.DeviceOptions
	var asJSON, without bool
	var how train.TryOptions
	cmd := &cobra.Command{
		Use:   "try SPEC",
		Short: "sample a spec's policy before it is trained",
		Long: `Plays some groups of a spec's rollout with the policy that the run would begin with, in
this process: no Temporal server and no bucket is asked. It prints the shares of
trajectories that are valid, that succeed and that the length limit cut, the mean length of
a reply, and some replies. If the spec has a warm start, the policy is tried twice: without
it, and then with it. "-" reads standard input.

--greedy selects the likeliest token at each place in place of sampling. --json has the ids
of each reply's trajectory, turn by turn: the context that the policy was given, and what it
replied. infra/pretrained/beside.py compares them with transformers'.

Rows are sampled in passes, without a search, so they are not the first rollout of the
run bit for bit. Progress goes to standard error.`,
		Example: `  reprise policy try infra/presets/bandit-demo.json
  jq '.policy.from = "folder:model"' spec.json | reprise policy try - --groups 2
  reprise policy try spec.json --without-warm-start --greedy --groups 64 --replies 64 --json`,
		Args: one("SPEC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if how.Groups < 1 || how.Groups > maxTriedGroups {
				return fmt.Errorf("--groups is %d: give a number from 1 to %d", how.Groups, maxTriedGroups)
			}
			if how.Replies < 0 || how.Replies > maxTriedReplies {
				return fmt.Errorf("--replies is %d: give a number from 0 to %d", how.Replies, maxTriedReplies)
			}
			text, err := readSpec(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			opened, err := model.OpenDevice(options)
			if err != nil {
				return err
			}
			defer opened.Close()
			engine, err := device.NewEngine(opened)
			if err != nil {
				return err
			}
			begun := time.Now()
			say := func(line string) { fmt.Fprintf(cmd.ErrOrStderr(), "%5.1f s  %s\n", time.Since(begun).Seconds(), line) }
			trial, err := train.New(engine, store.NewMemory()).Try(cmd.Context(), text, how, say)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			steps := []int{0}
			if n := trial.WarmStart(); n > 0 && !without {
				steps = append(steps, n)
			}
			out := []train.Tried{}
			for _, n := range steps {
				tried, err := trial.Sample(cmd.Context(), n)
				if err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				if out = append(out, tried); !asJSON {
					printTried(cmd.OutOrStdout(), tried)
				}
			}
			say("done")
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"tried": out})
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&how.Groups, "groups", 4, "the most groups that are sampled")
	cmd.Flags().IntVar(&how.Replies, "replies", 3, "the most replies that are printed")
	cmd.Flags().BoolVar(&how.Greedy, "greedy", false, "select the likeliest token in place of sampling at rollout.temperature")
	cmd.Flags().BoolVar(&without, "without-warm-start", false, "leave out the policy after the warm start")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	stack.AddDeviceFlags(cmd.Flags(), &options, "")
	return cmd
}

// printTried prints what a policy says.
func printTried(out io.Writer, t train.Tried) {
	head := "without a warm start"
	if t.WarmStart > 0 {
		head = fmt.Sprintf("after a warm start of %d steps", t.WarmStart)
	}
	fmt.Fprintf(out, "%s: %d trajectories of %d groups, %.1f turns each\n", head, t.Trajectories, t.Groups, t.Turns)
	fmt.Fprintf(out, "  valid %.1f %%   success %.1f %%   cut %.1f %%   %.1f tokens a reply\n", 100*t.Valid, 100*t.Success, 100*t.Truncated, t.Tokens)
	for _, r := range t.Replies {
		what := "not valid"
		if r.Valid {
			what = "valid"
		}
		if r.Truncated {
			what += ", cut"
		}
		fmt.Fprintf(out, "\n  %s\n    %s\n", indent(r.Prompt, "  "), indent(r.Reply, "    "))
		fmt.Fprintf(out, "  [%s, %d tokens, actions: %s]\n", what, r.Tokens, strings.Join(r.Actions, " || "))
	}
	fmt.Fprintln(out)
}

// indent indents all lines of a text but the first.
func indent(text, by string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }
