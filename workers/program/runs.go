package program

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/runs"
	"github.com/reprise-rl/reprise/workers/stack"
)

func runsCommand() *cobra.Command {
	var conn stack.Connection
	var wanted runs.Wanted
	var limit int
	var asJSON, builds bool
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "list the runs, sweeps and evaluations of the namespace",
		Long: `Lists the Train, Sweep and Evaluate workflows of the namespace, the newest first:
state, iterations committed, reward and success of the last one, and when it
started or, of one that has ended, when it ended. Of a sweep that has ended it says how
many of its trials did all their iterations, of one that runs how many of those that it
has begun; of an evaluation that has ended what it measured. The trials of sweeps are
left out unless --trials is given. Long ids are shortened; --json has them whole. The
numbers are search attributes: where the namespace
lacks them (reprise doctor), a dash stands for them. Below the list is what those that
run try again, with attempt and last error. With --build it says on which version of the
workers each one runs, as DEPLOYMENT:BUILD (docs/upgrading.md), "unversioned", or a dash
before a worker has decided anything.`,
		Example: `  reprise runs
  reprise runs --query 'RepriseSuccess > 0.5' --limit 0
  reprise runs --trials --query "RepriseSweep = 'fig7'"
  reprise runs --build --query "TemporalWorkerDeploymentVersion = 'reprise:v1'"
  reprise runs --json | jq -r '.[] | select(.state == "failed") | .id'`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, by, err := conn.TemporalDecoded(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			all, err := runs.List(cmd.Context(), c, wanted)
			if err != nil {
				return err
			}
			left := 0
			if limit > 0 && len(all) > limit {
				left, all = len(all)-limit, all[:limit]
			}
			runs.AddOutcomes(cmd.Context(), c, all)
			if err := runs.AddPending(cmd.Context(), c, all, by); err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			if len(all) == 0 && wanted.Query != "" {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "No run matches the query.")
				return err
			}
			return printRuns(cmd.OutOrStdout(), all, left, builds)
		},
	}
	cmd.Flags().BoolVar(&wanted.Trials, "trials", false, "list the trials of sweeps too")
	cmd.Flags().StringVar(&wanted.Query, "query", "", "a further condition, as temporal workflow list takes it")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many are listed (0: all)")
	cmd.Flags().BoolVar(&builds, "build", false, "say on which build each one runs (--json always does)")
	command.WrittenOnly(cmd.Flags(), "build") // a worker's --build is another
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	conn.AddTemporalFlags(cmd.Flags())
	return cmd
}

// printRuns prints a table of runs, with their builds where wanted, and how many older ones are left out.
func printRuns(out io.Writer, all []runs.Run, left int, builds bool) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "No runs. Start one: temporal workflow start --type Train --task-queue reprise --workflow-id bandit-1 --input-file infra/presets/bandit-demo.json")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	column := ""
	if builds {
		column = "build\t"
	}
	fmt.Fprintf(w, "id\tkind\tstate\t%siterations\treward\tsuccess\tsince\n", column)
	for _, r := range all {
		iterations := runs.Count(r.Iterations)
		if r.Trials != nil {
			iterations = r.Trials.String()
		}
		if builds {
			column = cmp.Or(human.Visible(r.Build), "–") + "\t"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\t%s\t%s\t%s\n", human.Middle(human.Visible(r.ID), maxID), r.Kind, r.State, column, iterations,
			runs.Number(r.Reward), runs.Percent(r.Success), r.Since().Local().Format(time.DateTime))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range all {
		if r.Pending == nil {
			continue
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", human.Visible(r.ID), clipped(r.Pending.String())); err != nil {
			return err
		}
	}
	if left > 0 {
		_, err := fmt.Fprintf(out, "%d older ones are left out (--limit 0 lists all)\n", left)
		return err
	}
	return nil
}

// maxID is the longest id that the list shows whole: every line is as long as the longest.
const maxID = 90

// maxLine is about how much of an error has room in a line of the list; status has all of it.
const maxLine = 200

// clipped is the beginning of a long text.
func clipped(text string) string {
	if runes := []rune(text); len(runes) > maxLine {
		return string(runes[:maxLine]) + "…"
	}
	return text
}
