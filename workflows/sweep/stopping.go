package sweep

import (
	"fmt"
	"math"
	"slices"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/strict"
)

// Rules that stop trials early.
const (
	Median  = "median"
	Halving = "halving"
)

// maxRungs bounds how often a trial is judged.
const maxRungs = 64

// Stopping is a rule that stops trials early. A trial is judged at its rungs:
// iteration counts that the rule fixes. It is compared only with the trials before it in
// the table, and at each rung only when all of them have passed it or ended. So the
// decisions depend on what the trials measured and not on which was faster, and a
// disturbed sweep decides like an undisturbed one. A trial continues while its judgement
// waits. Its iterations after the rung at which it is stopped do not count. A trial that
// was rolled back is judged by its figures when it first reached the rung. A forked trial
// is judged by its own iterations: at rungs before them it is not judged and does not
// count.
//
//   - Median (Golovin et al. 2017, Google Vizier, "median stopping rule"): a trial is
//     stopped if its best value up to the rung is strictly worse than the median of the
//     means up to the rung of the trials before it.
//   - Halving (after Li et al. 2020, ASHA, in its stopping form): the trial and the trials
//     before it that reached the rung are ranked, and the best 1/Factor, rounded up,
//     continue.
//
// A trial with fewer than MinTrials trials before it is not stopped.
type Stopping struct {
	Method string `json:"method"`
	// First is the first rung, in iterations.
	First int `json:"first"`
	// Every is the distance of Median's rungs.
	Every int `json:"every,omitempty"`
	// Factor is Halving's: rungs are First·Factorᵏ.
	Factor int `json:"factor,omitempty"`
	// MinTrials is how many trials must have reached a rung before.
	MinTrials int `json:"min_trials"`
}

func (r *reader) stopping(n strict.Node) *Stopping {
	const at = "early_stopping"
	if n.Kind() != strict.Object {
		r.add(at, found(n), "an object with the keys method, first, every, factor, min_trials", `{"method": "median"}`)
		return nil
	}
	s := &Stopping{First: 10, MinTrials: 3}
	every, factor := 0, 0
	for _, m := range n.Members() {
		at := at + "." + m.Key
		switch m.Key {
		case "method":
			s.Method = r.one(at, m.Value, Median, Halving)
		case "first":
			s.First = r.integer(at, m.Value, 1, 1_000_000)
		case "every":
			every = r.integer(at, m.Value, 1, 1_000_000)
		case "factor":
			factor = r.integer(at, m.Value, 2, 100)
		case "min_trials":
			s.MinTrials = r.integer(at, m.Value, 1, MaxTrials)
		default:
			r.unknown("early_stopping", m.Key, []string{"method", "first", "every", "factor", "min_trials"})
		}
	}
	switch s.Method {
	case "":
		r.add(at+".method", "nothing", `one of "median", "halving"`, "")
	case Median:
		if factor != 0 {
			r.add(at+".factor", fmt.Sprint(factor), "nothing beside the median rule", `its rungs have "every"`)
		}
		if s.Every = every; every == 0 {
			s.Every = s.First
		}
	case Halving:
		if every != 0 {
			r.add(at+".every", fmt.Sprint(every), "nothing beside halving", `its rungs have "factor"`)
		}
		if s.Factor = factor; factor == 0 {
			s.Factor = 3
		}
	}
	return s
}

// Rungs are the iteration counts at which trials are judged, all below the
// longest trial's end.
func (s *Stopping) Rungs(iterations int) []int {
	var out []int
	if s == nil {
		return nil
	}
	for at := s.First; at < iterations && len(out) < maxRungs; {
		out = append(out, at)
		if s.Method == Median {
			at += s.Every
		} else {
			at *= s.Factor
		}
	}
	return out
}

// Curve is what is known of a trial's first metric as its iterations come.
type Curve struct {
	N    int         `json:"n,omitempty"`
	Sum  canon.Float `json:"sum,omitempty"`
	Best canon.Float `json:"best,omitempty"`
	Last canon.Float `json:"last,omitempty"`
}

