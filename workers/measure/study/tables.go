package study

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// File is a file computed from records.
type File struct {
	// Name is relative to the study's folder.
	Name string
	Body []byte
}

// Files returns the files computed from records: tables.md, summary.json, runs.csv,
// curves.csv, and a plot per task.
func Files(records []Record) ([]File, error) {
	alarms, harmed, fell, _ := Alarms(records)
	text, err := json.MarshalIndent(struct {
		Settings []Summary `json:"settings"`
		Pulls    []Pull    `json:"pulls"`
		Alarms   []Alarm   `json:"alarms"`
		Runs     int       `json:"runs"`
		Harmed   int       `json:"harmed"`
		Fell     int       `json:"fell"`
	}{Summarize(records), Pulls(records), alarms, len(records), harmed, fell}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("summary: %w", err)
	}
	runs, err := runsCSV(records)
	if err != nil {
		return nil, err
	}
	curves, err := curvesCSV(records)
	if err != nil {
		return nil, err
	}
	out := []File{
		{"tables.md", []byte(Tables(records))},
		{"summary.json", append(text, '\n')},
		{"runs.csv", runs},
		{"curves.csv", curves},
	}
	var tasks []string
	for _, s := range Settings() {
		has := slices.ContainsFunc(records, func(r Record) bool { return r.Setting == s.Name() })
		if has && !slices.Contains(tasks, s.Task()) {
			tasks = append(tasks, s.Task())
		}
	}
	for _, task := range tasks {
		body, err := Plot(records, task)
		if err != nil {
			return nil, err
		}
		out = append(out, File{task + ".svg", body})
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
		fmt.Fprintf(&b, "| %s | %d | %s | %.3f → %s | %.3f | %d | %s | %s |\n", s.Setting, s.Seeds, s.Success.percent(), float64(s.Start.Mean), s.Reward.digits(3), of.Better(), s.Worse, s.Executable.percent(), ends(s.Ends))
	}
	fmt.Fprintf(&b, "\nThe first %d iterations and the last; the highest gradient norm over the median one.\n\n", Window)
	b.WriteString("| setting | in-group deviation | entropy | gradient norm | spike | length | distinct-2 |\n|---|---|---|---|---|---|---|\n")
	for _, s := range summaries {
		change := func(name string, digits int) string {
			return fmt.Sprintf("%.*f → %s", digits, float64(s.Early[name].Mean), s.Late[name].digits(digits))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", s.Setting, change(Deviation, 3), change(Entropy, 2), change(GradNorm, 2), s.Spike.digits(0), change(Length, 1), change(Distinct, 2))
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
	text := strconv.FormatFloat(times*float64(i.Mean), 'f', digits, 64)
	if math.IsNaN(float64(i.Low)) {
		return text
	}
	return text + " ± " + strconv.FormatFloat(times*float64(i.High-i.Low)/2, 'f', digits, 64)
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

// runsCSV has a row per run: how it ended, when its reward fell and when each detector
// first fired. Cells are empty if that did not happen.
func runsCSV(records []Record) ([]byte, error) {
	header := []string{"setting", "seed", "end", "success", "executable", "reward", "evaluated_before", "evaluated_after", "fall_begins", "fall_seen", "fall_recovered", "grad_norm_spike"}
	for _, r := range collapse.Rules() {
		header = append(header, r.Name)
	}
	rows := [][]string{header}
	for _, r := range records {
		o := Judge(r)
		row := []string{o.Setting, strconv.FormatUint(o.Seed, 10), string(o.End), number(o.Success), number(o.Executable), number(o.Reward)}
		first, last := "", ""
		if n := len(r.Evaluations); n > 0 {
			first, last = number(float64(r.Evaluations[0].Success)), number(float64(r.Evaluations[n-1].Success))
		}
		row = append(row, first, last)
		if o.Fell {
			row = append(row, strconv.Itoa(o.Fall.Begins), strconv.Itoa(o.Fall.Seen), strconv.FormatBool(o.Fall.Recovered))
		} else {
			row = append(row, "", "", "")
		}
		row = append(row, number(o.Spike))
		for _, rule := range collapse.Rules() {
			cell := ""
			if n, fired := o.First[rule.Name]; fired {
				cell = strconv.Itoa(n)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return asCSV(rows)
}

// expectedReward names the expected mean reward over the payouts.
const expectedReward = "reward/expected"

// curvesCSV has a row for each setting, metric and iteration: the mean over seeds
// with its interval. The other metrics are in the records only.
func curvesCSV(records []Record) ([]byte, error) {
	rows := [][]string{{"setting", "metric", "iteration", "seeds", "mean", "low", "high"}}
	for _, s := range Settings() {
		for _, name := range []string{Success, Executable, Reward, expectedReward, Deviation, Entropy, GradNorm, Length, Distinct} {
			column := metric(name)
			if name == expectedReward {
				column = Record.expected
			}
			for n, i := range curveOf(records, s.Name(), column) {
				if i.N > 0 {
					rows = append(rows, []string{s.Name(), name, strconv.Itoa(n), strconv.Itoa(i.N), cell(i.Mean), cell(i.Low), cell(i.High)})
				}
			}
		}
	}
	return asCSV(rows)
}

func asCSV(rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.WriteAll(rows); err != nil {
		return nil, fmt.Errorf("write CSV: %w", err)
	}
	return b.Bytes(), nil
}

// number has four digits, and is empty if x is not finite.
func number(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

func cell(x canon.Float) string { return number(float64(x)) }
