package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/workers/measure/bench"
	"github.com/reprise-rl/reprise/workers/stack"
)

// The runs of the measured sweep: short ones of a small policy, to which a sweep
// adds the most.
const (
	sweepPreset     = "chaos"
	sweepIterations = 3
)

// measureSweep fills in the sweep.
func (r *benchReport) measureSweep(ctx context.Context, on stack.Served, o benchOptions, say func(string)) error {
	text, err := presets.With(sweepPreset, map[string]any{"iterations": sweepIterations})
	if err != nil {
		return err
	}
	r.Fingerprint = on.Device.Fingerprint
	say(fmt.Sprintf("warming up; then sweeps of %d trials and the same runs by hand, in turns", o.trials))
	got, err := bench.MeasureSweep(ctx, on.Client, text, o.trials, o.rounds, say)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	r.Sweep = &got
	return nil
}

// printSweep writes a sweep's figures for people.
func printSweep(out io.Writer, s bench.Sweep) error {
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
		100*s.Overhead, 100*bench.SweepGoal, 100*s.OverAlone)
	if s.Processor != 0 {
		fmt.Fprintf(out, "  of the processor, worker and servers together, all of the sweep over the runs by hand: %.1f %%\n", 100*s.Processor)
	}
	fmt.Fprintf(out, "  a run takes %.3f s in the sweep, %.3f s by hand; outside trials the sweep takes %.0f ms a trial,\n  and %.0f ms once before the first, which are not counted\n",
		s.Trial, s.Alone, 1000*s.Outside, 1000*s.Before)
	_, err := fmt.Fprintf(out, "  its history: %d events, %s\n", s.Events, human.Bytes(s.Bytes))
	return err
}
