package sweep

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/spec"
)

var (
	varyKeys = []string{"grid", "list", "random", "seeds"}
	topKeys  = append([]string{"description", "base"}, append(varyKeys, "parallel", "on_failure", "metrics", "goal", "early_stopping", "report")...)
)

// knownMetrics are the most used metrics, for a hint.
var knownMetrics = []string{"success/mean", "reward/mean", "response_length/mean", "actor/entropy", "actor/grad_norm"}

// defaultMetrics are shown if a sweep names none.
var defaultMetrics = []string{"success/mean", "reward/mean", EvaluationPrefix + "success/mean"}

// maxSeed is the largest seed: every JSON reader keeps it.
const maxSeed = 1 << 53

// Decode reads a sweep strictly, fills in the defaults and expands it. The trials are in
// the order in which they are started: all settings with the first seed, then with the
// next. The error, of type strict.Problems, lists all problems at once, up to a bound.
// Problems of one trial's spec are under its label, problems of all trials under "base".
func Decode(b []byte, known Known) (Definition, []Trial, error) {
	m, problems := document(b)
	if problems != nil {
		return Definition{}, nil, problems
	}
	if p, is := spec.OfAnother(strict.NewObject(m...), spec.SweepType, wholeSweep); is {
		return Definition{}, nil, strict.Problems{p}
	}
	r := &reader{}
	d := Definition{Parallel: DefaultParallel, OnFailure: Continue, Metrics: defaultMetrics, Goal: Maximize}
	var v vary
	based := false
	for _, m := range m {
		switch m.Key {
		case "description":
			d.Description, _ = r.text(m.Key, m.Value, 1000)
		case "base":
			based = true
			d.Base = r.base(m.Value, known)
		case "parallel":
			d.Parallel = r.integer(m.Key, m.Value, 1, MaxParallel)
		case "on_failure":
			d.OnFailure = r.one(m.Key, m.Value, Continue, Stop)
		case "metrics":
			d.Metrics = r.metrics(m.Value)
		case "goal":
			d.Goal = r.one(m.Key, m.Value, Maximize, Minimize)
		case "early_stopping":
			d.Stopping = r.stopping(m.Value)
		case "report":
			d.Report = r.report(m.Value)
		default:
			if !v.read(r, m) {
				r.unknown("", m.Key, topKeys)
			}
		}
	}
	if !based {
		r.add("base", "nothing", "a spec, or a preset's name", `{"base": "bandit-demo", …}`)
	}
	if !v.any() && len(r.problems) == 0 {
		r.add(wholeSweep, "nothing that varies", "a grid, a list, random draws or seeds", `{"grid": {"selection.keep": [0.25, 1]}}`)
	}
	if err := r.problems.Err(); err != nil {
		return Definition{}, nil, err
	}
	trials := v.trials(r, d.Base, known.Spec, nil)
	if err := r.problems.Err(); err != nil {
		return Definition{}, nil, err
	}
	for _, t := range trials {
		d.MaxIterations = max(d.MaxIterations, t.Iterations)
	}
	r.numbers(d, len(trials))
	if d.Stopping != nil && len(d.Stopping.Rungs(d.MaxIterations)) == 0 {
		r.add("early_stopping.first", strconv.Itoa(d.Stopping.First), fmt.Sprintf("less than the %d iterations of the longest trial", d.MaxIterations), "")
	}
	return d, trials, r.problems.Err()
}

// More expands an addition to a sweep: a document with grid, list, random and seeds over
// the sweep's base. have are its trials so far; a repeated trial is a problem.
func More(d Definition, have []Trial, b []byte, known spec.Known) ([]Trial, error) {
	m, problems := document(b)
	if problems != nil {
		return nil, problems
	}
	r := &reader{}
	var v vary
	for _, m := range m {
		if !v.read(r, m) {
			r.unknown("", m.Key, varyKeys)
		}
	}
	if !v.any() && len(r.problems) == 0 {
		r.add(wholeSweep, "nothing that varies", "a grid, a list, random draws or seeds", "")
	}
	if err := r.problems.Err(); err != nil {
		return nil, err
	}
	more := v.trials(r, d.Base, known, have)
	for _, t := range more {
		d.MaxIterations = max(d.MaxIterations, t.Iterations)
	}
	r.numbers(d, len(have)+len(more))
	return more, r.problems.Err()
}

