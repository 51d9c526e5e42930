package main

import (
	"context"
	"fmt"
	"io"

	"github.com/reprise-rl/reprise/infra/human"
	pages "github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
)

// measureReport fills in how long the report of a large run takes.
func (r *benchReport) measureReport(ctx context.Context, say func(string)) error {
	say("writing a run of 220 iterations and its report, in memory")
	m, err := pages.Measure(ctx, synthetic.Paper(), nil)
	r.Report = &m
	return err
}

func printReportMeasured(out io.Writer, m pages.Measured) {
	fmt.Fprintf(out, "\nThe report of a run of %d iterations with %d trajectories (%s stored)\n\n", m.Iterations, m.Trajectories, human.Bytes(m.StoredBytes))
	fmt.Fprintf(out, "  made in   %.1f s (goal: at most 20)\n  memory    %s at most (goal: 1 GiB)\n  written   %s, %s; the page alone %s\n",
		m.Seconds, human.Bytes(m.PeakBytes), human.Plural(m.Files, "file"), human.Bytes(m.Bytes), human.Bytes(m.IndexBytes))
}