// Add is the curve with another value; NaN leaves it as it is.
func (c Curve) Add(v float64, goal string) Curve {
	if math.IsNaN(v) {
		return c
	}
	if c.N == 0 || better(v, float64(c.Best), goal) {
		c.Best = canon.Float(v)
	}
	c.N, c.Sum, c.Last = c.N+1, c.Sum+canon.Float(v), canon.Float(v)
	return c
}

// Point is a trial at a rung.
type Point struct {
	// Known is set when the trial got there.
	Known bool `json:"known"`
	// Judged is the value that is judged, Against the one others are compared with;
	// NaN if the metric was never measured: then it is not judged and does not count.
	Judged  canon.Float `json:"judged"`
	Against canon.Float `json:"against"`
}

// At is the point of a curve at a rung.
func (s *Stopping) At(c Curve) Point {
	p := Point{Known: true, Judged: canon.Float(math.NaN()), Against: canon.Float(math.NaN())}
	if c.N == 0 {
		return p
	}
	if s.Method == Median {
		p.Judged, p.Against = c.Best, c.Sum/canon.Float(c.N)
	} else {
		p.Judged, p.Against = c.Last, c.Last
	}
	return p
}

// Along is points with the points at the further rungs that a line of iterations reached.
// values are the first metric at each iteration from the beginning; NaN if it was not
// measured or another run did the iteration.
//
// A trial that was rolled back has several branches, and each rung's point comes from the
// first branch that reached it. Pass them to Along in the order of branches, and no later
// branch changes a point.
func (s *Stopping) Along(points []Point, rungs []int, values []float64, goal string) []Point {
	var curve Curve
	for i, v := range values {
		curve = curve.Add(v, goal)
		if k := len(points); k < len(rungs) && rungs[k] == i+1 {
			points = append(points, s.At(curve))
		}
	}
	return points
}

// Progress is how far a trial got, as the rules see it.
type Progress struct {
	// Points are those at the rungs, as many as are known.
	Points []Point
	// Ended says that no further points will come.
	Ended bool
}

// Decision is that a trial is stopped.
type Decision struct {
	// Trial is its place in the table.
	Trial int `json:"trial"`
	// Iterations is the rung: so many of its iterations count.
	Iterations int `json:"iterations"`
	// Value was judged; Bound is the value that it needed.
	Value canon.Float `json:"value"`
	Bound canon.Float `json:"bound"`
	// Before is how many trials before it were at the rung.
	Before int `json:"before"`
}

// Decide says which trials are stopped, and at which rung. It is a function of the points
// alone: called with more of them it decides the same, and more.
func (s *Stopping) Decide(trials []Progress, rungs []int, goal string) []Decision {
	return s.NewJudge(rungs, goal).Decide(len(trials), func(i int) Progress { return trials[i] })
}

// judge says whether a value is to stop before sorted others, and the bound.
func (s *Stopping) judge(v float64, sorted []float64, goal string) (bound float64, stop bool) {
	n := len(sorted)
	if n < s.MinTrials || math.IsNaN(v) {
		return 0, false
	}
	if s.Method == Median {
		bound = sorted[n/2]
		if n%2 == 0 {
			bound = (sorted[n/2-1] + sorted[n/2]) / 2
		}
		return bound, better(bound, v, goal)
	}
	keep := (n + s.Factor) / s.Factor // ⌈(n+1)/factor⌉
	place := keep - 1                 // the worst of those that continue, among the others
	if goal != Minimize {
		place = n - keep
	}
	if place < 0 || place >= n {
		return 0, false
	}
	bound = sorted[place]
	return bound, better(bound, v, goal)
}

func better(a, b float64, goal string) bool {
	if goal == Minimize {
		return a < b
	}
	return a > b
}

func insert(sorted []float64, v float64) []float64 {
	at, _ := slices.BinarySearch(sorted, v)
	return slices.Insert(sorted, at, v)
}

// Text says why a trial was stopped.
func (d Decision) Text(s *Stopping, metric string) string {
	how := "the median of"
	if s.Method == Halving {
		how = fmt.Sprintf("the best 1/%d of itself and", s.Factor)
	}
	return fmt.Sprintf("stopped after %d iterations: %s %.6g did not reach %.6g, %s the %d trials before it",
		d.Iterations, metric, float64(d.Value), float64(d.Bound), how, d.Before)
}
