package sweep

import (
	"cmp"
	"math"
	"slices"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// Judge decides which trials are stopped as their points come: each call goes on where the
// one before ended. Points and ends that it has seen must stay; where one is taken back, a
// new judge begins anew.
type Judge struct {
	rule  *Stopping
	rungs []int
	goal  string
	// next is, at each rung, the first trial that is not settled there: all before it have
	// passed the rung, ended or been stopped.
	next []int
	// before are, at each rung, the sorted values that the next trial is compared with.
	before [][]float64
	gone   []bool // stopped at an earlier rung
}

// NewJudge is a judge that has seen nothing. The rule may be nil: it stops none.
func (s *Stopping) NewJudge(rungs []int, goal string) *Judge {
	j := &Judge{rule: s, rungs: rungs, goal: goal}
	if s != nil {
		j.next, j.before = make([]int, len(rungs)), make([][]float64, len(rungs))
	}
	return j
}

// Decide says which of so many trials are stopped, and at which rung, without those of
// earlier calls.
func (j *Judge) Decide(trials int, progress func(i int) Progress) []Decision {
	var out []Decision
	for len(j.gone) < trials {
		j.gone = append(j.gone, false)
	}
	settled := trials // at the rung before
	for k := range j.next {
		for ; j.next[k] < settled; j.next[k]++ {
			i := j.next[k]
			if j.gone[i] {
				continue
			}
			p := progress(i)
			there := k < len(p.Points) && p.Points[k].Known
			if !there && !p.Ended {
				break
			}
			if !there {
				continue
			}
			at := p.Points[k]
			before := j.before[k]
			if bound, stop := j.rule.judge(float64(at.Judged), before, j.goal); stop {
				j.gone[i] = true
				out = append(out, Decision{Trial: i, Iterations: j.rungs[k], Value: at.Judged, Bound: canon.Float(bound), Before: len(before)})
			}
			// It counts at this rung, stopped or not: it got there.
			if v := float64(at.Against); !math.IsNaN(v) {
				j.before[k] = insert(before, v)
			}
		}
		settled = j.next[k]
	}
	slices.SortStableFunc(out, func(a, b Decision) int { return cmp.Compare(a.Trial, b.Trial) })
	return out
}

// Continues tells whether points begin with others: whether a judge that saw those may go
// on with these.
func Continues(seen, points []Point) bool {
	same := func(a, b canon.Float) bool { return a == b || math.IsNaN(float64(a)) && math.IsNaN(float64(b)) }
	return len(points) >= len(seen) && slices.EqualFunc(seen, points[:len(seen)], func(a, b Point) bool {
		return a.Known == b.Known && same(a.Judged, b.Judged) && same(a.Against, b.Against)
	})
}
