package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// attributeSweep finds a sweep and its trials.
var attributeSweep = temporal.NewSearchAttributeKeyKeyword("RepriseSweep")

// SweepCounts are the trials by state.
type SweepCounts struct {
	Trials     int `json:"trials"`
	Pending    int `json:"pending"`
	Running    int `json:"running"`
	Waiting    int `json:"waiting"`
	Paused     int `json:"paused,omitempty"`
	Done       int `json:"done"`
	Stopped    int `json:"stopped"`
	Failed     int `json:"failed"`
	Dropped    int `json:"dropped"`
	Cancelled  int `json:"cancelled"`
	Terminated int `json:"terminated"`
}

// of is the count of a state. It is called for each trial each second, so it builds no map.
func (c *SweepCounts) of(state sweep.State) *int {
	switch state {
	case sweep.Pending:
		return &c.Pending
	case sweep.Running:
		return &c.Running
	case sweep.Waiting:
		return &c.Waiting
	case sweep.Paused:
		return &c.Paused
	case sweep.Done:
		return &c.Done
	case sweep.Stopped:
		return &c.Stopped
	case sweep.Failed:
		return &c.Failed
	case sweep.Dropped:
		return &c.Dropped
	case sweep.Cancelled:
		return &c.Cancelled
	}
	return &c.Terminated
}

