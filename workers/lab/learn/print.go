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
			case t.Setting.To != nil || t.Setting.Rises > 0 || t.Setting.Ends != nil:
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
	if err := printVersions(&b, results); err != nil {
		return err
	}
	if err := printCurves(&b, results); err != nil {
		return err
	}
	if err := printMeasured(&b, results); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// printMeasured writes the metrics of the settings that are about more than success.
func printMeasured(b *strings.Builder, results []Result) error {
	var rows strings.Builder
	w := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "setting\tseed\tmetric\tfirst\tlast\t")
	value := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf("%.2f", *v)
	}
	any := false
	for _, t := range results {
		for _, r := range t.Runs {
			for _, m := range r.Measured {
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t\n", t.Setting.Name, r.Seed, m.Metric, value(m.First), value(m.Last))
				any = true
			}
		}
	}
	if err := w.Flush(); err != nil || !any {
		return err
	}
	fmt.Fprintf(b, "\nMetrics of the sampled episodes, the means of the first %d iterations and of the last.\n\n%s", few, rows.String())
	return nil
}

// printVersions writes the success of versions between the first and the last, where some were measured.
func printVersions(b *strings.Builder, results []Result) error {
	var rows strings.Builder
	w := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	for _, t := range results {
		for _, r := range t.Runs {
			if len(r.Evaluated) <= 2 {
				continue
			}
			fmt.Fprintf(w, "%s\t%d\t", t.Setting.Name, r.Seed)
			for _, e := range r.Evaluated {
				fmt.Fprintf(w, "%d: %.1f %%\t", e.Version, 100*e.Success)
			}
			fmt.Fprintln(w)
		}
	}
	if err := w.Flush(); err != nil || rows.Len() == 0 {
		return err
	}
	fmt.Fprintf(b, "\nSuccess on the fixed instances by version.\n\n%s", rows.String())
	return nil
}

// A curve has a column for every fifth iteration, or for fewer, so that there are not more than columns of them.
const columns = 12

// printCurves writes the success of sampled episodes, settings beside each other.
func printCurves(b *strings.Builder, results []Result) error {
	longest := 0
	for _, t := range results {
		for _, r := range t.Runs {
			longest = max(longest, len(r.Curve))
		}
	}
	every := 5 * max(1, (longest+5*columns-1)/(5*columns))
	if longest < every {
		return nil
	}
	b.WriteString("\nSuccess of the episodes sampled in an iteration, the first being 1.\n\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "setting\tseed\t1\t")
	for n := every; n <= longest; n += every {
		fmt.Fprintf(w, "%d\t", n)
	}
	fmt.Fprintln(w)
	for _, t := range results {
		for _, r := range t.Runs {
			if len(r.Curve) == 0 {
				continue
			}
			fmt.Fprintf(w, "%s\t%d\t%.0f %%\t", t.Setting.Name, r.Seed, 100*r.Curve[0])
			for n := every; n <= len(r.Curve); n += every {
				fmt.Fprintf(w, "%.0f %%\t", 100*r.Curve[n-1])
			}
			fmt.Fprintln(w)
		}
	}
	return w.Flush()
}

// String is the success with its standard error.
func (f Figure) String() string {
	return fmt.Sprintf("%.1f ± %.1f %%", 100*f.Success, 100*f.deviation())
}
