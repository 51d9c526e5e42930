package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workers/lab/medians"
)

// Print writes the report as text.
func (r Report) Print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d cores, load %s before and %s after", r.Cores, r.Load[0], r.Load[1])
	if r.Fingerprint != "" {
		fmt.Fprintf(&b, ", device fingerprint %s", r.Fingerprint)
	}
	b.WriteByte('\n')
	if r.Environments != nil {
		printEnvironments(&b, *r.Environments)
	}
	if r.Foreign != nil {
		printForeign(&b, r.Foreign)
	}
	if r.Calls != nil {
		printCalls(&b, r.Calls)
	}
	if r.Algorithms != nil {
		printAlgorithms(&b, *r.Algorithms)
	}
	if r.Report != nil {
		printReport(&b, *r.Report)
	}
	if r.Exact != nil {
		printExact(&b, r.Exact)
	}
	if r.Speed != nil {
		printSpeeds(&b, *r.Speed)
	}
	if r.Tax.Iterations > 0 {
		printTax(&b, r.Preset, r.Tax)
		printTax(&b, r.Preset+" with twice as many groups", r.LongTax)
	}
	if r.Sweep != nil {
		printSweep(&b, *r.Sweep)
	}
	if r.Stubs != nil {
		printStubs(&b, *r.Stubs)
	}
	if r.SlowBucket != nil {
		printSlowBucket(&b, r.Preset, *r.SlowBucket)
	}
	if r.Helped != nil {
		printHelped(&b, *r.Helped)
	}
	if r.Size != nil {
		printSize(&b, *r.Size)
	}
	if len(r.Recoveries) > 0 {
		printRecoveries(&b, r.Recoveries)
		fmt.Fprintf(&b, "  a worker process had at most %s resident\n", human.Bytes(r.WorkerPeak))
	}
	if r.Heartbeats != nil {
		printHeartbeats(&b, *r.Heartbeats)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// table writes right-aligned columns under a header. Every cell ends with a tab.
func table(b *strings.Builder, header string, rows func(w io.Writer)) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, header)
	rows(w)
	_ = w.Flush() // writing to a builder cannot fail
}

func printTax(b *strings.Builder, preset string, t Tax) {
	fmt.Fprintf(b, "\nAn iteration of %s in seconds, medians of %d; all ways end with state %s\n\n", preset, t.Iterations, t.State)
	table(b, "\tTemporal and S3\tdirectly, S3\tdirectly, memory\t", func(w io.Writer) {
		for _, s := range append(t.Steps, Step{Name: "iteration", Durable: t.Durable, Bucket: t.Bucket, Direct: t.Direct}) {
			fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%.4f\t\n", s.Name, s.Durable, s.Bucket, s.Direct)
		}
	})
	fmt.Fprintf(b, "\n  durability tax %.3f (goal: at most %.2f), the median of %s", t.Ratio, t.Goal, human.Plural(t.Pairs, "pair"))
	if t.High > 0 {
		fmt.Fprintf(b, "; its 95 %% interval: %.3f to %.3f", t.Low, t.High)
	}
	fmt.Fprintf(b, "\n  Temporal's part alone %.3f, and by the time between the steps of its own runs %.3f\n", t.BucketRatio, t.OwnRatio)
	printDispatches(b, t)
}

func printHelped(b *strings.Builder, h Helped) {
	fmt.Fprintf(b, "\nA rollout of %d rows and %d turns in blocks, by workers of one core each, seconds, medians of %d; all end with the same state\n\n", h.Rows, h.Turns, h.Rollouts)
	fmt.Fprintf(b, "  one worker   %.3f\n  two workers  %.3f, %d of %d blocks on the second\n  ratio %.2f (goal: at most %.1f); processor time of both over one's, with the updates: %.2f (goal: at most %.1f)\n",
		h.One, h.Two, h.Elsewhere, h.Blocks, h.Ratio, helpedGoal, h.ProcessorRatio, helpedProcessorGoal)
	fmt.Fprintf(b, "  an iteration by two workers %.3f, with a lag, whose rollouts are made beside updates, %.3f: ratio %.2f\n", h.Iteration, h.Lagging, h.LagRatio)
}

