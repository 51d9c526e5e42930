package learn

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes a table of the outcomes.
func Print(out io.Writer, results []Result) error {
	var b strings.Builder
	b.WriteString("\nSuccess on fixed instances before and after, with the standard error; what it is\nlaid beside: a random player, and the best play.\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "setting\tseed\tsuccess\trise\trandom\tbest\tmean reward\titerations\tseconds\tpromised\t")
	for _, t := range results {
		for _, r := range t.Runs {
			verdict := t.Setting.What
			switch {
			case r.Broken != "":
				verdict += ": BROKEN, " + r.Broken
			case t.Setting.To != nil || t.Setting.Rises > 0:
				verdict += ": kept"
			}
			best := "?"
			if r.After.Best >= 0 {
				best = fmt.Sprintf("%.1f %%", 100*r.After.Best)
			}
			fmt.Fprintf(w, "%s\t%d\t%s → %s\t%.1f SE\t%.1f %%\t%s\t%.3f → %.3f\t%d\t%.0f\t%s\t\n", t.Setting.Name, r.Seed,
				r.Before, r.After, r.Rise, 100*r.After.Random, best, r.Before.Reward, r.After.Reward, r.Iterations, r.Seconds, verdict)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// String is the success with its standard error.
func (f Figure) String() string {
	return fmt.Sprintf("%.1f ± %.1f %%", 100*f.Success, 100*f.deviation())
}
