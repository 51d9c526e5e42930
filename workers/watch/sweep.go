package watch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// sweepView is what a watcher has shown of a Sweep workflow.
type sweepView struct {
	last       workflows.TablePage
	states     map[string]sweep.State // by label, as they were shown
	drawn      int                    // lines of the live table in the terminal
	pace       pace
	progressAt time.Time // when the last progress line was printed
}

// progressEvery is the least time between two progress lines.
const progressEvery = time.Minute

// pageOfWatch is the page size of the table query.
const pageOfWatch = 500

func (w *Watcher) refreshSweep(ctx context.Context) error {
	page, err := Table(ctx, w.client, w.run)
	if err != nil {
		return err
	}
	w.sweep.last = page
	done, _ := progressOf(page)
	w.sweep.pace.observe(done)
	if w.bar != nil {
		w.drawSweep(page)
	} else {
		w.showSweep(page)
	}
	return nil
}

// Table queries the whole live table of a sweep.
func Table(ctx context.Context, c client.Client, id string) (workflows.TablePage, error) {
	var all workflows.TablePage
	for {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		v, err := c.QueryWorkflow(ctx, id, "", "table", workflows.PageOf{Offset: len(all.Rows), Limit: pageOfWatch})
		cancel()
		if err != nil {
			return all, err
		}
		var page workflows.TablePage
		if err := v.Get(&page); err != nil {
			return all, err
		}
		page.Rows, page.Settings = append(all.Rows, page.Rows...), append(all.Settings, page.Settings...)
		if got := len(page.Rows) - len(all.Rows); got < pageOfWatch || len(page.Rows) >= page.Counts.Trials {
			return page, nil
		}
		all = page
	}
}

// showSweep prints a line for each trial that began, waits or ended since the last call.
func (w *Watcher) showSweep(page workflows.TablePage) {
	if w.sweep.states == nil {
		w.sweep.states, w.sweep.progressAt = map[string]sweep.State{}, time.Now()
	}
	if page.Counts.Trials > 0 && len(w.sweep.states) == 0 {
		w.line(fmt.Sprintf("%s: %s", human.Plural(page.Counts.Trials, "trial"), page.Counts))
	}
	for _, row := range page.Rows {
		before, shown := w.sweep.states[row.Trial]
		if shown && before == row.State {
			continue
		}
		w.sweep.states[row.Trial] = row.State
		if row.State != sweep.Pending {
			w.line(trialLine(row, page.Metrics))
		}
	}
	if done, of := progressOf(page); done > 0 && time.Since(w.sweep.progressAt) >= progressEvery {
		if left := w.sweep.pace.remaining(done, of); left != "" {
			w.sweep.progressAt = time.Now()
			w.line(fmt.Sprintf("%d of %d iterations%s", done, of, left))
		}
	}
	if page.Counts.Trials == 0 || strings.HasPrefix(page.Phase, "stopped") || strings.HasPrefix(page.Phase, "cancelling") || page.Phase == "writing the table" {
		w.say(page.Phase)
	}
}

// trialLine describes a trial in one line.
func trialLine(row workflows.TrialLine, metrics []string) string {
	state := string(row.State)
	if row.State == sweep.Waiting {
		state = "waiting for a device"
	}
	line := fmt.Sprintf("%-10s  %s  %d/%d", state, row.Trial, row.Iterations, row.Of)
	for i, name := range metrics {
		if v, ok := row.Metrics[name]; ok && i < shownMetrics {
			line += fmt.Sprintf("  %s %s", name, human.Number("%.3f", float64(v.Last)))
		}
	}
	if row.LostDevices > 0 {
		line += fmt.Sprintf("  lost devices %d (recomputed %d updates)", row.LostDevices, row.Recomputed)
	}
	if row.Note != "" {
		line += "  " + human.Visible(row.Note)
	}
	return line
}

const (
	// shownMetrics is how many metrics a line has room for.
	shownMetrics = 2
	// shownTrials is how many trials the live table has room for.
	shownTrials = 20
)

