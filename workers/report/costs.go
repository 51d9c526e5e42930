package report

import (
	"cmp"

	"github.com/reprise-rl/reprise/activities"
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

// trialCost is what a trial cost over all kinds of devices, or several trials together, in
// seconds. Money is absent where no second has a price.
type trialCost struct {
	Held       point `json:"held"`
	Useful     point `json:"useful"`
	Recomputed point `json:"recomputed"`
	Lost       point `json:"lost"`
	Waiting    point `json:"waiting"`
	Money      point `json:"money"`
	// Partly says that not all seconds have a price.
	Partly bool `json:"partly,omitempty"`
	// Runs are those whose costs are known.
	Runs int `json:"runs"`
	sum  activities.Cost
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
	return costOf(sum, 1)
}

func costOf(sum activities.Cost, runs int) *trialCost {
	out := &trialCost{
		Held: point(sum.Held), Useful: point(sum.Useful), Recomputed: point(sum.Recomputed), Lost: point(sum.Lost), Waiting: point(sum.Waiting),
		Money: point(absent), Partly: sum.Unpriced > 0, Runs: runs, sum: sum,
	}
	if sum.Unpriced < sum.Held {
		out.Money = point(sum.Money)
	}
	return out
}

// plus adds the costs of others; nil is not known, and adds nothing.
func (c *trialCost) plus(other *trialCost) *trialCost {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	return costOf(c.sum.Plus(other.sum), c.Runs+other.Runs)
}
