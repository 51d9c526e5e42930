package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/human"
)

// page is all that index.html shows but the trajectories, as its program reads it.
type page struct {
	// Kind is "run", "sweep" or "comparison"; the last two have the sweep's part.
	Kind  string     `json:"kind"`
	Title string     `json:"title"`
	Run   *runPage   `json:"run,omitempty"`
	Sweep *sweepPage `json:"sweep,omitempty"`
	// Build is what wrote the page. Pages are in no digest chain.
	Build string `json:"build"`
}

type runPage struct {
	ID          string       `json:"id"`
	Location    string       `json:"location"`
	Description string       `json:"description,omitempty"`
	State       string       `json:"state"`
	Facts       []factPage   `json:"facts"`
	Missing     []Missing    `json:"missing,omitempty"`
	Branches    []branchPage `json:"branches"`
	Curves      []curvePage  `json:"curves"`
	Events      []eventPage  `json:"events,omitempty"`
	Suites      []suitePage  `json:"suites,omitempty"`
	Timings     *timingsPage `json:"timings,omitempty"`
	Costs       *costsPage   `json:"costs,omitempty"`
	Changes     []changePage `json:"changes,omitempty"`
	Spec        string       `json:"spec,omitempty"`
	Device      []devicePage `json:"device,omitempty"`
}

// factPage is a number of the head of the page.
type factPage struct {
	Label string `json:"label"`
	Value string `json:"value"`
	Note  string `json:"note,omitempty"`
}

// branchPage is a branch and the iterations that its curves have points for.
type branchPage struct {
	Number int `json:"n"`
	// Fork is [branch, iteration]; absent if the run begins with the branch.
	Fork []int  `json:"fork,omitempty"`
	From string `json:"from,omitempty"` // the fork point of a run that was forked
	X    []int  `json:"x"`
	Kept int    `json:"kept"`
	// Why, Changes and By say how it was opened.
	Why     []string `json:"why,omitempty"`
	Changes []string `json:"changes,omitempty"`
	Left    []int    `json:"left,omitempty"` // [branch, iteration] where the run was
}

// curvePage is a metric: raw and smoothed, by branch, a point an iteration.
type curvePage struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Unit  string   `json:"unit,omitempty"`
	Help  string   `json:"help,omitempty"`
	Head  bool     `json:"head,omitempty"`
	Raw   []points `json:"raw"`
	EMA   []points `json:"ema,omitempty"`
	// Bad counts values that are not finite.
	Bad int `json:"bad,omitempty"`
}

type eventPage struct {
	Branch    int    `json:"b"`
	Iteration int    `json:"i"`
	Onset     int    `json:"onset"`
	Detector  string `json:"detector"`
	Severity  string `json:"severity"`
	Text      string `json:"text"`
	Action    string `json:"action"`
	Kept      bool   `json:"kept"`
}

type changePage struct {
	Branch    int      `json:"b"`
	Iteration int      `json:"i"`
	Changes   []string `json:"changes"`
	// Kept says that the iteration is on the way to the newest version.
	Kept bool `json:"kept"`
}

// devicePage is a fingerprint and the iterations that were computed on it.
type devicePage struct {
	Fingerprint string `json:"fingerprint"`
	Fields      string `json:"fields,omitempty"`
	Programs    int    `json:"programs"`
	Iterations  int    `json:"iterations"`
}

// runPageOf says what the page shows of a run.
func runPageOf(r *Run) *runPage {
	p := &runPage{
		ID: r.ID, Location: r.Location, Description: r.Spec.Description, State: r.state(), Facts: r.facts(), Missing: r.Missing,
		Branches: []branchPage{}, Curves: []curvePage{}, Suites: r.suites(), Timings: r.timings(), Costs: r.costs(), Changes: r.changes(),
		Device: r.devices(),
	}
	for i := range r.Branches {
		p.Branches = append(p.Branches, r.Branches[i].page())
		p.Events = append(p.Events, r.Branches[i].events()...)
	}
	known := map[string]bool{}
	for _, c := range r.curves() {
		known[c.Name] = true
		if curve := r.curve(c); curve != nil {
			curve.Head = true
			p.Curves = append(p.Curves, *curve)
		}
	}
	for _, name := range r.Names() {
		if !known[name] {
			p.Curves = append(p.Curves, *r.curve(otherCurve(name, r.Names())))
		}
	}
	var text bytes.Buffer
	if r.SpecText != nil && json.Indent(&text, r.SpecText, "", "  ") == nil {
		p.Spec = text.String()
	}
	return p
}

// state says how far the run is, as far as the store shows.
func (r *Run) state() string {
	newest, ok := r.Newest()
	if !ok {
		return "Nothing is committed: the run has just begun, or failed before its first commit."
	}
	done := newest.Manifest.Iteration + 1
	switch {
	case r.Spec.Iterations > 0 && done >= r.Spec.Iterations:
		return "Complete."
	case newest.Detected != nil && newest.Detected.Decision.Action == "stop":
		return "Stopped by a detector."
	}
	return "Not complete: the run is under way, was stopped, or failed (the Temporal Web UI tells which)."
}