// numbers refuses more than the workflow could carry along.
func (r *reader) numbers(d Definition, trials int) {
	if each := len(d.Metrics) + len(d.Stopping.Rungs(d.MaxIterations)); trials*each > MaxNumbers {
		r.add("metrics", fmt.Sprintf("%d trials of %d metrics and rungs", trials, each), fmt.Sprintf("at most %d of trials times metrics and rungs", MaxNumbers),
			"fewer metrics, or rungs further apart")
	}
}

// base reads the base: a spec's object, or a preset's name.
func (r *reader) base(n strict.Node, known Known) json.RawMessage {
	switch n.Kind() {
	case strict.Object:
		return canonical(n.Raw())
	case strict.String:
		name, _ := n.Text()
		if known.Base == nil {
			r.add("base", found(n), "a spec's object", "presets are not known here")
			return nil
		}
		b, err := known.Base(name)
		if err == nil {
			if _, problems := document(b); problems != nil {
				err = problems
			}
		}
		if err != nil {
			r.add("base", found(n), "a spec's object, or a preset's name", err.Error())
			return nil
		}
		return canonical(string(b))
	}
	r.add("base", found(n), "a spec's object, or a preset's name", "")
	return nil
}

func (r *reader) metrics(n strict.Node) []string {
	list := n.Items()
	if len(list) == 0 || len(list) > MaxMetrics {
		r.add("metrics", found(n), fmt.Sprintf("an array of 1 to %d names", MaxMetrics), "")
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for i, item := range list {
		at := fmt.Sprintf("metrics[%d]", i)
		name, ok := r.text(at, item, 80)
		if ok && (name == "" || seen[name]) {
			r.add(at, found(item), "a name, each once", "")
		}
		seen[name] = true
		if hint := strict.DidYouMean(name, knownMetrics); ok && hint != "" && !strings.Contains(name, "/") {
			r.add(at, found(item), "a metric's name (docs/metric-names.md)", hint)
		}
		out = append(out, name)
	}
	return out
}

// change is a new value of a field.
type change struct {
	path  string
	value json.RawMessage // canonical
}

// setting is what a trial changes of the base, except for the seed.
type setting struct {
	label   string
	changes []change
}

type axis struct {
	path   string
	values []json.RawMessage
}

// vary is how trials differ.
type vary struct {
	grid   []axis
	list   []setting
	random *random
	seeds  []uint64
	// count is a number of seeds instead of a list: they are counted from the base's
	// seed.
	count int
}

func (v *vary) any() bool {
	return v.grid != nil || v.list != nil || v.random != nil || v.seeds != nil || v.count > 0
}

// read takes a member that says how trials differ; false for any other member.
func (v *vary) read(r *reader, m strict.Member) bool {
	switch m.Key {
	case "grid":
		v.grid = r.grid(m.Value)
	case "list":
		v.list = r.list(m.Value)
	case "random":
		v.random = r.random(m.Value)
	case "seeds":
		v.seeds, v.count = r.seeds(m.Value)
	default:
		return false
	}
	return true
}

func (r *reader) grid(n strict.Node) []axis {
	m := n.Members()
	if len(m) == 0 {
		r.add("grid", found(n), "an object of fields and the values each takes", `{"selection.keep": [0.25, 0.5, 1]}`)
		return nil
	}
	var out []axis
	var paths []string
	for _, m := range m {
		at := within("grid", m.Key)
		if !r.path(at, m.Key) {
			continue
		}
		values := m.Value.Items()
		if len(values) == 0 {
			r.add(at, found(m.Value), "an array of at least one value", "a value that does not vary belongs into the base")
			continue
		}
		a := axis{path: m.Key}
		for _, v := range values {
			a.values = append(a.values, canonical(v.Raw()))
		}
		out, paths = append(out, a), append(paths, m.Key)
	}
	r.apart("grid", paths)
	return out
}

func (r *reader) list(n strict.Node) []setting {
	list := n.Items()
	if len(list) == 0 || len(list) > MaxTrials {
		r.add("list", found(n), fmt.Sprintf("an array of 1 to %d objects of fields and values", MaxTrials), `[{"label": "kept", "selection.keep": 0.25}]`)
		return nil
	}
	var out []setting
	for i, item := range list {
		at := fmt.Sprintf("list[%d]", i)
		m := item.Members()
		if len(m) == 0 {
			r.add(at, found(item), "an object of fields and values", "")
			continue
		}
		var s setting
		var paths []string
		for _, m := range m {
			if m.Key == "label" {
				s.label = r.label(at, m.Value)
			} else if r.path(within(at, m.Key), m.Key) {
				s.changes, paths = append(s.changes, change{m.Key, canonical(m.Value.Raw())}), append(paths, m.Key)
			}
		}
		r.apart(at, paths)
		if s.label == "" {
			s.label = labelOf(s.changes)
		}
		out = append(out, s)
	}
	return out
}

// seeds reads the seeds, or how many there are.
func (r *reader) seeds(n strict.Node) ([]uint64, int) {
	if n.Kind() == strict.Number {
		return nil, r.integer("seeds", n, 1, MaxSeeds)
	}
	list := n.Items()
	if len(list) == 0 || len(list) > MaxSeeds {
		r.add("seeds", found(n), fmt.Sprintf("an array of 1 to %d seeds, or their number", MaxSeeds), "")
		return nil, 0
	}
	seen := map[int]bool{}
	var out []uint64
	for i, item := range list {
		at := fmt.Sprintf("seeds[%d]", i)
		n := r.integer(at, item, 0, maxSeed)
		if seen[n] {
			r.add(at, found(item), "each seed once", "")
		}
		seen[n] = true
		out = append(out, uint64(n))
	}
	return out, 0
}

// settings are the product of the list and the grid, or the random draws.
func (v *vary) settings(r *reader) []setting {
	if v.random != nil {
		if v.grid != nil || v.list != nil {
			r.add("random", "random draws beside a grid or a list", "one of them", "")
			return nil
		}
		return v.random.settings(r)
	}
	out := []setting{{}}
	if v.list != nil {
		out = v.list
	}
	n := len(out)
	for _, a := range v.grid {
		if n *= len(a.values); n > MaxTrials {
			r.tooMany()
			return nil
		}
	}
	// The first axis is the outermost, as the document reads.
	for _, a := range v.grid {
		var next []setting
		for _, s := range out {
			for _, value := range a.values {
				c := change{a.path, value}
				next = append(next, setting{
					label:   joinLabels(s.label, labelOf([]change{c})),
					changes: append(append([]change(nil), s.changes...), c),
				})
			}
		}
		out = next
	}
	if v.list != nil && v.grid != nil {
		for _, s := range out {
			before := len(r.problems)
			var paths []string
			for _, c := range s.changes {
				paths = append(paths, c.path)
			}
			if r.apart("grid", paths); len(r.problems) > before {
				return nil
			}
		}
	}
	return out
}

func (r *reader) tooMany() {
	r.add(wholeSweep, fmt.Sprintf("more than %d trials", MaxTrials), fmt.Sprintf("at most %d: settings times seeds", MaxTrials), "fewer values, or random draws in place of the grid")
}

// baseSeed is the seed that the base has.
func baseSeed(base json.RawMessage) uint64 {
	var s struct {
		Seed *json.Number `json:"seed"`
	}
	if json.Unmarshal(base, &s) == nil && s.Seed != nil {
		if n, err := strconv.ParseUint(s.Seed.String(), 10, 64); err == nil && n <= maxSeed {
			return n
		}
	}
	return spec.Default(spec.FromStarter).Seed
}

// round writes a drawn number so that a label can be read: six digits.
func round(f, low, high float64) json.RawMessage {
	short, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 6, 64), 64)
	if err != nil {
		short = f
	}
	return canonical(strconv.FormatFloat(math.Min(math.Max(short, low), high), 'g', -1, 64))
}

// joinLabels puts two parts of a label together.
func joinLabels(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ",")
}
