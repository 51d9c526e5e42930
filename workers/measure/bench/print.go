package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/model/statistics"
)

// Print writes the report for people.
func (r Report) Print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d cores, load %s before and %s after", r.Cores, r.Load[0], r.Load[1])
	if r.Fingerprint != "" {
		fmt.Fprintf(&b, ", device fingerprint %s", r.Fingerprint)
	}
	b.WriteByte('\n')
	if r.Environments != nil {
		if err := printEnvironments(&b, *r.Environments); err != nil {
			return err
		}
	}
	if r.Algorithms != nil {
		if err := printAlgorithms(&b, *r.Algorithms); err != nil {
			return err
		}
	}
	if r.Report != nil {
		printReportMeasured(&b, *r.Report)
	}
	if s := r.Speed; s.Parameters > 0 {
		fmt.Fprintf(&b, "\nStarter policy, %.2f M parameters (compiled in %.1f s)\n\n", float64(s.Parameters)/1e6, s.Compile)
		fmt.Fprintf(&b, "  forward   %8.0f tokens/s\n  training  %8.0f tokens/s\n  decoding  %8.0f new tokens/s\n", s.Forward, s.Training, s.Decoding)
	}
	if t := r.Tax; t.Iterations > 0 {
		fmt.Fprintf(&b, "\nAn iteration of %s in seconds, medians of %d; all ways end with state %s\n\n", r.Preset, t.Iterations, t.State)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(w, "\tTemporal and S3\tdirectly, S3\tdirectly, memory\t\n")
		for _, s := range t.Steps {
			fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%.4f\t\n", s.Name, s.Durable, s.Bucket, s.Direct)
		}
		fmt.Fprintf(w, "iteration\t%.4f\t%.4f\t%.4f\t\n", t.Durable, t.Bucket, t.Direct)
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n  durability tax %.3f (goal: at most 1.10); Temporal's part alone %.3f;\n  over the lower quartiles, which a busy machine disturbs less: %.3f\n", t.Ratio, t.BucketRatio, t.QuietRatio)
	}
	if r.Sweep != nil {
		if err := printSweep(&b, *r.Sweep); err != nil {
			return err
		}
	}
	if len(r.Recoveries) > 0 {
		fmt.Fprintf(&b, "\nA worker killed by SIGKILL in an iteration, another one waiting; seconds\n\n")
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(w, "\tdetection\tdispatch\tcompile\tload\trebuild\tupdates\tkill to going on\t\n")
		for n, x := range r.Recoveries {
			recoveryRow(w, fmt.Sprintf("kill %d", n+1), x)
		}
		m := medianRecovery(r.Recoveries)
		recoveryRow(w, "median", m)
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n  detection and dispatch %.1f s together (goal: at most 10)\n", m.Detection+m.Dispatch)
		fmt.Fprintf(&b, "  a worker process had at most %s resident\n", human.Bytes(r.WorkerPeak))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func recoveryRow(w io.Writer, name string, r Recovery) {
	fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%.2f\t\n", name, r.Detection, r.Dispatch, r.Compile, r.Load, r.Rebuild, r.Updates, r.Total)
}

// medianRecovery is the median of each figure by itself.
func medianRecovery(rs []Recovery) Recovery {
	of := func(f func(Recovery) float64) float64 {
		xs := make([]float64, len(rs))
		for i, r := range rs {
			xs[i] = f(r)
		}
		return statistics.Median(xs)
	}
	return Recovery{
		Detection: of(func(r Recovery) float64 { return r.Detection }),
		Dispatch:  of(func(r Recovery) float64 { return r.Dispatch }),
		Compile:   of(func(r Recovery) float64 { return r.Compile }),
		Load:      of(func(r Recovery) float64 { return r.Load }),
		Rebuild:   of(func(r Recovery) float64 { return r.Rebuild }),
		Total:     of(func(r Recovery) float64 { return r.Total }),
		Updates:   int(of(func(r Recovery) float64 { return float64(r.Updates) })),
	}
}

// printAlgorithms writes the algorithms' figures for people.
func printAlgorithms(out io.Writer, a Algorithms) error {
	h, d := a.Host, a.Device
	fmt.Fprintf(out, "\nCredit and selection on one core, %d trajectories of %s tokens\n\n", h.Rows, countText(float64(h.Tokens)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\ttime\tof the processor\t\n")
	for _, c := range append(append([]Cost{}, h.Credit...), h.Selection...) {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", c.Name, secondsText(c.Seconds), secondsText(c.Processor))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n  the slowest of both, %s: %s, %s of the processor (goal: at most %d ms)\n", h.Slowest.Name,
		secondsText(h.Slowest.Seconds), secondsText(h.Slowest.Processor), HostGoal.Milliseconds())

	fmt.Fprintf(out, "\nA starter of %d layers, %.2f M parameters, rows of %d tokens: %d rows are all groups, %d are 25 %% of them\n\n",
		d.Layers, float64(d.Parameters)/1e6, d.Tokens, d.Rows, d.Kept)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\ttime\tratio\tof the processor's\t\n")
	for _, c := range append(append(append([]Cost{}, d.Selection...), d.Critic...), d.Losses...) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", c.Name, secondsText(c.Seconds), costRatioText(c.Ratio), costRatioText(c.ProcessorRatio))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range d.Selection {
		if c.Ratio > 0 {
			fmt.Fprintf(out, "\n  %s: %s of the time of all, %s of the processor's (goal: at most %.2f)\n", c.Name,
				costRatioText(c.Ratio), costRatioText(c.ProcessorRatio), KeptGoal)
		}
	}
	fmt.Fprintf(out, "  ratios: to the line above that has none, measured right beside it\n")
	return nil
}

// secondsText is a time with three digits.
func secondsText(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return eachText(1 / seconds)
}

// costRatioText is a ratio near 1; "-" where there is none.
func costRatioText(r float64) string {
	if r <= 0 {
		return "-"
	}
	return strconv.FormatFloat(r, 'f', 2, 64)
}

// printSweep writes a sweep's figures for people.
func printSweep(out io.Writer, s Sweep) error {
	fmt.Fprintf(out, "\nA sweep of %d trials of %s, %d iterations each, one after the other; seconds\n\n", s.Trials, sweepPreset, s.Iterations)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\tfirst trial to the end\ttrials' own\tbetween them\tbehind the last\toverhead\tby hand\tover these\tprocessor\tby hand\t\n")
	for n, t := range s.Turns {
		fmt.Fprintf(w, "turn %d\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f %%\t%.3f\t%.1f %%\t%.2f\t%.2f\t\n", n+1,
			t.Wall, t.Own, t.Between, t.After, 100*t.Overhead, t.Alone, 100*t.OverAlone, t.Processor.Total(), t.AloneProcessor.Total())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n  overhead, medians: %.1f %% of the trials' own time (goal: at most %.0f %%), %.1f %% over the same runs by hand\n",
		100*s.Overhead, 100*SweepGoal, 100*s.OverAlone)
	if s.Processor != 0 {
		fmt.Fprintf(out, "  of the processor, worker and servers together, all of the sweep over the runs by hand: %.1f %%\n", 100*s.Processor)
	}
	fmt.Fprintf(out, "  a run takes %.3f s in the sweep, %.3f s by hand; outside trials the sweep takes %.0f ms a trial,\n  and %.0f ms once before the first, which are not counted\n",
		s.Trial, s.Alone, 1000*s.Outside, 1000*s.Before)
	_, err := fmt.Fprintf(out, "  its history: %d events, %s\n", s.Events, human.Bytes(s.Bytes))
	return err
}

func printReportMeasured(out io.Writer, m ReportSpeed) {
	fmt.Fprintf(out, "\nThe report of a run of %d iterations with %d trajectories (%s stored)\n\n", m.Iterations, m.Trajectories, human.Bytes(m.StoredBytes))
	fmt.Fprintf(out, "  made in   %.1f s (goal: at most 20)\n  memory    %s at most (goal: 1 GiB)\n  written   %s, %s; the page alone %s\n",
		m.Seconds, human.Bytes(m.PeakBytes), human.Plural(m.Files, "file"), human.Bytes(m.Bytes), human.Bytes(m.IndexBytes))
}
