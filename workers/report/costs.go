package report

import (
	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// costsPage is what a run has cost by device kind, from the telemetry of its committed
// iterations on all branches, and the sessions it lost.
type costsPage struct {
	Rows     []activities.Cost `json:"rows"`
	Sessions []sessionPage     `json:"sessions,omitempty"`
}

// sessionPage is a lost session and the iteration that was committed next.
type sessionPage struct {
	Branch    int `json:"b"`
	Iteration int `json:"i"`
	activities.LostSession
}

// costs adds up what telemetry says; nil if it says nothing, as that of older releases.
func (r *Run) costs() *costsPage {
	p := &costsPage{}
	for _, b := range r.Branches {
		for _, it := range b.Iterations {
			if it.Telemetry == nil {
				continue
			}
			p.Rows = activities.AddCosts(p.Rows, it.Telemetry.Costs...)
			for _, s := range it.Telemetry.LostSessions {
				p.Sessions = append(p.Sessions, sessionPage{Branch: b.Number, Iteration: it.Manifest.Iteration, LostSession: s})
			}
		}
	}
	if len(p.Rows) == 0 {
		return nil
	}
	return p
}

// trialCost is a trial's costs over all kinds of devices. Money is absent where no second
// has a price.
type trialCost struct {
	Held  point `json:"held"`
	Lost  point `json:"lost"` // the share of the held seconds
	Money point `json:"money"`
	// Partly says that not all seconds have a price.
	Partly bool `json:"partly,omitempty"`
}

// trialCost sums a run's costs; nil if they are not known.
func (r *Run) trialCost() *trialCost {
	costs := r.costs()
	if costs == nil {
		return nil
	}
	var sum activities.Cost
	for _, c := range costs.Rows {
		sum = sum.Plus(c)
	}
	out := &trialCost{Held: point(sum.Held), Lost: point(absent), Money: point(absent), Partly: sum.Unpriced > 0}
	if sum.Held > 0 && canon.Float(sum.Lost).Finite() {
		out.Lost = point(sum.Lost / sum.Held)
	}
	if sum.Unpriced < sum.Held {
		out.Money = point(sum.Money)
	}
	return out
}
