package workflows

import (
	"fmt"

	"github.com/reprise-rl/reprise/workflows/sweep"
)

// follow adds an iteration to a trial's curve and records the points at the rungs that the
// trial has reached. A point also decides about other trials, so it must equal the point
// in the store. The curve is complete as long as each report follows the previous one,
// from the trial's first iteration, on one branch. If a report is missing, because an
// earlier sweep began the trial or the trial rolled back, the store is asked for the
// points once the trial reaches the rung.
func (s *sweeping) follow(t *trial, c TrialIteration) {
	switch {
	case t.Iterations == 0 && c.Branch == 0 && c.Version == t.of.Before+1:
		t.Whole = true
	case c.Branch != t.Branch || c.Version != t.Iterations+1:
		t.Whole, t.Curve = false, sweep.Curve{}
	}
	k := len(t.Points)
	if !t.Whole {
		t.needsPoints = t.needsPoints || k < len(s.rungs) && s.rungs[k] <= c.Version
		return
	}
	at := func(version int) {
		for ; k < len(s.rungs) && s.rungs[k] <= version; k++ {
			t.Points, s.newPoints = append(t.Points, s.definition.Stopping.At(t.Curve)), true
		}
	}
	at(c.Version - 1) // another run's iterations: nothing was measured
	if v, ok := c.Metrics[s.definition.Metrics[0]]; ok {
		t.Curve = t.Curve.Add(float64(v), s.definition.Goal)
	}
	at(c.Version)
}

// readPoints reads the points of open trials whose reports do not have them. Points that
// cannot be read now are read when the trial has ended.
func (s *sweeping) readPoints(page []*trial) error {
	for _, t := range page {
		t.needsPoints = false // a report that comes meanwhile may ask again
	}
	outcomes, err := s.outcomes(page, fmt.Sprintf("how %d open trials did", len(page)), func(*trial) int { return 0 })
	if err != nil {
		return err
	}
	for i, o := range outcomes {
		if t := page[i]; len(o.Points) > len(t.Points) {
			if !sweep.Continues(t.Points, o.Points) {
				s.judge = nil
			}
			t.Points, s.newPoints = o.Points, true
		}
	}
	return nil
}
