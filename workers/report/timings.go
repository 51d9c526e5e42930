package report

import (
	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// timingsPage is where the time went, of the iterations that have telemetry.
type timingsPage struct {
	// Iterations have telemetry, of All that are committed.
	Iterations int `json:"iterations"`
	All        int `json:"all"`
	// Steps are in the order of their names.
	Steps []stepPage `json:"steps"`
	// Lost counts the lost device sessions; Recomputed counts the updates applied again
	// in a rebuild; the seconds are for waiting, compiling and loading.
	Lost       int     `json:"lost"`
	Recomputed int     `json:"recomputed"`
	Wait       float64 `json:"wait"`
	Compile    float64 `json:"compile"`
	Load       float64 `json:"load"`
	// Losses are the iterations that lost devices.
	Losses []lossPage `json:"losses,omitempty"`
	// Between are the seconds from the commit before to each one, by branch; null
	// for the first.
	Between []points `json:"between"`
	// Work are the seconds of the steps' own work.
	Work []points `json:"work"`
}

type stepPage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Count   int     `json:"count"` // iterations that have it
	Tokens  int     `json:"tokens,omitempty"`
}

type lossPage struct {
	Branch     int `json:"b"`
	Iteration  int `json:"i"`
	Lost       int `json:"lost"`
	Recomputed int `json:"recomputed"`
}

// timings adds up what telemetry says; nil if there is none.
func (r *Run) timings() *timingsPage {
	p := &timingsPage{}
	steps := map[string]*stepPage{}
	for _, b := range r.Branches {
		between, work := make(points, len(b.Iterations)), make(points, len(b.Iterations))
		var before *run.IterationTelemetry
		for k, it := range b.Iterations {
			p.All++
			between[k], work[k] = absent, absent
			t := it.Telemetry
			if t == nil {
				before = nil
				continue
			}
			p.Iterations++
			if before != nil && t.Committed.After(before.Committed) {
				between[k] = t.Committed.Sub(before.Committed).Seconds()
			}
			before = t
			sum := p.add(t, steps)
			work[k] = sum.Seconds
			if t.LostDevices > 0 {
				p.Losses = append(p.Losses, lossPage{Branch: b.Number, Iteration: it.Manifest.Iteration, Lost: t.LostDevices,
					Recomputed: sum.Recomputed})
			}
		}
		p.Between, p.Work = append(p.Between, between), append(p.Work, work)
	}
	if p.Iterations == 0 {
		return nil
	}
	for _, name := range sortedKeys(steps) {
		p.Steps = append(p.Steps, *steps[name])
	}
	return p
}

// add counts an iteration and gives the sum of its steps.
func (p *timingsPage) add(t *run.IterationTelemetry, steps map[string]*stepPage) activities.Telemetry {
	var sum activities.Telemetry
	for _, name := range sortedKeys(t.Steps) {
		step := t.Steps[name]
		if !canon.Float(step.Seconds).Finite() {
			continue
		}
		sum = sum.Plus(step)
		if steps[name] == nil {
			steps[name] = &stepPage{Name: name}
		}
		steps[name].Seconds += step.Seconds
		steps[name].Tokens += step.Tokens
		steps[name].Count++
	}
	p.Lost += t.LostDevices
	p.Recomputed += sum.Recomputed
	p.Wait, p.Compile, p.Load = p.Wait+sum.WaitSeconds, p.Compile+sum.CompileSeconds, p.Load+sum.LoadSeconds
	return sum
}
