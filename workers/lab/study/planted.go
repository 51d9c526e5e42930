package study

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workers/telemetry/iterations"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Planted is the course of a run whose learning rate was raised by an update.
type Planted struct {
	Run string `json:"run"`
	// Rate is the learning rate that was set, Turned the first iteration with it.
	Rate   float64 `json:"rate"`
	Turned int     `json:"turned"`
	// Rollbacks lists the run's rollbacks in order.
	Rollbacks []Rollback `json:"rollbacks"`
	// Rows lists the iterations of the run, branch by branch.
	Rows []PlantedRow `json:"rows"`
	// Before is the last evaluation before the learning rate was raised, After the last of
	// the run. Ended is the final version, which differs from After's if the run stopped
	// early.
	Before Evaluation `json:"before"`
	After  Evaluation `json:"after"`
	Ended  int        `json:"ended"`
}

// PlantedRow is an iteration.
type PlantedRow struct {
	Branch     int         `json:"branch"`
	Iteration  int         `json:"iteration"`
	Rate       float64     `json:"learning_rate"`
	Success    canon.Float `json:"success"`
	Executable canon.Float `json:"executable"`
	Entropy    canon.Float `json:"entropy"`
	GradNorm   canon.Float `json:"grad_norm"`
}

// Rollback is one rollback: its source, its target, its causes and its changes.
type Rollback struct {
	Branch    int      `json:"branch"`
	Iteration int      `json:"iteration"`
	To        int      `json:"to"`
	Events    []string `json:"events"`
	Changes   []string `json:"changes"`
}

// ReadPlanted reads the course of a run from its manifests.
func ReadPlanted(ctx context.Context, s store.Store, run string, rate float64) (*Planted, error) {
	links, err := iterations.Load(ctx, s, run)
	if err != nil {
		return nil, fmt.Errorf("planted collapse: %w", err)
	}
	p := &Planted{Run: run, Rate: rate, Turned: -1, Rollbacks: []Rollback{}}
	for _, link := range links {
		if err := p.add(link.Manifest); err != nil {
			return nil, fmt.Errorf("planted collapse, iteration %d of branch %d: %w", link.Manifest.Iteration, link.Manifest.Branch, err)
		}
	}
	return p, nil
}

// add appends a manifest. Manifests are added in the order of their commits.
func (p *Planted) add(m *store.Manifest) error {
	var settings spec.Settings
	if err := json.Unmarshal(m.Settings, &settings); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if m.Opened != nil {
		var o activities.Opened
		if err := json.Unmarshal(m.Opened, &o); err != nil {
			return fmt.Errorf("why the branch was opened: %w", err)
		}
		r := Rollback{Branch: o.Branch, Iteration: o.Iteration, To: m.Iteration - 1, Changes: o.Changes}
		for _, e := range o.Events {
			r.Events = append(r.Events, e.Detector+": "+e.Text)
		}
		p.Rollbacks = append(p.Rollbacks, r)
	}
	value := func(name string) canon.Float {
		v, ok := m.Metrics[name]
		if !ok {
			return canon.Float(math.NaN())
		}
		return rounded(v)
	}
	p.Rows = append(p.Rows, PlantedRow{
		Branch: m.Branch, Iteration: m.Iteration, Rate: settings.Update.LearningRate,
		Success: value(Success), Executable: value(Executable), Entropy: value(Entropy), GradNorm: value(GradNorm),
	})
	p.Ended = m.Version()
	if p.Turned < 0 && settings.Update.LearningRate == p.Rate {
		p.Turned = m.Iteration
	}
	for _, e := range m.Evaluations {
		if p.Turned < 0 {
			p.Before = evaluationOf(e)
		}
		p.After = evaluationOf(e)
	}
	return nil
}

// Difference is the increase of success from Before to After with the 95 % interval of two
// independent shares. Both are measured on the same instances, so the true interval is
// narrower.
func (p *Planted) Difference() (mean, low, high float64) {
	deviation := func(e Evaluation) float64 { return float64(e.High-e.Low) / 2 }
	mean = float64(p.After.Success - p.Before.Success)
	half := math.Hypot(deviation(p.Before), deviation(p.After))
	return mean, mean - half, mean + half
}

