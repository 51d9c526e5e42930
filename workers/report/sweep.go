package report

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// Sweep is runs that are compared: those of a sweep, or any that a person names.
type Sweep struct {
	// ID is the Sweep workflow's, or names the compared runs.
	ID string
	// Comparison says that a person named the runs, see [LoadRuns]: the first one's setting
	// is what the others are compared with, and a trial's label is its run's id.
	Comparison  bool
	Location    string
	Description string
	// Metrics are the table's; trials are judged by the first. A name that begins with
	// "evaluation/" belongs to the first suite of the newest evaluation.
	Metrics []string
	// Goal of the first: "maximize" or "minimize".
	Goal string
	// Trials are in the order of the table.
	Trials []Trial
	// Final says that the sweep has ended and its table was written, and that no run has
	// advanced since.
	Final   bool
	Missing []Missing
}

// Trial is a run of a sweep.
type Trial struct {
	// Label names it within the sweep, Setting is the label without the seed: trials
	// of one setting differ in the seed alone.
	Label, Setting string
	Seed           uint64
	// State is the trial's state, as the table says; empty if there is no table yet, or
	// if the state may have changed since.
	State string
	// Spec is what the sweep's definition asks for: the base with the trial's changes.
	Spec json.RawMessage
	// Of is how many iterations its spec has; 0 if that is not known.
	Of int
	// Note says what a rule decided about it.
	Note string
	// Memory is an estimate of what it needs of a device, in bytes; 0 if it is not known.
	Memory int64
	// Run is the trial's stored run; nil if nothing is stored.
	Run *Run
	// Page is the path of the trial's own page from the sweep's page: '/'-separated, its
	// segments are the names of files or objects. Empty if there is none.
	Page string
}

// maxCurves is the largest number of settings whose curves a page shows; more could not
// be distinguished. The table has all.
const maxCurves = 24

// WriteSweep writes the report of a sweep: one page.
func WriteSweep(ctx context.Context, s Sweep, sink Sink) (Summary, error) {
	if err := ctx.Err(); err != nil {
		return Summary{}, err
	}
	w := &writer{sink: sink}
	for _, t := range s.Trials {
		if t.Run != nil {
			w.count(t.Run)
		}
	}
	w.summary.Missing = s.Missing
	if err := w.page(s.page()); err != nil {
		return w.summary, fmt.Errorf("report of %s %q: %w", s.kind(), s.ID, err)
	}
	return w.summary, nil
}

// kind is "sweep" or "comparison".
func (s Sweep) kind() string {
	if s.Comparison {
		return "comparison"
	}
	return "sweep"
}

func (s Sweep) page() page {
	return page{Kind: s.kind(), Title: s.ID, Sweep: sweepPageOf(s)}
}

// value is the newest value of a metric along the way to a run's newest version, and
// the iteration it is of; absent if there is none.
func (r *Run) value(metric string) (v float64, at int) {
	v, at = absent, -1
	if r == nil {
		return v, at
	}
	name, ofEvaluation := strings.CutPrefix(metric, sweep.EvaluationPrefix)
	for _, it := range r.Line() {
		metrics := it.Manifest.Metrics
		if ofEvaluation {
			metrics = nil
			if len(it.Manifest.Evaluations) > 0 {
				metrics = it.Manifest.Evaluations[0].Metrics
				for _, e := range it.Manifest.Evaluations {
					if e.Version == it.Manifest.Version() {
						metrics = e.Metrics
						break
					}
				}
			}
		}
		if x, ok := metrics[name]; ok && x.Finite() {
			v, at = float64(x), it.Manifest.Iteration
		}
	}
	return v, at
}

// slim lets go of what a sweep's page does not show, so that many runs fit.
func (r *Run) slim() {
	for _, b := range r.Branches {
		for i := range b.Iterations {
			m := *b.Iterations[i].Manifest
			m.Turns, m.Programs, m.Device, m.Base.Files, m.Snapshot, m.Settings = nil, nil, nil, nil, nil, nil
			m.Teacher, m.Judge = nil, nil
			for k := range m.Evaluations {
				m.Evaluations[k].Turns = nil
			}
			b.Iterations[i].Manifest = &m
		}
	}
}

// settings are the settings of trials, in the order in which they first come, and the
// places of their trials.
func (s Sweep) settings() (names []string, trials [][]int) {
	at := map[string]int{}
	for i, t := range s.Trials {
		k, ok := at[t.Setting]
		if !ok {
			k = len(names)
			at[t.Setting] = k
			names, trials = append(names, t.Setting), append(trials, nil)
		}
		trials[k] = append(trials[k], i)
	}
	return names, trials
}

// bandSeeds is the smallest number of curves that have a band: Student's interval of two
// values is 12.7 standard errors wide to either side and would hide everything.
const bandSeeds = 3

// band is the mean of several curves with its 95 % interval by Student's
// distribution, iteration by iteration, as far as the metric's values can be. Fewer than
// bandSeeds curves have no interval.
func band(metric string, curves []points) (mean, low, high points) {
	n := 0
	for _, c := range curves {
		n = max(n, len(c))
	}
	for i := range n {
		var values []float64
		for _, c := range curves {
			if i < len(c) && c[i] == c[i] {
				values = append(values, c[i])
			}
		}
		e := statistics.Mean(values, confidence)
		if e.N < bandSeeds {
			e.Low, e.High = absent, absent
		}
		e.Low, e.High = sweep.Possible(metric, e.Low, e.High)
		mean, low, high = append(mean, e.Mean), append(low, e.Low), append(high, e.High)
	}
	return mean, low, high
}

// along is a metric along the way to a run's newest version, raw and smoothed:
// [iterations], from iteration 0.
func (r *Run) along(metric string) (raw, smooth points) {
	if r == nil {
		return nil, nil
	}
	for _, it := range r.Line() {
		for len(raw) < it.Manifest.Iteration {
			raw, smooth = append(raw, absent), append(smooth, absent)
		}
		raw = append(raw, pointOf(it.Manifest.Metrics, metric))
		smooth = append(smooth, pointOf(it.Smoothed, metric))
	}
	return raw, smooth
}

// evaluated are the successes of the evaluations of a run's first suite, by version, along
// the way to its newest version.
func (r *Run) evaluated() map[int]activities.Metrics {
	out := map[int]activities.Metrics{}
	if r == nil {
		return out
	}
	suite := ""
	for _, it := range r.Line() {
		for _, e := range it.Manifest.Evaluations {
			if suite == "" {
				suite = e.Suite
			}
			if _, there := out[e.Version]; e.Suite == suite && !there {
				out[e.Version] = e.Metrics
			}
		}
	}
	return out
}

// sweepKey is the beginning of a sweep's artifacts of a name: "sweeps/SWEEP/table.".
func sweepKey(id, name string) string { return store.SweepDir(id) + "/" + name + "." }