func (r *Run) facts() []factPage {
	newest, ok := r.Newest()
	if !ok {
		return nil
	}
	line := len(r.Line())
	all := 0
	var episodes float64
	lost, events := 0, 0
	for _, it := range r.all() {
		all++
		shared := it.Manifest.Rollout != nil && it.Manifest.Rollout.Update > 0
		if v := pointOf(it.Manifest.Metrics, "rollout/trajectories"); v > 0 && v < 1e9 && !shared {
			episodes += v
		}
		if it.Telemetry != nil {
			lost += it.Telemetry.LostDevices
		}
		if it.Detected != nil {
			events += len(it.Detected.Events)
		}
	}
	progress := factPage{Label: "Iterations", Value: strconv.Itoa(newest.Manifest.Iteration + 1)}
	if r.Spec.Iterations > 0 {
		progress.Value += " of " + strconv.Itoa(r.Spec.Iterations)
	}
	if all > line {
		progress.Note = fmt.Sprintf("and %d abandoned", all-line)
	}
	out := []factPage{progress}
	for _, name := range []string{"success/mean", "reward/mean"} {
		label := map[string]string{"success/mean": "Success in training", "reward/mean": "Reward in training"}[name]
		text := short
		if name == "success/mean" {
			text = percent
		}
		if v, ok := newest.Manifest.Metrics[name]; ok && v.Finite() {
			out = append(out, factPage{Label: label, Value: text(float64(v)), Note: "last iteration; smoothed " + text(float64(newest.Smoothed[name]))})
		}
	}
	if e := r.lastEvaluation(); e != nil {
		out = append(out, factPage{Label: "Success, " + e.Suite, Value: percent(pointOf(e.Metrics, "success/mean")),
			Note: fmt.Sprintf("%s to %s, version %d", percent(pointOf(e.Metrics, "success/low")), percent(pointOf(e.Metrics, "success/high")), e.Version)})
	}
	out = append(out, factPage{Label: "Episodes", Value: strconv.FormatFloat(episodes, 'f', -1, 64), Note: "played in training"})
	if len(r.Branches) > 1 || events > 0 {
		out = append(out, factPage{Label: "Branches", Value: strconv.Itoa(len(r.Branches)), Note: human.Plural(events, "detector event")})
	}
	if lost > 0 {
		out = append(out, factPage{Label: "Devices lost", Value: strconv.Itoa(lost), Note: "the run continued without them"})
	}
	return out
}

func percent(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "—"
	}
	return strconv.FormatFloat(100*v, 'f', 1, 64) + " %"
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// appendPoint writes a number as JSON, in six digits; null if it is not finite.
func appendPoint(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', 6, 64)
}

func (b *Branch) page() branchPage {
	p := branchPage{Number: b.Number, Kept: b.Kept}
	for _, it := range b.Iterations {
		p.X = append(p.X, it.Manifest.Iteration)
	}
	if f := b.Fork; f != nil && f.Run == "" {
		p.Fork = []int{f.Branch, f.Iteration}
	} else if f != nil {
		p.From = f.Run
	}
	if o := b.Opened; o != nil {
		p.Left, p.Changes = []int{o.Branch, o.Iteration}, o.Changes
		for _, e := range o.Events {
			p.Why = append(p.Why, e.Detector+": "+e.Text)
		}
	}
	return p
}

func (b *Branch) events() []eventPage {
	var out []eventPage
	for _, it := range b.Iterations {
		if it.Detected == nil {
			continue
		}
		for _, e := range it.Detected.Events {
			out = append(out, eventPage{
				Branch: b.Number, Iteration: it.Manifest.Iteration, Onset: e.Onset, Detector: e.Detector, Severity: string(e.Severity),
				Text: e.Text, Action: string(it.Detected.Decision.Action), Kept: it.Manifest.Iteration <= b.Kept,
			})
		}
	}
	return out
}

// curve is a metric along every branch; nil if no iteration has it.
func (r *Run) curve(c Curve) *curvePage {
	out := &curvePage{Name: c.Name, Title: c.Title, Unit: c.Unit, Help: c.Help}
	there := false
	for i := range r.Branches {
		b := &r.Branches[i]
		raw, ema := make(points, len(b.Iterations)), make(points, len(b.Iterations))
		for k, it := range b.Iterations {
			raw[k], ema[k] = pointOf(it.Manifest.Metrics, c.Name), pointOf(it.Smoothed, c.Name)
			_, has := it.Manifest.Metrics[c.Name]
			there = there || has
		}
		out.Raw, out.EMA = append(out.Raw, raw), append(out.EMA, ema)
		out.Bad += b.notFinite(c.Name)
	}
	if !there {
		return nil
	}
	return out
}

// devices are the fingerprints the run was computed on, in the order of their
// first iteration.
func (r *Run) devices() []devicePage {
	var out []devicePage
	at := map[string]int{}
	for _, it := range r.all() {
		m := it.Manifest
		i, ok := at[m.Fingerprint]
		if !ok {
			i = len(out)
			at[m.Fingerprint] = i
			d := devicePage{Fingerprint: m.Fingerprint, Programs: len(m.Programs)}
			var text bytes.Buffer
			if m.Device != nil && json.Indent(&text, m.Device, "", "  ") == nil {
				d.Fields = text.String()
			}
			out = append(out, d)
		}
		out[i].Iterations++
	}
	return out
}

// metricsPage are an evaluation's figures as JSON has them.
type metricsPage map[string]float64

// MarshalJSON implements json.Marshaler: sorted names, null for what is not finite.
func (m metricsPage) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, name := range sortedKeys(m) {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		out = appendPoint(append(append(out, key...), ':'), m[name])
	}
	return append(out, '}'), nil
}

func metricsPageOf(m activities.Metrics) metricsPage {
	out := metricsPage{}
	for name, v := range m {
		out[name] = float64(v)
	}
	return out
}
