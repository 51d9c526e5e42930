package workflows

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// follow takes an iteration into a trial's curve and notes the points at the rungs
// it got to. A point decides over other trials too, so what is heard is what the
// store says or nothing: the curve is whole as long as each report follows the one
// before it, from the trial's first iteration on one branch. Where one is missing,
// as of a trial that was begun by an earlier sweep or went back, the store is asked
// for the points once the trial is at the rung.
func (s *sweeping) follow(t *trial, c TrialIteration) {
	switch {
	case t.Iterations == 0 && c.Branch == 0 && c.Version == t.of.Before+1:
		t.Whole = true
	case c.Branch != t.Branch || c.Version != t.Iterations+1:
		t.Whole, t.Curve = false, sweep.Curve{}
	}
	k := len(t.Points)
	if !t.Whole {
		t.behind = t.behind || k < len(s.rungs) && s.rungs[k] <= c.Version
		return
	}
	at := func(version int) {
		for ; k < len(s.rungs) && s.rungs[k] <= version; k++ {
			t.Points, s.judge = append(t.Points, s.definition.Stopping.At(t.Curve)), true
		}
	}
	at(c.Version - 1) // another run's iterations: nothing was measured
	if v, ok := c.Metrics[s.definition.Metrics[0]]; ok {
		t.Curve = t.Curve.Add(float64(v), s.definition.Goal)
	}
	at(c.Version)
}

// toRead are open trials whose points are to be read, at most so many as are
// summarized at once.
func (s *sweeping) toRead() []*trial {
	var out []*trial
	for _, t := range s.open {
		if t.behind && len(out) < pageSummaries {
			out = append(out, t)
		}
	}
	return out
}

// readPoints reads the points of open trials whose reports do not tell them. What
// cannot be read now is read when the trial has ended.
func (s *sweeping) readPoints(page []*trial) error {
	in := activities.SummarizeInput{Definition: s.definition}
	in.Definition.Base = nil // not needed to read
	for _, t := range page {
		t.behind = false // a report that comes meanwhile may ask again
		in.Trials = append(in.Trials, activities.SummarizeTrial{Run: sweep.ID(s.id, t.of.Label)})
	}
	r, err := steps.Summarize.Do(s.onHost(s.root, 0), fmt.Sprintf("how %d open trials did", len(page)), in)
	if err != nil {
		return err
	}
	for i, o := range r.Outcomes {
		if t := page[i]; len(o.Points) > len(t.Points) {
			t.Points, s.judge = o.Points, true
		}
	}
	return nil
}
