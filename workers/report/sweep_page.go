package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// sweepPage is what the page of a sweep shows.
type sweepPage struct {
	ID          string        `json:"id"`
	Location    string        `json:"location,omitempty"`
	Description string        `json:"description,omitempty"`
	State       string        `json:"state"`
	Missing     []Missing     `json:"missing,omitempty"`
	Metrics     []string      `json:"metrics"`
	Settings    []settingPage `json:"settings"`
	// Order are the settings' places, the best by the first metric first. Reference is the
	// place of the setting that the others are compared with: a sweep's best one, a
	// comparison's first one; -1 if there is none.
	Order     []int `json:"order"`
	Reference int   `json:"reference"`
	// Fields are the spec's fields in which the settings differ, Axes group them.
	Fields []fieldPage `json:"fields,omitempty"`
	Axes   []axisPage  `json:"axes,omitempty"`
	// Effects are what each axis does, the other axes being equal.
	Effects     []effectPage    `json:"effects,omitempty"`
	Evaluations []evaluatedPage `json:"evaluations,omitempty"`
	Trials      []trialPage     `json:"trials"`
	// Cost is that of all trials; absent where telemetry does not tell.
	Cost *trialCost `json:"cost,omitempty"`
	// Curves are of the settings that Shown names by their places.
	Shown  []int            `json:"shown"`
	Curves []sweepCurvePage `json:"curves"`
	// Length is the number of iterations of the longest run.
	Length int `json:"length"`
}

// settingPage is a setting and the means of its trials' newest values.
type settingPage struct {
	Name string `json:"name"`
	// Short is the name without what all settings share.
	Short  string         `json:"short"`
	Trials []int          `json:"trials"`
	Values []estimatePage `json:"values"` // one a metric
	// Differences are to the reference setting, over the seeds that both have; one a
	// metric, without a pair for the reference itself.
	Differences []estimatePage `json:"differences"`
	Cost        *trialCost     `json:"cost,omitempty"`
	// Seconds is the mean work of the trials that tell it, Memory the most that one needs
	// of a device, in bytes, by estimate.
	Seconds point `json:"seconds"`
	Memory  point `json:"memory"`
}

type estimatePage struct {
	N    int   `json:"n"`
	Mean point `json:"mean"`
	Low  point `json:"low"`
	High point `json:"high"`
	// Wilson says that the interval is a single run's own, over its episodes.
	Wilson bool `json:"wilson,omitempty"`
}

type trialPage struct {
	Label      string `json:"label"`
	Run        string `json:"run,omitempty"`
	Page       string `json:"page,omitempty"` // a link
	Setting    int    `json:"setting"`
	Seed       uint64 `json:"seed"`
	State      string `json:"state"`
	Iterations int    `json:"iterations"`
	Of         int    `json:"of,omitempty"`
	Note       string `json:"note,omitempty"`
	Branches   int    `json:"branches"`
	Lost       int    `json:"lost"`
	Seconds    point  `json:"seconds"`
	// Cost is absent where telemetry does not tell.
	Cost   *trialCost `json:"cost,omitempty"`
	Values []point    `json:"values"` // newest, one a metric
}

// sweepCurvePage is a metric, smoothed: of each shown setting the mean of its trials
// with its interval, and each trial.
type sweepCurvePage struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Unit  string   `json:"unit,omitempty"`
	Help  string   `json:"help,omitempty"`
	Head  bool     `json:"head,omitempty"`
	Mean  []points `json:"mean"`
	Low   []points `json:"low"`
	High  []points `json:"high"`
	// Raw is the mean that is not smoothed.
	Raw []points `json:"raw"`
	// Trials and RawTrials are by setting; only of the curves that people know.
	Trials    [][]points `json:"trials,omitempty"`
	RawTrials [][]points `json:"rawTrials,omitempty"`
	// Evaluations are by setting; only of the success.
	Evaluations [][]sweepPointPage `json:"evaluations,omitempty"`
}