// Measured reports that the final version was evaluated.
func (p *Planted) Measured() bool { return p.After.Version == p.Ended }

// Recovered reports that the collapse was detected and that the run did not end worse: it
// ran to its end, and the difference's interval is not entirely below 0.
func (p *Planted) Recovered() bool {
	_, _, high := p.Difference()
	return p.Turned >= 0 && len(p.Rollbacks) > 0 && p.Measured() && high >= 0
}

// lowest is the lowest share of the high arm in a rollout with the raised rate.
func (p *Planted) lowest() float64 {
	low := math.Inf(1)
	for _, r := range p.Rows {
		if r.Rate == p.Rate {
			low = min(low, float64(r.Success))
		}
	}
	return low
}

// String describes the run.
func (p *Planted) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Run %s: learning rate %g from iteration %d on.\n\n", p.Run, p.Rate, p.Turned)
	for _, r := range p.Rollbacks {
		fmt.Fprintf(&b, "In iteration %d of branch %d: back to iteration %d, branch %d.\n", r.Iteration, r.Branch, r.To, r.Branch+1)
		for _, e := range r.Events {
			fmt.Fprintf(&b, "  seen: %s\n", e)
		}
		for _, c := range r.Changes {
			fmt.Fprintf(&b, "  changed: %s\n", c)
		}
	}
	fmt.Fprintf(&b, "\nSuccess on fixed instances, with 95 %% intervals:\n  before, version %d: %s\n  lowest of the collapsed rollouts: %.1f %%\n", p.Before.Version, p.Before, 100*p.lowest())
	if !p.Measured() {
		fmt.Fprintf(&b, "  it was stopped with version %d, which was not measured\n", p.Ended)
		return b.String()
	}
	mean, from, to := p.Difference()
	fmt.Fprintf(&b, "  at the end, version %d: %s\n  difference: %+.1f (%+.1f to %+.1f) points\n", p.After.Version, p.After, 100*mean, 100*from, 100*to)
	return b.String()
}

// String is the success with its interval.
func (e Evaluation) String() string {
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*float64(e.Success), 100*float64(e.Low), 100*float64(e.High))
}

// PlantedJSON encodes the runs as JSON.
func PlantedJSON(stories []*Planted) ([]byte, error) {
	b, err := json.MarshalIndent(stories, "", " ")
	if err != nil {
		return nil, fmt.Errorf("planted collapses: %w", err)
	}
	return append(b, '\n'), nil
}

// PlantedTable is a Markdown table with a row per run, and the mean difference.
func PlantedTable(stories []*Planted) string {
	var b strings.Builder
	b.WriteString("| run | turned at | detected at, by | back to | lowest | before | at the end | difference |\n|---|---|---|---|---|---|---|---|\n")
	var differences []float64
	for _, p := range stories {
		var seen, to []string
		for _, r := range p.Rollbacks {
			by := ""
			if len(r.Events) > 0 {
				by, _, _ = strings.Cut(r.Events[0], ":")
			}
			seen = append(seen, fmt.Sprintf("%d, %s", r.Iteration, by))
			to = append(to, strconv.Itoa(r.To))
		}
		after, difference := fmt.Sprintf("stopped with version %d", p.Ended), "–"
		if p.Measured() {
			mean, low, high := p.Difference()
			differences = append(differences, mean)
			after, difference = p.After.String(), fmt.Sprintf("%+.1f (%+.1f to %+.1f)", 100*mean, 100*low, 100*high)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %.1f %% | %s | %s | %s |\n", p.Run, p.Turned,
			strings.Join(seen, "; "), strings.Join(to, "; "), 100*p.lowest(), p.Before, after, difference)
	}
	fmt.Fprintf(&b, "\nMean difference over %d runs that went on to their end: %s.\n", len(differences), intervalOf(differences).percent())
	return b.String()
}
