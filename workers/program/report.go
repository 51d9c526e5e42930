package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	pages "github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/stack"
)

func reportCommand() *cobra.Command {
	var conn stack.Connection
	var w reportWriter
	cmd := &cobra.Command{
		Use:   "report RUN|SWEEP",
		Short: "make a page of a run or a sweep: curves, evaluations, trajectories",
		Long: `Reads a run from the store and writes its report into a folder: index.html, which
works offline, and beside it the trajectories, which the page loads on demand. The
report of a sweep is one page that compares its settings, with bands across seeds,
and has the table. With --trials each trial's report is written below it, in trials/,
and the table links to them. Nothing is written to the store. Of a running, failed or
partly deleted run the report shows what exists; the page lists what is missing.`,
		Example: `  reprise report bandit-1
  reprise report fig7
  reprise report fig7 --trials --out /tmp/fig7 && xdg-open /tmp/fig7/index.html`,
		Args: oneWorkflow("RUN or SWEEP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := storeOf(cmd.Context(), &conn, args[0], true)
			if err != nil {
				return err
			}
			if w.dir == "" {
				w.dir = "report-" + store.EscapeSegment(args[0])
			}
			w.store, w.out, w.errOut = s, cmd.OutOrStdout(), cmd.ErrOrStderr()
			return w.write(cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVarP(&w.dir, "out", "o", "", "the folder (default: report-ID, here)")
	cmd.Flags().BoolVar(&w.trials, "trials", false, "for a sweep: also write each trial's report, and link to it")
	conn.AddStoreFlags(cmd.Flags())
	return cmd
}

// reportWriter writes reports into a folder.
type reportWriter struct {
	store store.Store
	dir   string
	// trials: write the reports of a sweep's trials too.
	trials bool
	// errOut receives a line per written trial.
	out, errOut io.Writer
}

// write writes the report of a run or a sweep and prints a summary.
func (w reportWriter) write(ctx context.Context, id string) error {
	began := time.Now()
	what := ""
	var summary pages.Summary
	sweep, err := pages.LoadSweep(ctx, w.store, id)
	switch {
	case err == nil:
		what = human.Plural(len(sweep.Trials), "trial") + ", "
		summary, err = w.sweep(ctx, sweep)
	case errors.Is(err, store.ErrNotFound) && w.trials:
		err = fmt.Errorf("--trials is for a sweep: %w", err)
	case errors.Is(err, store.ErrNotFound):
		summary, err = pages.Write(ctx, w.store, id, pages.IntoFolder(w.dir))
	}
	if err != nil {
		return err
	}
	what += human.Plural(summary.Iterations, "iteration") + " on " + branches(summary.Branches)
	if summary.Rollouts > 0 {
		what += ", " + human.Plural(summary.Episodes, "episode")
	}
	fmt.Fprintf(w.out, "%s: %s, %s, in %.1f s\n", what, human.Plural(summary.Files, "file"), human.Bytes(summary.Bytes), time.Since(began).Seconds())
	for _, m := range summary.Missing {
		fmt.Fprintln(w.out, m)
	}
	_, err = fmt.Fprintln(w.out, filepath.Join(w.dir, "index.html"))
	return err
}

// sweep writes a sweep's page, after its trials' reports if they are wanted.
func (w reportWriter) sweep(ctx context.Context, sweep pages.Sweep) (pages.Summary, error) {
	var trials pages.Summary
	if w.trials {
		var err error
		if trials, err = w.eachTrial(ctx, sweep.Trials); err != nil {
			return trials, err
		}
	}
	summary, err := pages.WriteSweep(ctx, sweep, pages.IntoFolder(w.dir))
	summary.Episodes, summary.Rollouts = trials.Episodes, trials.Rollouts
	summary.Files += trials.Files
	summary.Bytes += trials.Bytes
	return summary, err
}

// eachTrial writes the report of each trial that has stored artifacts, sets its page, and
// returns the sums of the summaries.
func (w reportWriter) eachTrial(ctx context.Context, trials []pages.Trial) (pages.Summary, error) {
	var all pages.Summary
	for i := range trials {
		t := &trials[i]
		name := fmt.Sprintf("trial %d of %d, %s", i+1, len(trials), human.Visible(t.Label))
		if t.Run == nil {
			fmt.Fprintf(w.errOut, "%s: nothing is stored of it\n", name)
			continue
		}
		began := time.Now()
		dir := pages.TrialDir(t.Label)
		summary, err := pages.Write(ctx, w.store, t.Run.ID, pages.IntoFolder(filepath.Join(w.dir, filepath.FromSlash(dir))))
		if err != nil {
			return all, fmt.Errorf("trial %q: %w", t.Label, err)
		}
		t.Page = dir + "/index.html"
		all.Episodes += summary.Episodes
		all.Rollouts += summary.Rollouts
		all.Files += summary.Files
		all.Bytes += summary.Bytes
		lacks := ""
		if len(summary.Missing) > 0 {
			lacks = "; its page lists what is missing"
		}
		fmt.Fprintf(w.errOut, "%s: %s, %s, in %.1f s%s\n", name, human.Plural(summary.Iterations, "iteration"), human.Bytes(summary.Bytes), time.Since(began).Seconds(), lacks)
	}
	return all, nil
}

func branches(n int) string {
	if n == 1 {
		return "1 branch"
	}
	return fmt.Sprintf("%d branches", n)
}
