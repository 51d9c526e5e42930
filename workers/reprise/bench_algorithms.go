package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/measure/bench"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// leastAlgorithm is how long each of a host's algorithms is measured at a time: a
// selection takes a microsecond.
const leastAlgorithm = 20 * time.Millisecond

// measureAlgorithms fills in the algorithms.
func (r *benchReport) measureAlgorithms(ctx context.Context, o benchOptions, starter spec.Starter, say func(string)) error {
	var out bench.Algorithms
	var err error
	say("measuring credit and selection")
	if out.Host, err = bench.MeasureHostAlgorithms(ctx, o.repeats, leastAlgorithm); err != nil {
		return err
	}
	device, err := model.OpenDevice(model.DeviceOptions{Plugin: o.Plugin, XLAFlags: o.XLAFlags})
	if err != nil {
		return err
	}
	defer device.Close()
	r.Fingerprint = device.Fingerprint().ID()
	// An update takes long, and is compared with another right beside it: half as many do.
	if out.Device, err = bench.MeasureDeviceAlgorithms(ctx, device, starter, (o.repeats+1)/2, say); err != nil {
		return err
	}
	r.Algorithms = &out
	return nil
}

// printAlgorithms writes the algorithms' figures for people.
func printAlgorithms(out io.Writer, a bench.Algorithms) error {
	h, d := a.Host, a.Device
	fmt.Fprintf(out, "\nCredit and selection on one core, %d trajectories of %s tokens\n\n", h.Rows, countText(float64(h.Tokens)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\ttime\tof the processor\t\n")
	for _, c := range append(append([]bench.Cost{}, h.Credit...), h.Selection...) {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", c.Name, secondsText(c.Seconds), secondsText(c.Processor))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n  the slowest of both, %s: %s, %s of the processor (goal: at most %d ms)\n", h.Slowest.Name,
		secondsText(h.Slowest.Seconds), secondsText(h.Slowest.Processor), bench.HostGoal.Milliseconds())

	fmt.Fprintf(out, "\nA starter of %d layers, %.2f M parameters, rows of %d tokens: %d rows are all groups, %d are 25 %% of them\n\n",
		d.Layers, float64(d.Parameters)/1e6, d.Tokens, d.Rows, d.Kept)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\ttime\tratio\tof the processor's\t\n")
	for _, c := range append(append(append([]bench.Cost{}, d.Selection...), d.Critic...), d.Losses...) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", c.Name, secondsText(c.Seconds), costRatioText(c.Ratio), costRatioText(c.ProcessorRatio))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range d.Selection {
		if c.Ratio > 0 {
			fmt.Fprintf(out, "\n  %s: %s of the time of all, %s of the processor's (goal: at most %.2f)\n", c.Name,
				costRatioText(c.Ratio), costRatioText(c.ProcessorRatio), bench.KeptGoal)
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
