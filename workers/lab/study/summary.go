package study

import (
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// Confidence is the confidence of all intervals of means over seeds, by Student's
// distribution.
const Confidence = 0.95

// Interval is a mean over seeds with its interval, which is NaN for one seed.
type Interval statistics.Estimate

// intervalOf is the interval of the finite values, rounded as records are.
func intervalOf(values []float64) Interval {
	e := Interval(statistics.Mean(finite(values), Confidence))
	e.Mean, e.Low, e.High = rounded(e.Mean), rounded(e.Low), rounded(e.High)
	return e
}

// Summary aggregates the seeds of a setting.
type Summary struct {
	Setting string
	Seeds   int
	// Success is the final share of the high arm, Executable that of episodes that
	// choose an arm, Reward the expected mean reward over the payouts.
	Success    Interval
	Executable Interval
	Reward     Interval
	// Start is that mean reward of the first version, Worse counts the runs that end
	// more than a tenth below it.
	Start Interval
	Worse int
	// Ends counts how runs ended.
	Ends map[End]int
	// Falls are those of the reward: where they began, in ascending order; Recovered
	// counts those that recovered.
	Falls     []int
	Recovered int
	// Detectors are those that fired, in the order of collapse.Rules.
	Detectors []Firing
	// Early and Late are the first and the last iterations' metrics, Spike the highest
	// gradient norm over the median one.
	Early map[string]Interval
	Late  map[string]Interval
	Spike Interval
}

// Firing is when a detector fired in the runs of a setting.
type Firing struct {
	Detector string
	Severity collapse.Severity
	// First holds the iteration in which it first fired in each run that it fired in, in
	// ascending order.
	First []int
	// Leads holds how many iterations before the fall it fired in each run in which it
	// fired and the reward fell, in ascending order; negative if after the fall.
	Leads []int
	// Unmet counts the runs in which it fired and the reward did not fall.
	Unmet int
}

// Summarize gives a summary of each setting that has records, in the order of
// Settings.
func Summarize(records []Record) []Summary {
	var out []Summary
	for _, s := range Settings() {
		var outcomes []Outcome
		for _, r := range records {
			if r.Setting == s.Name() {
				outcomes = append(outcomes, Judge(r))
			}
		}
		if len(outcomes) > 0 {
			out = append(out, summarize(s.Name(), outcomes))
		}
	}
	return out
}

func summarize(setting string, outcomes []Outcome) Summary {
	over := func(f func(Outcome) float64) Interval {
		values := make([]float64, len(outcomes))
		for n, o := range outcomes {
			values[n] = f(o)
		}
		return intervalOf(values)
	}
	s := Summary{
		Setting: setting, Seeds: len(outcomes), Ends: map[End]int{}, Falls: []int{}, Detectors: []Firing{},
		Success:    over(func(o Outcome) float64 { return o.Success }),
		Executable: over(func(o Outcome) float64 { return o.Executable }),
		Reward:     over(func(o Outcome) float64 { return o.Reward }),
		Start:      over(func(o Outcome) float64 { return o.Start }),
		Spike:      over(func(o Outcome) float64 { return o.Spike }),
		Early:      map[string]Interval{}, Late: map[string]Interval{},
	}
	for _, name := range Columns {
		s.Early[name] = over(func(o Outcome) float64 { return o.Early[name] })
		s.Late[name] = over(func(o Outcome) float64 { return o.Late[name] })
	}
	for _, o := range outcomes {
		s.Ends[o.End]++
		if o.Worse {
			s.Worse++
		}
		if o.Fell {
			s.Falls = append(s.Falls, o.Fall.Begins)
			if o.Fall.Recovered {
				s.Recovered++
			}
		}
	}
	slices.Sort(s.Falls)
	for _, rule := range collapse.Rules() {
		if f := firingOf(rule, outcomes); len(f.First) > 0 {
			s.Detectors = append(s.Detectors, f)
		}
	}
	return s
}

func firingOf(rule collapse.Rule, outcomes []Outcome) Firing {
	f := Firing{Detector: rule.Name, Severity: rule.Severity, Leads: []int{}}
	for _, o := range outcomes {
		first, fired := o.First[rule.Name]
		if !fired {
			continue
		}
		f.First = append(f.First, first)
		if lead, ok := o.Lead(rule.Name); ok {
			f.Leads = append(f.Leads, lead)
		} else {
			f.Unmet++
		}
	}
	slices.Sort(f.First)
	slices.Sort(f.Leads)
	return f
}

// Alarm is how often a detector fired in all runs.
type Alarm struct {
	Detector string
	// Harmed counts the harmed runs that it fired in (see Outcome.Harmed), Harmless the
	// others.
	Harmed   int
	Harmless int
	// Leads holds how many iterations before a fall it fired, in ascending order.
	Leads []int
}

// Alarms returns the detectors that fired, in the order of collapse.Rules, then any of
// them as "any"; and the number of harmed runs, of runs that fell, and of all runs.
func Alarms(records []Record) (alarms []Alarm, harmed, fell, runs int) {
	outcomes := make([]Outcome, len(records))
	for n, r := range records {
		outcomes[n] = Judge(r)
		if outcomes[n].Harmed() {
			harmed++
		}
		if outcomes[n].Fell {
			fell++
		}
	}
	any := Alarm{Detector: "any", Leads: []int{}}
	for _, rule := range collapse.Rules() {
		a := Alarm{Detector: rule.Name, Leads: firingOf(rule, outcomes).Leads}
		for _, o := range outcomes {
			if _, fired := o.First[rule.Name]; fired {
				a.count(o)
			}
		}
		if a.Harmed+a.Harmless > 0 {
			alarms = append(alarms, a)
		}
	}
	for _, o := range outcomes {
		if len(o.First) == 0 {
			continue
		}
		any.count(o)
		if o.Fell {
			any.Leads = append(any.Leads, o.Fall.Begins-slices.Min(slices.Collect(maps.Values(o.First))))
		}
	}
	slices.Sort(any.Leads)
	return append(alarms, any), harmed, fell, len(records)
}

func (a *Alarm) count(o Outcome) {
	if o.Harmed() {
		a.Harmed++
	} else {
		a.Harmless++
	}
}

// Pull is the bias of selection by standard deviation towards the high arm: its final
// share with a quarter of the groups kept, with all kept, and the difference by pairs of
// the same seed.
type Pull struct {
	Task       string
	Kept       Interval
	All        Interval
	Difference Interval
}

// Pulls compares StarPO-S with and without its selection on each task, by common seeds.
func Pulls(records []Record) []Pull {
	final := map[string]map[uint64]float64{}
	for _, r := range records {
		if final[r.Setting] == nil {
			final[r.Setting] = map[uint64]float64{}
		}
		final[r.Setting][r.Seed] = Judge(r).Success
	}
	var out []Pull
	for _, s := range Settings() {
		if !s.Algorithm.All {
			continue
		}
		with := s
		for _, a := range Algorithms {
			if a.Preset == s.Algorithm.Preset && !a.All {
				with.Algorithm = a
			}
		}
		kept, all := final[with.Name()], final[s.Name()]
		var k, a, d []float64
		for _, seed := range slices.Sorted(maps.Keys(all)) {
			if v, ok := kept[seed]; ok {
				k, a, d = append(k, v), append(a, all[seed]), append(d, v-all[seed])
			}
		}
		if len(d) > 0 {
			out = append(out, Pull{Task: s.Task(), Kept: intervalOf(k), All: intervalOf(a), Difference: intervalOf(d)})
		}
	}
	return out
}

// Curve is a metric of a setting over the iterations: [iterations].
type Curve []Interval

// curveOf is over the seeds of a setting.
func curveOf(records []Record, setting string, column func(Record) []float64) Curve {
	var all [][]float64
	for _, r := range records {
		if r.Setting == setting {
			all = append(all, column(r))
		}
	}
	if len(all) == 0 {
		return nil
	}
	out := make(Curve, len(all[0]))
	values := make([]float64, len(all))
	for n := range out {
		for i, c := range all {
			values[i] = c[n]
		}
		out[n] = intervalOf(values)
	}
	return out
}