// printDispatches says what is left of the tax, by activity.
func printDispatches(b *strings.Builder, t Tax) {
	fmt.Fprintf(b, "\n  what is left, by activity, in milliseconds\n\n")
	own := map[string]float64{}
	for _, s := range t.Steps {
		own[s.Name] = s.More
	}
	table(b, "\tits own work with S3\tuntil a worker begins\tuntil the next is scheduled\t", func(w io.Writer) {
		for _, d := range t.Dispatches {
			if d.Beside {
				fmt.Fprintf(w, "%s\tbeside the next generate\t\t\t\n", d.Name)
				continue
			}
			fmt.Fprintf(w, "%s\t%+.1f\t%.1f\t%.1f\t\n", d.Name, own[d.Name]*1e3, d.Begin*1e3, d.Next*1e3)
		}
	})
}

func printRecoveries(b *strings.Builder, all []Recovery) {
	fmt.Fprintf(b, "\nA worker killed by SIGKILL in an iteration, another one waiting; seconds\n\n")
	median := medianRecovery(all)
	table(b, "\tdetection\tdispatch\tcompile\tload\trebuild\tupdates\tkill to going on\t", func(w io.Writer) {
		for n, r := range append(all, median) {
			name := fmt.Sprintf("kill %d", n+1)
			if n == len(all) {
				name = "median"
			}
			fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%.2f\t\n", name, r.Detection, r.Dispatch, r.Compile, r.Load, r.Rebuild, r.Updates, r.Total)
		}
	})
	fmt.Fprintf(b, "\n  detection and dispatch %.1f s together (goal: at most 10)\n", median.Detection+median.Dispatch)
}

// medianRecovery is the median of each figure.
func medianRecovery(all []Recovery) Recovery {
	of := func(f func(Recovery) float64) float64 { return medians.By(all, f) }
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

func printAlgorithms(b *strings.Builder, a Algorithms) {
	h, d := a.Host, a.Device
	fmt.Fprintf(b, "\nCredit and selection on one core, %d trajectories of %s tokens\n\n", h.Rows, countText(float64(h.Tokens)))
	table(b, "\ttime\tof the processor\t", func(w io.Writer) {
		for _, c := range slices.Concat(h.Credit, h.Selection) {
			fmt.Fprintf(w, "%s\t%s\t%s\t\n", c.Name, secondsText(c.Seconds), secondsText(c.Processor))
		}
	})
	fmt.Fprintf(b, "\n  the slowest of both, %s: %s, %s of the processor (goal: at most %d ms)\n", h.Slowest.Name,
		secondsText(h.Slowest.Seconds), secondsText(h.Slowest.Processor), HostGoal.Milliseconds())

	fmt.Fprintf(b, "\nA starter of %d layers, %.2f M parameters, rows of %d tokens: %d rows are all groups, %d are 25 %% of them\n\n",
		d.Layers, float64(d.Parameters)/1e6, d.Tokens, d.Rows, d.Kept)
	table(b, "\ttime\tratio\tof the processor's\t", func(w io.Writer) {
		for _, c := range slices.Concat(d.Selection, d.Widths, d.Turns, d.Devices, d.Critic, d.Losses) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", c.Name, secondsText(c.Seconds), costRatioText(c.Ratio), costRatioText(c.ProcessorRatio))
		}
	})
	for _, c := range d.Selection {
		if c.Ratio > 0 {
			fmt.Fprintf(b, "\n  %s: %s of the time of all, %s of the processor's (goal: at most %.2f)\n", c.Name,
				costRatioText(c.Ratio), costRatioText(c.ProcessorRatio), KeptGoal)
		}
	}
	fmt.Fprintf(b, "  ratios: to the line above that has none, measured right beside it\n")
}

// secondsText formats a time with three digits.
func secondsText(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return eachText(1 / seconds)
}

// costRatioText formats a ratio near 1; "-" if there is none.
func costRatioText(r float64) string {
	if r <= 0 {
		return "-"
	}
	return strconv.FormatFloat(r, 'f', 2, 64)
}

