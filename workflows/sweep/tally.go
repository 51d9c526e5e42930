package sweep

import (
	"cmp"
	"math"
	"slices"
)

// Tally has the settings of a table whose rows change: it computes the statistics of a
// setting again only if a row of it has changed.
type Tally struct {
	metrics  []string
	at       map[string]int
	settings []tallied
	rows     []tallyRow
	computed int // how often a setting's statistics were computed
}

// tallied is a setting with its rows.
type tallied struct {
	SettingRow
	rows  []int
	first int // the first row that is not dropped
	stale bool
}

// tallyRow is what counts of a row.
type tallyRow struct {
	setting       int
	dropped, done bool
	last          []float64 // of the metrics, if it is done; NaN if never measured
}

// NewTally is a tally without rows.
func (d Definition) NewTally() *Tally { return &Tally{metrics: d.Metrics, at: map[string]int{}} }

// Set says what row i is now: one that is there, or the next one. values are in the
// definition's order.
func (t *Tally) Set(i int, setting string, state State, values []Value) {
	if i == len(t.rows) {
		k, ok := t.at[setting]
		if !ok {
			k = len(t.settings)
			t.at[setting] = k
			t.settings = append(t.settings, tallied{SettingRow: SettingRow{Setting: setting}})
		}
		t.settings[k].rows = append(t.settings[k].rows, i)
		t.settings[k].stale = true
		t.rows = append(t.rows, tallyRow{setting: k})
	}
	row := &t.rows[i]
	dropped, done := state == Dropped, state == Done
	if row.dropped == dropped && row.done == done && (!done || row.has(values, len(t.metrics))) {
		return
	}
	row.dropped, row.done, row.last = dropped, done, nil
	if done {
		row.last = make([]float64, len(t.metrics))
		for m := range row.last {
			row.last[m] = lastOf(values, m)
		}
	}
	t.settings[row.setting].stale = true
}

// has tells whether the row's values are these.
func (r *tallyRow) has(values []Value, metrics int) bool {
	for m := range metrics {
		if v := lastOf(values, m); v != r.last[m] && !(math.IsNaN(v) && math.IsNaN(r.last[m])) {
			return false
		}
	}
	return true
}

// lastOf is the last value of a metric; NaN if it was never measured.
func lastOf(values []Value, metric int) float64 {
	if metric >= len(values) || values[metric].At < 0 {
		return math.NaN()
	}
	return float64(values[metric].Last)
}

// Settings are the settings of the rows, in the order in which they first come, without
// those whose rows are all dropped.
func (t *Tally) Settings() []SettingRow {
	order := make([]*tallied, 0, len(t.settings))
	for i := range t.settings {
		s := &t.settings[i]
		if s.stale {
			t.compute(s)
		}
		if s.Trials > 0 {
			order = append(order, s)
		}
	}
	slices.SortFunc(order, func(a, b *tallied) int { return cmp.Compare(a.first, b.first) })
	var out []SettingRow
	for _, s := range order {
		out = append(out, s.SettingRow)
	}
	return out
}

// compute computes a setting's statistics.
func (t *Tally) compute(s *tallied) {
	t.computed++
	s.stale = false
	s.Trials, s.Done, s.Metrics = 0, 0, nil
	values := make([][]float64, len(t.metrics))
	for _, i := range s.rows {
		r := &t.rows[i]
		if r.dropped {
			continue
		}
		if s.Trials++; s.Trials == 1 {
			s.first = i
		}
		if !r.done {
			continue
		}
		s.Done++
		for m, v := range r.last {
			if !math.IsNaN(v) {
				values[m] = append(values[m], v)
			}
		}
	}
	for m, list := range values {
		if len(list) == 0 {
			continue
		}
		if s.Metrics == nil {
			s.Metrics = map[string]Statistic{}
		}
		s.Metrics[t.metrics[m]] = statistic(list)
	}
}
