package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// File is a file drawn from records.
type File struct {
	// Name is relative to the study's folder.
	Name string
	Body []byte
}

// Files returns the files drawn from records: tables.md, and a plot per task.
func Files(records []Record) ([]File, error) {
	out := []File{{"tables.md", []byte(Tables(records))}}
	var tasks []string
	for _, s := range Settings() {
		has := slices.ContainsFunc(records, func(r Record) bool { return r.Setting == s.Name() })
		if !has || slices.Contains(tasks, s.Task()) {
			continue
		}
		tasks = append(tasks, s.Task())
		body, err := Plot(records, s.Task())
		if err != nil {
			return nil, err
		}
		out = append(out, File{s.Task() + ".svg", body})
	}
	return out, nil
}

// Tables renders the records as Markdown tables.
func Tables(records []Record) string {
	summaries, pulls := Summarize(records), Pulls(records)
	var b strings.Builder
	fmt.Fprintf(&b, "Final figures: means of the last %d iterations, over seeds, with %g %% t intervals. Mean rewards are\nwithout the chance of the payouts.\n\n", Window, 100*Confidence)
	b.WriteString("| setting | seeds | high arm | mean reward, first → last | better arm's | worse than at first | an arm chosen | runs ended |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range summaries {
		of, _ := settingNamed(s.Setting)
		fmt.Fprintf(&b, "| %s | %d | %s | %.3f → %s | %.3f | %d | %s | %s |\n", s.Setting, s.Seeds, s.Success.percent(), s.Start.Mean,
			s.Reward.digits(3), of.Better(), s.Worse, s.Executable.percent(), ends(s.Ends))
	}
	fmt.Fprintf(&b, "\nThe first %d iterations and the last; the highest gradient norm over the median one.\n\n", Window)
	b.WriteString("| setting | in-group deviation | entropy | gradient norm | spike | length | distinct-2 |\n|---|---|---|---|---|---|---|\n")
	for _, s := range summaries {
		change := func(name string, digits int) string {
			return fmt.Sprintf("%.*f → %s", digits, s.Early[name].Mean, s.Late[name].digits(digits))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", s.Setting, change(Deviation, 3), change(Entropy, 2), change(GradNorm, 2),
			s.Spike.digits(0), change(Length, 1), change(Distinct, 2))
	}
	b.WriteString("\nFalls of the reward, and detectors: the iterations in which they fired first. Lead: by how\nmany iterations before the fall; negative behind it. No fall: fired in so many runs without one.\n\n")
	b.WriteString("| setting | reward falls at | recovered | detector | fired | at | lead | no fall |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range summaries {
		falls := fmt.Sprintf("%d of %d", len(s.Falls), s.Seeds)
		if len(s.Falls) > 0 {
			falls += ": " + joined(s.Falls)
		}
		if len(s.Detectors) == 0 {
			fmt.Fprintf(&b, "| %s | %s | %d | none | | | | |\n", s.Setting, falls, s.Recovered)
		}
		name, recovered := s.Setting, strconv.Itoa(s.Recovered)
		for _, f := range s.Detectors {
			fmt.Fprintf(&b, "| %s | %s | %s | %s (%s) | %d of %d | %s | %s | %d |\n", name, falls, recovered, f.Detector, f.Severity, len(f.First), s.Seeds, joined(f.First), joined(f.Leads), f.Unmet)
			name, falls, recovered = "", "", ""
		}
	}
	alarms, harmed, fell, all := Alarms(records)
	fmt.Fprintf(&b, "\nDetectors in all %d runs: %d came to harm (the reward fell and did not recover, or ended worse than\nat first), %d fell. Leads of a detector are of the runs that fell.\n\n", all, harmed, fell)
	b.WriteString("| detector | fired in harmed runs | in harmless ones | leads |\n|---|---|---|---|\n")
	for _, a := range alarms {
		fmt.Fprintf(&b, "| %s | %d of %d | %d of %d | %s |\n", a.Detector, a.Harmed, harmed, a.Harmless, all-harmed, joined(a.Leads))
	}
	b.WriteString(laterTable(records))
	if len(pulls) > 0 {
		b.WriteString("\nWhat selection by deviation does: final share of the high arm, a quarter of the groups kept\nand all kept, otherwise the same; the difference by pairs of seeds.\n\n")
		b.WriteString("| scene | a quarter kept | all kept | difference |\n|---|---|---|---|\n")
		for _, p := range pulls {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.Task, p.Kept.percent(), p.All.percent(), p.Difference.percent())
		}
	}
	b.WriteString("\nWhat the high arm pays on average in the two of eight groups of 16 whose rewards vary most, by\nthe policy's share of the high arm; the low arm pays 0.15. By calculation.\n\n")
	b.WriteString("| scene | true mean | 5 % | 10 % | 30 % | 50 % | 70 % | 90 % |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range Probabilities {
		for _, shared := range []bool{false, true} {
			s := Setting{Probability: p, Shared: shared}
			fmt.Fprintf(&b, "| %s | %.2f |", s.Task(), p*HighReward)
			for _, share := range []float64{0.05, 0.1, 0.3, 0.5, 0.7, 0.9} {
				fmt.Fprintf(&b, " %.2f |", s.Lure(share, 8, 16, 2))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func (i Interval) percent() string { return i.scaled(100, 1) + " %" }

func (i Interval) digits(n int) string { return i.scaled(1, n) }

// scaled is the mean with the half width of its interval.
func (i Interval) scaled(times float64, digits int) string {
	if i.N == 0 {
		return "–"
	}
	text := strconv.FormatFloat(times*i.Mean, 'f', digits, 64)
	if math.IsNaN(i.Low) {
		return text
	}
	return text + " ± " + strconv.FormatFloat(times*(i.High-i.Low)/2, 'f', digits, 64)
}

func ends(counts map[End]int) string {
	var parts []string
	for _, e := range Ends {
		if counts[e] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[e], e))
		}
	}
	return strings.Join(parts, ", ")
}

func joined(xs []int) string {
	parts := make([]string, len(xs))
	for n, x := range xs {
		parts[n] = strconv.Itoa(x)
	}
	return strings.Join(parts, ", ")
}