func printSweep(b *strings.Builder, s Sweep) {
	fmt.Fprintf(b, "\nA sweep of %d trials of %s, %d iterations each, one after the other; seconds\n\n", s.Trials, sweepPreset, s.Iterations)
	table(b, "\tfirst trial to the end\ttrials' own\tbetween them\tbehind the last\toverhead\tby hand\tover these\tprocessor\tby hand\t", func(w io.Writer) {
		for n, t := range s.Turns {
			fmt.Fprintf(w, "turn %d\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f %%\t%.3f\t%.1f %%\t%.2f\t%.2f\t\n", n+1,
				t.Wall, t.Own, t.Between, t.After, 100*t.Overhead, t.Alone, 100*t.OverAlone, t.Processor.Total(), t.AloneProcessor.Total())
		}
	})
	fmt.Fprintf(b, "\n  overhead, medians: %.1f %% of the trials' own time (goal: at most %.0f %%), %.1f %% over the same runs by hand\n",
		100*s.Overhead, 100*SweepGoal, 100*s.OverAlone)
	if s.Processor != 0 {
		fmt.Fprintf(b, "  of the processor, worker and servers together, all of the sweep over the runs by hand: %.1f %%\n", 100*s.Processor)
	}
	fmt.Fprintf(b, "  a run takes %.3f s in the sweep, %.3f s by hand; outside trials the sweep takes %.0f ms a trial,\n  and %.0f ms once before the first, which are not counted\n",
		s.Trial, s.Alone, 1000*s.Outside, 1000*s.Before)
	fmt.Fprintf(b, "  its history: %d events, %s\n", s.Events, human.Bytes(s.Bytes))
}

func printStubs(b *strings.Builder, s Stubs) {
	fmt.Fprintf(b, "\nA sweep of %d stub trials of one second, at most %d at once: %.0f s (goal for 5,000: at most 15 min)\n", s.Trials, s.Parallel, s.Seconds)
	fmt.Fprintf(b, "  its longest workflow task: %.3f s (goal: at most 1), median %.3f s; its histories: %d, of %d events and %s together\n",
		s.LongestTask, s.MedianTask, s.Histories, s.Events, human.Bytes(s.Bytes))
}

func printSlowBucket(b *strings.Builder, preset string, s SlowBucket) {
	fmt.Fprintf(b, "\nAn iteration of %s beside a run whose reads of the bucket take %.0f s longer, on the same host worker, medians of %d\n\n", preset, s.Delay, s.Iterations)
	fmt.Fprintf(b, "  alone   %.3f s\n  beside  %.3f s, while %d reads were slow\n", s.Alone, s.Beside, s.Reads)
	fmt.Fprintf(b, "\n  ratio %.3f (goal: at most %.1f)\n", s.Ratio, SlowGoal)
}

func printSize(b *strings.Builder, s Size) {
	fmt.Fprintf(b, "\nA restart at %.0f million parameters\n\n", float64(s.Parameters)/1e6)
	for _, r := range []struct {
		what string
		took activities.Telemetry
	}{{"first start", s.First}, {"from version 0", s.Base}, {"from a snapshot", s.Snapshot}} {
		fmt.Fprintf(b, "  %-16s %.1f s: %s\n", r.what, r.took.Seconds, r.took.RestoreParts())
	}
	fmt.Fprintf(b, "\n  a worker process had at most %s resident, %.1f bytes a parameter\n", human.Bytes(s.Peak), float64(s.Peak)/float64(s.Parameters))
}

func printReport(b *strings.Builder, m ReportSpeed) {
	fmt.Fprintf(b, "\nThe report of a run of %d iterations with %d trajectories (%s stored)\n\n", m.Iterations, m.Trajectories, human.Bytes(m.StoredBytes))
	fmt.Fprintf(b, "  made in   %.1f s (goal: at most 20)\n  memory    %s at most (goal: 1 GiB)\n  written   %s, %s; the page alone %s\n",
		m.Seconds, human.Bytes(m.PeakBytes), human.Plural(m.Files, "file"), human.Bytes(m.Bytes), human.Bytes(m.IndexBytes))
}