// drawSweep redraws the live table: open trials, settings and progress.
func (w *Watcher) drawSweep(page workflows.TablePage) {
	done, of := progressOf(page)
	lines := sweepLines(w.run, page, w.sweep.pace.remaining(done, of))
	var b strings.Builder
	if w.sweep.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", w.sweep.drawn)
	}
	b.WriteString(strings.Join(lines, "\n") + "\n")
	w.sweep.drawn = len(lines)
	fmt.Fprint(w.out, b.String())
}

// progressOf counts the iterations of all trials: those done and the total. A trial that
// has ended counts only what it did.
func progressOf(page workflows.TablePage) (done, of int) {
	for _, row := range page.Rows {
		done += row.Iterations
		if row.State.Final() {
			of += row.Iterations
		} else {
			of += row.Of
		}
	}
	return done, of
}

// sweepLines is the live table, line by line.
func sweepLines(id string, page workflows.TablePage, left string) []string {
	done, of := progressOf(page)
	lines := []string{fmt.Sprintf("%s · %s", id, page.Phase)}
	if page.Counts.Trials == 0 {
		return lines
	}
	lines = append(lines, fmt.Sprintf("%s: %s · %d of %d iterations%s", human.Plural(page.Counts.Trials, "trial"), page.Counts, done, of, left))
	open := 0
	for _, row := range page.Rows {
		if row.State.Open() {
			if open++; open <= shownTrials {
				lines = append(lines, "  "+trialLine(row, page.Metrics))
			}
		}
	}
	if open > shownTrials {
		lines = append(lines, fmt.Sprintf("  … and %d more", open-shownTrials))
	}
	return append(lines, settingLines(page.Settings, page.Metrics)...)
}

// settingLines is a table of each setting's mean.
func settingLines(settings []sweep.SettingRow, metrics []string) []string {
	if len(settings) == 0 || len(metrics) == 0 {
		return nil
	}
	metric := metrics[0]
	width := len("setting")
	for i, s := range settings {
		if i < shownTrials {
			width = max(width, len(s.Setting))
		}
	}
	lines := []string{fmt.Sprintf("%-*s  done   %s, mean and 95 %% interval", width, "setting", metric)}
	for i, s := range settings {
		if i == shownTrials {
			lines = append(lines, fmt.Sprintf("… and %d more", len(settings)-i))
			break
		}
		text := "–"
		if st, ok := s.Metrics[metric]; ok {
			text = human.Number("%.3f", float64(st.Mean))
			if st.N > 2 { // of two seeds it is as wide as 12.7 of their deviations
				text += fmt.Sprintf(" (%s to %s)", human.Number("%.3f", float64(st.Low)), human.Number("%.3f", float64(st.High)))
			}
		}
		lines = append(lines, fmt.Sprintf("%-*s  %d of %d  %s", width, s.Setting, s.Done, s.Trials, text))
	}
	return lines
}

// endSweep prints how the sweep ended and the key of its table.
func (w *Watcher) endSweep(ctx context.Context, cancelled bool) error {
	if w.bar == nil {
		for _, line := range settingLines(w.sweep.last.Settings, w.sweep.last.Metrics) {
			w.line(line)
		}
	}
	var status workflows.SweepStatus
	if err := w.ask(ctx, &status); err == nil { // if no worker answers, the result below is enough
		for _, warning := range status.Warnings {
			w.line("warning: " + human.Visible(warning))
		}
		if status.Report != "" {
			w.line("report: " + status.Report)
		}
	}
	if cancelled {
		w.line(fmt.Sprintf("%s was cancelled: %s; each trial's end is its last committed iteration", w.run, w.sweep.last.Counts))
		return nil
	}
	var r workflows.SweepResult
	if err := w.result(ctx, &r); err != nil {
		return err
	}
	w.line(fmt.Sprintf("%s is done: %s; the table is %s", w.run, r.Counts, r.Table.Key))
	return nil
}
