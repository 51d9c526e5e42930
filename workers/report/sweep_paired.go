package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// confidence is that of all intervals of means over seeds, by Student's distribution.
const confidence = 0.95

// bySeed are values by the seed of the run that they are of.
type bySeed map[uint64]float64

// measured are the newest values of trials by their seeds. Runs of one seed count once.
func (s Sweep) measured(trials []int, metric string) bySeed {
	return s.bySeed(trials, func(i int) (float64, bool) {
		v, at := s.Trials[i].Run.value(metric)
		return v, at >= 0
	})
}

func (s Sweep) bySeed(trials []int, value func(trial int) (float64, bool)) bySeed {
	all := map[uint64][]float64{}
	for _, i := range trials {
		if v, ok := value(i); ok {
			all[s.Trials[i].Seed] = append(all[s.Trials[i].Seed], v)
		}
	}
	out := bySeed{}
	for seed, values := range all {
		out[seed] = statistics.Mean(values, confidence).Mean
	}
	return out
}

// minus is the mean difference of a metric to other values, over the seeds that both have.
func (b bySeed) minus(other bySeed, metric string) estimatePage {
	var differences []float64
	for _, seed := range slices.Sorted(maps.Keys(b)) {
		if o, ok := other[seed]; ok {
			differences = append(differences, b[seed]-o)
		}
	}
	return differenceOf(differences, metric)
}

// differenceOf is the mean of differences. Those of shares are between −1 and 1.
func differenceOf(differences []float64, metric string) estimatePage {
	e := estimateOf(differences)
	if sweep.Share(metric) {
		e.Low, e.High = max(e.Low, -1), min(e.High, 1)
	}
	return e
}

// estimateOf is the mean of values with its interval.
func estimateOf(values []float64) estimatePage {
	e := statistics.Mean(values, confidence)
	return estimatePage{N: e.N, Mean: point(e.Mean), Low: point(e.Low), High: point(e.High)}
}

// within is an estimate whose interval ends where a metric's possible values end.
func (e estimatePage) within(metric string) estimatePage {
	low, high := sweep.Possible(metric, float64(e.Low), float64(e.High))
	e.Low, e.High = point(low), point(high)
	return e
}

// effectPage is what an axis does to the metrics, all other axes being equal: over the
// cells, a cell being a combination of the other axes' values and a seed, in which each
// value of the axis has a measured run.
type effectPage struct {
	// Axis is the place of the axis; Combinations of the other axes' values have Cells.
	Axis         int `json:"axis"`
	Combinations int `json:"combinations"`
	// Metrics are by metric; one is empty where it has no cell.
	Metrics []effectMetricPage `json:"metrics"`
}

// effectMetricPage is by value of the axis.
type effectMetricPage struct {
	Cells int `json:"cells"`
	// Best is the place of the best value.
	Best int `json:"best"`
	// Means are over the cells, and Differences to the best value are in pairs of cells.
	Means       points         `json:"means"`
	Differences []estimatePage `json:"differences"`
}

// effects are those of the axes, if there are several: that of a single axis is what the
// settings' table says. An axis whose values were never tried under the same
// combination of the others has none.
func (s Sweep) effects(axes []axisPage, of [][]int) []effectPage {
	if len(axes) < 2 {
		return nil
	}
	var out []effectPage
	for i, axis := range axes {
		cells := combinations(axes, i)
		if len(cells) < 2 {
			continue
		}
		effect, measured := effectPage{Axis: i, Combinations: len(cells)}, false
		for m, metric := range s.Metrics {
			em := s.effect(cells, len(axis.Values), of, m, metric)
			effect.Metrics = append(effect.Metrics, em)
			measured = measured || em.Cells > 0
		}
		if measured {
			out = append(out, effect)
		}
	}
	return out
}

// combinations are the combinations of the other axes' values that all values of axis i
// have a setting of: for each, the settings by value.
func combinations(axes []axisPage, i int) [][]int {
	var keys []string
	at := map[string][]int{}
	for k, v := range axes[i].Of {
		key := ""
		for j, a := range axes {
			if j != i {
				key += fmt.Sprint(a.Of[k], ",")
			}
		}
		if at[key] == nil {
			keys = append(keys, key)
			at[key] = slices.Repeat([]int{-1}, len(axes[i].Values))
		}
		at[key][v] = k
	}
	var out [][]int
	for _, key := range keys {
		if !slices.Contains(at[key], -1) {
			out = append(out, at[key])
		}
	}
	return out
}

// effect is an axis's effect on a metric.
func (s Sweep) effect(cells [][]int, values int, of [][]int, m int, metric string) effectMetricPage {
	columns := make([][]float64, values)
	for _, settings := range cells {
		measured := make([]bySeed, values)
		for v, k := range settings {
			measured[v] = s.measured(of[k], metric)
		}
		for _, seed := range slices.Sorted(maps.Keys(measured[0])) {
			if slices.ContainsFunc(measured, func(b bySeed) bool { _, ok := b[seed]; return !ok }) {
				continue
			}
			for v := range columns {
				columns[v] = append(columns[v], measured[v][seed])
			}
		}
	}
	out := effectMetricPage{Cells: len(columns[0]), Means: points{}, Differences: []estimatePage{}}
	if out.Cells == 0 {
		return out
	}
	goal := s.goalOf(m)
	for v, column := range columns {
		out.Means = append(out.Means, statistics.Mean(column, confidence).Mean)
		if better(out.Means[v], out.Means[out.Best], goal) {
			out.Best = v
		}
	}
	for _, column := range columns {
		differences := make([]float64, out.Cells)
		for c := range differences {
			differences[c] = column[c] - columns[out.Best][c]
		}
		out.Differences = append(out.Differences, differenceOf(differences, metric))
	}
	return out
}

// goalOf is the goal of a metric: the first one has the sweep's, the others the greatest.
func (s Sweep) goalOf(metric int) string {
	return sweep.Definition{Goal: s.Goal}.GoalOf(metric)
}

func better(a, b float64, goal string) bool {
	if goal == sweep.Minimize {
		return a < b
	}
	return a > b
}

// order are the places of the settings, the best by the first metric first, those without
// a value last.
func order(settings []settingPage, goal string) []int {
	out := make([]int, len(settings))
	for i := range out {
		out[i] = i
	}
	has := func(i int) bool { return len(settings[i].Values) > 0 && settings[i].Values[0].N > 0 }
	slices.SortStableFunc(out, func(a, b int) int {
		switch {
		case has(a) != has(b):
			if has(a) {
				return -1
			}
			return 1
		case !has(a):
			return 0
		case better(float64(settings[a].Values[0].Mean), float64(settings[b].Values[0].Mean), goal):
			return -1
		case better(float64(settings[b].Values[0].Mean), float64(settings[a].Values[0].Mean), goal):
			return 1
		}
		return 0
	})
	return out
}
