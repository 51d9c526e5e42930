package report

import (
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// evaluatedPage is what a setting's runs reached on a suite: the first version that was
// evaluated and the newest one, each the mean over the runs.
type evaluatedPage struct {
	Setting int    `json:"setting"`
	Suite   string `json:"suite"`
	// Versions are the newest ones of the runs, in ascending order, and Episodes what one
	// evaluation has at least.
	Versions []int `json:"versions"`
	Episodes int   `json:"episodes"`
	// First, Last and Reward are means over runs; a single run's success has its own
	// interval. Difference is that of the newest success to the reference setting, seed by
	// seed; it has no pair for the reference itself.
	First      estimatePage `json:"first"`
	Last       estimatePage `json:"last"`
	Reward     estimatePage `json:"reward"`
	Difference estimatePage `json:"difference"`
}

// ends are a run's first and newest evaluations of a suite.
type ends struct {
	first, last               activities.Metrics
	firstVersion, lastVersion int
}

// suiteEnds are by suite, along the way to the newest version.
func (r *Run) suiteEnds() map[string]ends {
	out := map[string]ends{}
	if r == nil {
		return out
	}
	for _, it := range r.Line() {
		for _, e := range it.Manifest.Evaluations {
			at, ok := out[e.Suite]
			if !ok || e.Version < at.firstVersion {
				at.first, at.firstVersion = e.Metrics, e.Version
			}
			if !ok || e.Version >= at.lastVersion {
				at.last, at.lastVersion = e.Metrics, e.Version
			}
			out[e.Suite] = at
		}
	}
	return out
}

// evaluatedPages are the settings' evaluations, suite by suite.
func (s Sweep) evaluatedPages(of [][]int, reference int) []evaluatedPage {
	all := make([]map[string]ends, len(s.Trials))
	suites := map[string]bool{}
	for i, t := range s.Trials {
		all[i] = t.Run.suiteEnds()
		for suite := range all[i] {
			suites[suite] = true
		}
	}
	var out []evaluatedPage
	for _, suite := range slices.Sorted(maps.Keys(suites)) {
		success := func(k int) bySeed {
			return s.bySeed(of[k], func(i int) (float64, bool) {
				v := pointOf(all[i][suite].last, collapse.MetricSuccess)
				return v, v == v
			})
		}
		for k, trials := range of {
			p := evaluatedPage{Setting: k, Suite: suite, Versions: []int{}}
			var first, last []activities.Metrics
			for _, i := range trials {
				e, ok := all[i][suite]
				if !ok {
					continue
				}
				first, last = append(first, e.first), append(last, e.last)
				p.Versions = append(p.Versions, e.lastVersion)
				if n := pointOf(e.last, "trajectories"); n >= 1 && n < 1e9 && (p.Episodes == 0 || int(n) < p.Episodes) {
					p.Episodes = int(n)
				}
			}
			if len(last) == 0 {
				continue
			}
			slices.Sort(p.Versions)
			p.Versions = slices.Compact(p.Versions)
			p.First, p.Last, p.Reward = successOf(first), successOf(last), meanOf(last, "reward/mean")
			p.Difference = estimateOf(nil)
			if reference >= 0 && k != reference {
				p.Difference = success(k).minus(success(reference), collapse.MetricSuccess)
			}
			out = append(out, p)
		}
	}
	return out
}

// successOf is the mean success of evaluations; a single one has its own interval, Wilson's.
func successOf(all []activities.Metrics) estimatePage {
	e := meanOf(all, collapse.MetricSuccess)
	if e.N == 1 && len(all) == 1 {
		e.Low, e.High, e.Wilson = point(pointOf(all[0], "success/low")), point(pointOf(all[0], "success/high")), true
	}
	return e
}

func meanOf(all []activities.Metrics, metric string) estimatePage {
	var values []float64
	for _, m := range all {
		if v := pointOf(m, metric); v == v {
			values = append(values, v)
		}
	}
	return estimateOf(values).within(metric)
}