// sweepPointPage is the mean success of an evaluation over a setting's trials.
type sweepPointPage struct {
	Version int `json:"v"`
	estimatePage
}

func sweepPageOf(s Sweep) *sweepPage {
	names, of := s.settings()
	p := &sweepPage{
		ID: s.ID, Location: s.Location, Description: s.Description, Missing: s.Missing, Metrics: s.Metrics,
		Settings: []settingPage{}, Trials: []trialPage{}, Curves: []sweepCurvePage{}, Shown: []int{}, Order: []int{}, Reference: -1,
	}
	if p.Metrics == nil {
		p.Metrics = []string{}
	}
	setting := make([]int, len(s.Trials))
	for k, trials := range of {
		for _, i := range trials {
			setting[i] = k
		}
	}
	ended := 0
	for i, t := range s.Trials {
		p.Trials = append(p.Trials, t.page(setting[i], s.Metrics))
		if n := p.Trials[i].Iterations; t.Of > 0 && n >= t.Of {
			ended++
		}
		if t.Run != nil {
			for _, it := range t.Run.Line() {
				p.Length = max(p.Length, it.Manifest.Iteration+1)
			}
		}
	}
	what := "trial"
	if s.Comparison {
		what = "run"
	}
	p.State = fmt.Sprintf("%d of %s did all their iterations; %s.", ended, human.Plural(len(s.Trials), what), human.Plural(len(names), "setting"))
	if !s.Final && !s.Comparison {
		p.State += " No table says how it ended: it is under way, or was stopped."
	}
	for k, name := range names {
		row := settingPage{Name: name, Trials: of[k], Memory: point(absent), Differences: []estimatePage{}}
		var seconds []float64
		memory := int64(0)
		for _, i := range of[k] {
			if v := float64(p.Trials[i].Seconds); v == v {
				seconds = append(seconds, v)
			}
			memory = max(memory, s.Trials[i].Memory)
			row.Cost = row.Cost.plus(p.Trials[i].Cost)
		}
		p.Cost = p.Cost.plus(row.Cost)
		if memory > 0 {
			row.Memory = point(memory)
		}
		row.Seconds = point(statistics.Mean(seconds, confidence).Mean)
		for _, metric := range s.Metrics {
			row.Values = append(row.Values, s.estimate(of[k], metric))
		}
		p.Settings = append(p.Settings, row)
	}
	s.compare(p, names, of)
	p.Shown = p.Order[:min(len(p.Order), maxCurves)]
	for _, c := range s.curves() {
		p.Curves = append(p.Curves, s.curve(c, p.Shown, of))
	}
	return p
}

func (t Trial) page(setting int, metrics []string) trialPage {
	p := trialPage{Label: t.Label, Setting: setting, Seed: t.Seed, State: t.State, Of: t.Of, Note: t.Note, Seconds: point(absent)}
	for _, m := range metrics {
		v, _ := t.Run.value(m)
		p.Values = append(p.Values, point(v))
	}
	if t.Page != "" {
		p.Page = href(t.Page)
	}
	if t.Run == nil {
		return p
	}
	p.Run, p.Branches, p.Cost = t.Run.ID, len(t.Run.Branches), t.Run.trialCost()
	for _, it := range t.Run.Line() {
		p.Iterations = it.Manifest.Iteration + 1
	}
	if times := t.Run.timings(); times != nil {
		p.Lost, p.Seconds = times.Lost, 0
		for _, step := range times.Steps {
			p.Seconds += point(step.Seconds)
		}
	}
	return p
}

// estimate is the mean of the newest values of trials. The success of a single run's
// evaluation has its own interval, Wilson's.
func (s Sweep) estimate(trials []int, metric string) estimatePage {
	var values []float64
	for _, i := range trials {
		if v, at := s.Trials[i].Run.value(metric); at >= 0 {
			values = append(values, v)
		}
	}
	e := estimateOf(values).within(metric)
	if len(trials) == 1 && metric == sweep.EvaluationPrefix+collapse.MetricSuccess {
		low, at := s.Trials[trials[0]].Run.value(sweep.EvaluationPrefix + "success/low")
		high, _ := s.Trials[trials[0]].Run.value(sweep.EvaluationPrefix + "success/high")
		e.Low, e.High, e.Wilson = point(low), point(high), at >= 0
	}
	return e
}