// String lists the states that trials are in.
func (c SweepCounts) String() string {
	var parts []string
	for _, state := range []sweep.State{sweep.Done, sweep.Stopped, sweep.Failed, sweep.Dropped, sweep.Cancelled, sweep.Terminated,
		sweep.Running, sweep.Waiting, sweep.Paused, sweep.Pending} {
		if n := *c.of(state); n > 0 {
			name := string(state)
			if state == sweep.Waiting {
				name = "waiting for a device"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	return strings.Join(parts, ", ")
}

// SweepStatus is the answer to the query "status" of a Sweep workflow.
type SweepStatus struct {
	Sweep    string      `json:"sweep"`
	Phase    string      `json:"phase"`
	Counts   SweepCounts `json:"counts"`
	Parallel int         `json:"parallel"`
	// Metrics are the table's; Goal is the goal of the first.
	Metrics []string `json:"metrics,omitempty"`
	Goal    string   `json:"goal,omitempty"`
	// Done and Of are iterations, over all trials.
	Done int `json:"iterations_done"`
	Of   int `json:"iterations"`
	// Closing says why no further trials begin.
	Closing string `json:"closing,omitempty"`
	// Definition and Table are artifacts; the table comes at the end.
	Definition store.Ref  `json:"definition"`
	Table      *store.Ref `json:"table,omitempty"`
	// Report is where the sweep's page is, once it was written.
	Report   string   `json:"report,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Costs are what the trials have cost by device kind, up to their newest commits.
	Costs []activities.Cost `json:"costs,omitempty"`
}

func (s *sweeping) counts() SweepCounts {
	c := SweepCounts{Trials: len(s.trials)}
	for _, t := range s.trials {
		*c.of(t.State)++
	}
	return c
}

func (s *sweeping) status() SweepStatus {
	out := SweepStatus{
		Sweep: s.id, Phase: s.phase, Counts: s.counts(), Parallel: s.Parallel, Metrics: s.definition.Metrics, Goal: s.definition.Goal,
		Closing: s.Closing, Definition: s.Written, Report: s.Report, Warnings: s.warnings, Costs: s.Costs,
	}
	for _, t := range s.trials {
		out.Done += t.Iterations
		if t.State.Final() {
			out.Of += t.Iterations // no further trials will come
		} else {
			out.Of += t.of.Iterations
		}
	}
	if s.result != nil {
		out.Table = &s.result.Table
	}
	return out
}

// PageOf asks for a page of a table.
type PageOf struct {
	Offset int `json:"offset,omitempty"`
	// Limit is at most 500; 0 means 100.
	Limit int `json:"limit,omitempty"`
}

// TrialLine is a trial in the live table.
type TrialLine struct {
	sweep.Row
	// Run is the trial's workflow id.
	Run string `json:"run"`
	// Seconds since it began, until it ended.
	Seconds     int `json:"seconds"`
	LostDevices int `json:"lost_devices"`
	Recomputed  int `json:"recomputed_updates"`
	// Waiting is the fingerprint of the device it waits for.
	Waiting string `json:"waiting,omitempty"`
	// Note is why it failed, is paused, or was stopped early.
	Note string `json:"note,omitempty"`
}

// TablePage is the answer to the query "table": of the trials and of the settings
// those from Offset on.
type TablePage struct {
	Sweep    string             `json:"sweep"`
	Phase    string             `json:"phase"`
	Counts   SweepCounts        `json:"counts"`
	Metrics  []string           `json:"metrics,omitempty"`
	Offset   int                `json:"offset"`
	Rows     []TrialLine        `json:"trials"`
	Settings []sweep.SettingRow `json:"settings"`
}

const (
	pageLimit   = 100
	pageMaximum = 500
)

func (s *sweeping) page(of PageOf) (TablePage, error) {
	if of.Limit == 0 {
		of.Limit = pageLimit
	}
	if of.Offset < 0 || of.Limit < 0 || of.Limit > pageMaximum {
		return TablePage{}, fmt.Errorf("offset %d, limit %d: both are at least 0, and the limit at most %d", of.Offset, of.Limit, pageMaximum)
	}
	out := TablePage{Sweep: s.id, Phase: s.phase, Counts: s.counts(), Metrics: s.definition.Metrics, Offset: of.Offset,
		Rows: []TrialLine{}, Settings: []sweep.SettingRow{}}
	for i := of.Offset; i < min(of.Offset+of.Limit, len(s.trials)); i++ {
		out.Rows = append(out.Rows, s.line(s.trials[i]))
	}
	settings := s.settings()
	if of.Offset < len(settings) {
		out.Settings = settings[of.Offset:min(of.Offset+of.Limit, len(settings))]
	}
	return out, nil
}

func (s *sweeping) row(t *trial) sweep.Row {
	return sweep.Row{
		Trial: t.of.Label, Setting: t.of.Setting, Seed: t.of.Seed, State: t.State, Iterations: t.Iterations, Of: t.of.Iterations,
		Metrics: s.definition.Named(t.Values),
	}
}

func (s *sweeping) settings() []sweep.SettingRow {
	if s.tally == nil {
		s.tally = s.definition.NewTally()
	}
	for i, t := range s.trials {
		s.tally.Set(i, t.of.Setting, t.State, t.Values)
	}
	return s.tally.Settings()
}

func (s *sweeping) line(t *trial) TrialLine {
	l := TrialLine{
		Row: s.row(t), Run: sweep.ID(s.id, t.of.Label), LostDevices: t.LostDevices, Recomputed: t.Recomputed, Waiting: t.Waiting, Note: t.Reason,
	}
	if t.Stop != 0 && l.Note == "" {
		l.Note = fmt.Sprintf("stopped early, by its first %d iterations", t.Stop)
	}
	if t.Started != 0 {
		end := t.Ended
		if end == 0 {
			end = workflow.Now(s.root).Unix()
		}
		l.Seconds = int(end - t.Started)
	}
	return l
}

// doing is the phase in words.
func (s *sweeping) doing() string {
	switch {
	case s.cancelled:
		return "cancelling: trials end at their last committed iterations"
	case s.Closing != "":
		return s.Closing + ": no more trials begin"
	}
	return "running trials"
}

// showEvery is how often at most the Current Details are written while many trials are
// open: each report changes them, and writing them visits all trials.
const showEvery = time.Second

// show sets the phase and the Current Details of the Web UI. If few trials are open, a
// report may be the last for long, so that each is shown.
func (s *sweeping) show(ctx workflow.Context, phase string) {
	now := workflow.Now(ctx)
	if phase == s.phase && len(s.open) > maxShown && now.Sub(s.shown) < showEvery {
		return
	}
	s.phase, s.shown = phase, now
	workflow.SetCurrentDetails(ctx, spaced(s.details()))
}

// maxShown bounds the lines of the Current Details; the query has all.
const maxShown = 20

func (s *sweeping) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n", s.phase)
	if !s.ready {
		return b.String()
	}
	b.WriteString(s.link(s.id))
	fmt.Fprintf(&b, "%d trials: %s. At most %d at once.\n\n", len(s.trials), s.counts(), s.Parallel)
	metric := s.definition.Metrics[0]
	if settings := s.settings(); len(settings) > 0 {
		fmt.Fprintf(&b, "| setting | done | %s | 95 %% interval |\n|---|---|---|---|\n", metric)
		for i, row := range settings {
			if i == maxShown {
				fmt.Fprintf(&b, "\n… and %d more\n", len(settings)-i)
				break
			}
			mean, interval := missing, missing
			if st, ok := row.Metrics[metric]; ok {
				mean = number(st.Mean)
				if st.Low.Finite() && st.N > 2 { // of two seeds no interval says anything
					low, high := sweep.Possible(metric, float64(st.Low), float64(st.High))
					interval = number(canon.Float(low)) + " to " + number(canon.Float(high))
				}
			}
			fmt.Fprintf(&b, "| `%s` | %d of %d | %s | %s |\n", row.Setting, row.Done, row.Trials, mean, interval)
		}
		b.WriteString("\n")
	}
	if len(s.open) > 0 {
		fmt.Fprintf(&b, "| open trial | iteration | %s | |\n|---|---|---|---|\n", metric)
		for i, t := range s.open {
			if i == maxShown {
				fmt.Fprintf(&b, "\n… and %d more\n", len(s.open)-i)
				break
			}
			last := missing
			if len(t.Values) > 0 && t.Values[0].At >= 0 {
				last = number(t.Values[0].Last)
			}
			note := ""
			switch t.State {
			case sweep.Waiting:
				note = "waiting for a device"
			case sweep.Paused:
				note = "paused"
			}
			fmt.Fprintf(&b, "| `%s` | %d of %d | %s | %s |\n", t.of.Label, t.Iterations, t.of.Iterations, last, note)
		}
	}
	showCosts(&b, s.Costs)
	s.reasons(&b, sweep.Paused)
	s.reasons(&b, sweep.Failed)
	if s.result != nil {
		fmt.Fprintf(&b, "\nTable: `%s`\n", s.result.Table.Key)
	}
	if s.Report != "" {
		fmt.Fprintf(&b, "\nReport: `%s`\n", s.Report)
	}
	for _, w := range s.warnings {
		fmt.Fprintf(&b, "\nWarning: %s\n", strings.ReplaceAll(w, "\n", " "))
	}
	return b.String()
}

// reasons lists the trials in a state, with the reason of each.
func (s *sweeping) reasons(b *strings.Builder, state sweep.State) {
	shown := 0
	for _, t := range s.trials {
		if t.State == state && shown < maxShown {
			shown++
			name := strings.ToUpper(string(state[:1])) + string(state[1:])
			fmt.Fprintf(b, "\n%s: `%s`: %s\n", name, t.of.Label, strings.ReplaceAll(t.Reason, "\n", " "))
		}
	}
}

// attributes upserts the search attributes, if the server knows them.
func (s *sweeping) attributes(ctx workflow.Context, phase string) {
	if !s.Attributes {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, attributeSweep.ValueSet(s.id), attributePhase.ValueSet(phase)); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes were not set", "error", err)
	}
}
