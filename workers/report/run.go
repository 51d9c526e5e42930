package report

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Run is a run as its store shows it.
type Run struct {
	// ID is the Train workflow's.
	ID string
	// Location is where its artifacts are, for people.
	Location string
	// SpecText is the resolved spec as it is stored, and Spec its readable part; nil and
	// zero if the spec is missing.
	SpecText json.RawMessage
	Spec     spec.Train
	// Branches are in order; a branch without any readable commit is left out.
	Branches []Branch
	// Missing is all that a report would show and could not be read, in a fixed
	// order.
	Missing []Missing
}

// Branch is a line of iterations of a run.
type Branch struct {
	Number int
	// Fork is the last iteration before the branch; nil if the run begins with the
	// branch, or if the manifest that names it is missing.
	Fork *Place
	// Opened says why it was opened; nil in the first.
	Opened *activities.Opened
	// Iterations are the readable commits, in order.
	Iterations []Iteration
	// Kept is the last iteration on the way to the run's newest version; a rollback
	// abandoned the later ones. It is -1 if none is kept.
	Kept int
	// Uncommitted are iterations after the last commit that were begun.
	Uncommitted []int
}

// Place is an iteration of a branch. Run is the other run's id if the run was forked,
// else empty.
type Place struct {
	Run               string
	Branch, Iteration int
}

// Iteration is a committed iteration.
type Iteration struct {
	store.Link
	// Smoothed are the moving averages of the metrics, by the metric's name, with the
	// detectors' decay. Unlike the recorded ones they are corrected for their beginning.
	// A branch continues the averages of its fork point.
	Smoothed activities.Metrics
	// Detected is the detectors' result; nil if they did not look at it.
	Detected *activities.Detected
	// Telemetry is what its steps took; nil if there is none.
	Telemetry *run.IterationTelemetry
}

// Missing is something a report would show.
type Missing struct {
	// What it is, in words.
	What string `json:"what"`
	// Why: "removed by retention", "missing", "altered", …
	Why string `json:"why"`
	// Count is how many objects, and Key the first of them; both may be zero.
	Count int    `json:"count,omitempty"`
	Key   string `json:"key,omitempty"`
}

// Newest is the newest readable commit of the newest branch; false if there is
// none.
func (r *Run) Newest() (Iteration, bool) {
	if len(r.Branches) == 0 {
		return Iteration{}, false
	}
	its := r.Branches[len(r.Branches)-1].Iterations
	return its[len(its)-1], true
}

// At finds a committed iteration.
func (r *Run) At(p Place) (Iteration, bool) {
	for b, it := range r.all() {
		if p.Run == "" && b.Number == p.Branch && it.Manifest.Iteration == p.Iteration {
			return it, true
		}
	}
	return Iteration{}, false
}

// all are the iterations of all branches, branch by branch.
func (r *Run) all() iter.Seq2[Branch, Iteration] {
	return func(yield func(Branch, Iteration) bool) {
		for _, b := range r.Branches {
			for _, it := range b.Iterations {
				if !yield(b, it) {
					return
				}
			}
		}
	}
}

// Line is the way to the newest version, oldest first: the iterations that were not
// abandoned.
func (r *Run) Line() []Iteration {
	var out []Iteration
	for b, it := range r.all() {
		if it.Manifest.Iteration <= b.Kept {
			out = append(out, it)
		}
	}
	return out
}

// String is one line: "not there: 3 × turn files: missing: runs/…".
func (m Missing) String() string {
	s := "not there: " + m.What + ": " + m.Why
	if m.Count > 1 {
		s = fmt.Sprintf("not there: %d × %s: %s", m.Count, m.What, m.Why)
	}
	if m.Key != "" {
		s += ": " + m.Key
	}
	return s
}