// compare says how the settings differ, in their fields and in their numbers.
func (s Sweep) compare(p *sweepPage, names []string, of [][]int) {
	p.Fields = s.fields(of)
	p.Axes = axesOf(p.Fields)
	for k, short := range s.shortNames(names, p.Fields) {
		p.Settings[k].Short = short
	}
	p.Order = order(p.Settings, s.Goal)
	if len(p.Order) > 0 {
		p.Reference = p.Order[0]
	}
	if s.Comparison && len(p.Order) > 0 {
		p.Reference = 0
	}
	p.Effects = s.effects(p.Axes, of)
	for _, metric := range s.Metrics {
		var reference bySeed
		if p.Reference >= 0 {
			reference = s.measured(of[p.Reference], metric)
		}
		for k := range p.Settings {
			difference := estimateOf(nil)
			if k != p.Reference {
				difference = s.measured(of[k], metric).minus(reference, metric)
			}
			p.Settings[k].Differences = append(p.Settings[k].Differences, difference)
		}
	}
	p.Evaluations = s.evaluatedPages(of, p.Reference)
}

// curves are those that people know, then all others that any trial has.
func (s Sweep) curves() []Curve {
	there := map[string]bool{}
	for _, t := range s.Trials {
		if t.Run != nil {
			for _, name := range t.Run.Names() {
				there[name] = true
			}
		}
	}
	var out []Curve
	for _, c := range Curves() {
		if there[c.Name] {
			out = append(out, c)
		}
		delete(there, c.Name)
	}
	names := sortedKeys(there)
	for _, name := range names {
		out = append(out, otherCurve(name, names))
	}
	return out
}

func (s Sweep) curve(c Curve, shown []int, of [][]int) sweepCurvePage {
	p := sweepCurvePage{Name: c.Name, Title: c.Title, Unit: c.Unit, Help: c.Help, Head: slices.Contains(Curves(), c)}
	for _, k := range shown {
		lines, raws := []points{}, []points{}
		for _, i := range of[k] {
			if raw, line := s.Trials[i].Run.along(c.Name); line != nil {
				lines, raws = append(lines, line), append(raws, raw)
			}
		}
		mean, low, high := band(c.Name, lines)
		raw, _, _ := band(c.Name, raws)
		p.Mean, p.Low, p.High, p.Raw = append(p.Mean, mean), append(p.Low, low), append(p.High, high), append(p.Raw, raw)
		if p.Head {
			p.Trials, p.RawTrials = append(p.Trials, lines), append(p.RawTrials, raws)
		}
		if c.Name == collapse.MetricSuccess {
			p.Evaluations = append(p.Evaluations, s.evaluations(of[k]))
		}
	}
	return p
}

// evaluations are the means over trials of their evaluations' success, by version. The
// interval is Student's over the trials; of a single one it is its own, Wilson's.
func (s Sweep) evaluations(trials []int) []sweepPointPage {
	values := map[int][]float64{}
	single := map[int]activities.Metrics{}
	for _, i := range trials {
		for version, metrics := range s.Trials[i].Run.evaluated() {
			if v := pointOf(metrics, collapse.MetricSuccess); v == v {
				values[version] = append(values[version], v)
				single[version] = metrics
			}
		}
	}
	out := []sweepPointPage{}
	for _, version := range slices.Sorted(maps.Keys(values)) {
		e := estimateOf(values[version]).within(collapse.MetricSuccess)
		p := sweepPointPage{version, e}
		switch {
		case e.N == 1:
			p.Low, p.High = point(pointOf(single[version], "success/low")), point(pointOf(single[version], "success/high"))
			p.Wilson = true
		case e.N < bandSeeds:
			p.Low, p.High = point(absent), point(absent)
		}
		out = append(out, p)
	}
	return out
}
