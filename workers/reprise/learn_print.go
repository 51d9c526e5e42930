package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// writeLearnt writes the outcomes for people.
func writeLearnt(out io.Writer, results []taught) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nBandit: the high arm pays 1 with probability p, the low arm 0.15 for certain.\nOn %d fixed samples, before and after; divided: advantages by the group's deviation.\n\n", learnInstances*learnSamples)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "p\tgroups kept\tdivided\tseed\thigh arm\tmean reward\titerations\tseconds\tpromised\t")
	for _, t := range results {
		for _, r := range t.Runs {
			verdict := t.Lesson.What
			switch {
			case r.Broken != "":
				verdict += ": BROKEN, " + r.Broken
			case t.Lesson.To != nil:
				verdict += ": kept"
			}
			fmt.Fprintf(w, "%.2f\t%.0f %%\t%s\t%d\t%.1f %% → %.1f %%\t%.3f → %.3f\t%d\t%.0f\t%s\t\n", t.Lesson.Probability, 100*t.Lesson.Keep, yesNo(t.Lesson.ByStd), r.Seed,
				100*r.HighBefore, 100*r.HighAfter, r.RewardBefore, r.RewardAfter, t.Lesson.Iterations, r.Seconds, verdict)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
