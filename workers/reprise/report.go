package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/store"
	pages "github.com/reprise-rl/reprise/workers/report"
)

func reportCommand() *cobra.Command {
	var conn connection
	var out string
	cmd := &cobra.Command{
		Use:   "report RUN|SWEEP",
		Short: "make a page of a run or a sweep: curves, evaluations, trajectories",
		Long: `Reads a run from the store and writes its report into a folder: index.html, which
works offline, and beside it the trajectories, which the page loads as they are
asked for. Of a sweep it is one page: settings beside each other, with bands across
seeds, and the table. Nothing is written to the store. What is under way, has failed
or was half deleted is shown as far as it is there; the page lists what is missing.`,
		Example: `  reprise report bandit-1
  reprise report fig7
  reprise report bandit-1 --out /tmp/bandit-1 && xdg-open /tmp/bandit-1/index.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := conn.store()
			if err != nil {
				return err
			}
			if out == "" {
				out = "report-" + store.EscapeSegment(args[0])
			}
			return writeReport(cmd.Context(), s, args[0], out, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "the folder (default: report-ID, here)")
	conn.addStoreFlags(cmd)
	return cmd
}

// writeReport writes the report of a run, or of a sweep, into a folder and says what
// is in it.
func writeReport(ctx context.Context, s store.Store, id, dir string, out io.Writer) error {
	began := time.Now()
	what := ""
	summary, err := pages.Write(ctx, s, id, intoFolder(dir))
	if errors.Is(err, store.ErrNotFound) {
		noRun := err
		var sweep pages.Sweep
		if sweep, err = pages.LoadSweep(ctx, s, id); errors.Is(err, store.ErrNotFound) {
			return noRun
		}
		if err != nil {
			return err
		}
		what = plural(len(sweep.Trials), "trial") + ", "
		summary, err = pages.WriteSweep(ctx, sweep, intoFolder(dir))
	}
	if err != nil {
		return err
	}
	what += plural(summary.Iterations, "iteration") + " on " + branches(summary.Branches)
	if summary.Rollouts > 0 {
		what += ", " + plural(summary.Episodes, "episode")
	}
	fmt.Fprintf(out, "%s: %s, %s, in %.1f s\n", what, plural(summary.Files, "file"), bytesText(summary.Bytes), time.Since(began).Seconds())
	for _, m := range summary.Missing {
		fmt.Fprintln(out, m)
	}
	_, err = fmt.Fprintln(out, filepath.Join(dir, "index.html"))
	return err
}

func branches(n int) string {
	if n == 1 {
		return "1 branch"
	}
	return fmt.Sprintf("%d branches", n)
}

// intoFolder writes a report's files below a folder.
func intoFolder(dir string) pages.Sink {
	return func(name string, body []byte) error {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("write the report's file %q: the name leads out of %s", name, dir)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		return nil
	}
}
