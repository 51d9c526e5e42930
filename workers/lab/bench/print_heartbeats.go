package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workers/lab/heartbeats"
	"github.com/reprise-rl/reprise/workers/lab/medians"
)

// heartbeatLoad is the load at which the default time-out has no false loss, and againGoal the most seconds that one may cost.
const (
	heartbeatLoad = 10
	againGoal     = 2
)

func printHeartbeats(b *strings.Builder, f heartbeats.Figures) {
	fmt.Fprintf(b, "\nTime-outs of a lease's heartbeat, which comes every second: seconds until a lost worker is noticed (medians), and false losses")
	if len(f.Loads) > 0 {
		fmt.Fprintf(b, " in %g minutes at a load", f.Minutes)
	}
	fmt.Fprint(b, "\n\n")
	header := "time-out\tkilled\tlongest\tfrozen\tlongest\t"
	for _, l := range f.Loads {
		header += fmt.Sprintf("at load %d\t", l.Processes)
	}
	if len(f.Away) > 0 {
		header += fmt.Sprintf("in %s\t", human.Plural(len(f.Away), "restart"))
	}
	header += "until the next lease\tlongest\t"
	table(b, header, func(w io.Writer) {
		for _, t := range f.TimeOuts {
			cells := []string{
				fmt.Sprintf("%g s", t.Seconds), medianText(t.Killed), longestText(t.Killed), medianText(t.Frozen), longestText(t.Frozen),
			}
			again := t.Restarts.Again
			for _, l := range t.Loads {
				cells = append(cells, lossesText(l))
				again = slices.Concat(again, l.Again)
			}
			if len(f.Away) > 0 {
				cells = append(cells, lossesText(t.Restarts))
			}
			fmt.Fprintln(w, strings.Join(append(cells, medianText(again), longestText(again), ""), "\t"))
		}
	})
	b.WriteByte('\n')
	for _, l := range f.Loads {
		fmt.Fprintf(b, "  load %d: load average %s at its end\n", l.Processes, l.Average)
	}
	if len(f.Away) > 0 {
		fmt.Fprintf(b, "  a restart of the server: away for %.2f s in the median, %.2f s at most\n", medians.Of(f.Away), slices.Max(f.Away))
	}
	fmt.Fprintf(b, "  a false loss costs the time until the next lease (goal: at most %d s) and what the step had computed\n", againGoal)
	for _, l := range reasons(f) {
		fmt.Fprintf(b, "  not by the server's time-out: %s\n", l)
	}
	if n, ok := f.Smallest(heartbeatLoad); ok {
		fmt.Fprintf(b, "  the smallest time-out without a false loss up to a load of %d: %g s\n", heartbeatLoad, f.TimeOuts[n].Seconds)
	}
}

// lossesText is how many there were: in brackets those that the worker ended, or that ended in other ways.
func lossesText(l heartbeats.Losses) string {
	text := fmt.Sprint(l.All())
	var of []string
	if l.ByHolder > 0 {
		of = append(of, fmt.Sprintf("%d by the worker", l.ByHolder))
	}
	if l.Other > 0 {
		of = append(of, fmt.Sprintf("%d others", l.Other))
	}
	if len(of) > 0 {
		text += " (" + strings.Join(of, ", ") + ")"
	}
	return text
}

// reasons are what the ends say that are no time-outs, once each.
func reasons(f heartbeats.Figures) (out []string) {
	for _, t := range f.TimeOuts {
		for _, l := range append(slices.Clone(t.Loads), t.Restarts) {
			for _, r := range l.Reasons {
				out = append(out, fmt.Sprintf("%s: %s", time.Duration(t.Seconds*float64(time.Second)), r))
			}
		}
	}
	return out
}

func medianText(xs []float64) string {
	if len(xs) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", medians.Of(xs))
}

func longestText(xs []float64) string {
	if len(xs) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", slices.Max(xs))
}
