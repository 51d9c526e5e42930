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
		Use:   "report RUN|SWEEP [RUN|SWEEP …]",
		Short: "make a page of a run or a sweep, or one that compares runs",
		Long: `Reads a run from the store and writes its report into a folder: index.html, which
works offline, and beside it the trajectories, which the page loads on demand. The
report of a sweep is one page that compares its settings and has the table. With
--trials each trial's report is written below it, in trials/, and the table links to
them. Of a running, failed or partly deleted run the report shows what exists; the
page lists what is missing.

Of several runs the report is one page that compares them, with the first one as the
reference: what their resolved specs differ in, their curves over each other,
evaluations with intervals, differences and costs. Runs that differ in the seed alone
are one setting, and settings are compared seed by seed. A sweep's id stands for its
trials.

Nothing is written to the store. With --json the page's numbers are printed, and no
page is written.`,
		Example: `  reprise report bandit-1
  reprise report fig7
  reprise report fig7 --trials --out /tmp/fig7 && xdg-open /tmp/fig7/index.html
  reprise report base-1 base-2 base-3 new-1 new-2 new-3
  reprise report base new --json | jq '.settings[1].differences'`,
		Args: someWorkflows("RUN or SWEEP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := conn.Store()
			if err != nil {
				return err
			}
			for _, id := range args {
				if err := stillThere(cmd.Context(), s, store.RunDir(id), store.SweepDir(id)); err != nil {
					return err
				}
			}
			if w.dir == "" {
				w.dir = "report-" + store.EscapeSegment(args[0])
				if len(args) > 1 {
					w.dir += fmt.Sprintf("-and-%d-more", len(args)-1)
				}
			}
			w.store, w.out, w.errOut = s, cmd.OutOrStdout(), cmd.ErrOrStderr()
			return w.write(cmd.Context(), args...)
		},
	}
	cmd.Flags().StringVarP(&w.dir, "out", "o", "", "the folder (default: report-ID, here)")
	cmd.Flags().BoolVar(&w.trials, "trials", false, "for a sweep: also write each trial's report, and link to it")
	cmd.Flags().BoolVar(&w.json, "json", false, "print the page's numbers as JSON, and write no page")
	cmd.MarkFlagsMutuallyExclusive("json", "out")
	cmd.MarkFlagsMutuallyExclusive("json", "trials")
	conn.AddStoreFlags(cmd.Flags())
	return cmd
}

// reportWriter writes reports into a folder.
type reportWriter struct {
	store store.Store
	dir   string
	// trials: write the reports of a sweep's trials too. json: print numbers, write no files.
	trials, json bool
	// errOut receives a line per written trial.
	out, errOut io.Writer
}

// write writes the report of a run or a sweep, or of several compared, and prints a summary.
func (w reportWriter) write(ctx context.Context, ids ...string) error {
	began := time.Now()
	what := ""
	var summary pages.Summary
	sweep, err := w.load(ctx, ids)
	switch {
	case err == nil && w.json:
		return w.print(sweep.JSON())
	case err == nil:
		noun := "trial"
		if sweep.Comparison {
			noun = "run"
		}
		what = human.Plural(len(sweep.Trials), noun) + ", "
		summary, err = w.sweep(ctx, sweep)
	case len(ids) > 1:
	case errors.Is(err, store.ErrNotFound) && w.trials:
		err = fmt.Errorf("--trials is for a sweep: %w", err)
	case errors.Is(err, store.ErrNotFound) && w.json:
		var run *pages.Run
		if run, err = pages.Load(ctx, w.store, ids[0]); err == nil {
			return w.print(run.JSON())
		}
	case errors.Is(err, store.ErrNotFound):
		summary, err = pages.Write(ctx, w.store, ids[0], pages.IntoFolder(w.dir))
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

// load reads a sweep, or several runs as one.
func (w reportWriter) load(ctx context.Context, ids []string) (pages.Sweep, error) {
	if len(ids) == 1 {
		return pages.LoadSweep(ctx, w.store, ids[0])
	}
	if w.trials {
		return pages.Sweep{}, fmt.Errorf("--trials is for one sweep, and %d ids are given", len(ids))
	}
	return pages.LoadRuns(ctx, w.store, ids)
}

func (w reportWriter) print(numbers []byte, err error) error {
	if err != nil {
		return err
	}
	_, err = w.out.Write(numbers)
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
