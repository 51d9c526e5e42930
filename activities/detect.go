package activities

import (
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/mutual"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// Detected is the result of the detectors of collapse for an iteration: their state from
// then on, and the decision.
type Detected struct {
	State    collapse.State    `json:"state"`
	Events   []collapse.Event  `json:"events,omitempty"`
	Decision collapse.Decision `json:"decision"`
	// Rollbacks counts the earlier rollbacks that detectors have requested.
	Rollbacks int `json:"rollbacks"`
}

// Opened says why a branch was opened; the first manifest of the branch has it,
// beside the fork point, which is its parent.
type Opened struct {
	// Branch and Iteration are where the run was.
	Branch    int `json:"branch"`
	Iteration int `json:"iteration"`
	// Events are what detectors saw; there are none if a person requested the rollback.
	Events []collapse.Event `json:"events,omitempty"`
	// Changes are the knobs that were changed, in words.
	Changes []string `json:"changes,omitempty"`
	// Adopted is what computed the fork point, if the branch was opened to continue under
	// other programs or another fingerprint. The manifest itself has the branch's.
	Adopted *Adopted `json:"adopted,omitempty"`
	// Spec is the digest of the fork point's resolved spec, if the branch has another one: with what the run's environments
	// say of themselves since.
	Spec string `json:"spec,omitempty"`
	// Detected is the detectors' state where the branch begins.
	Detected Detected `json:"detected"`
}

// Adopted is what the iterations before a branch were computed by.
type Adopted struct {
	Fingerprint string            `json:"fingerprint"`
	Programs    map[string]string `json:"programs"`
}

// Smooth adds the smoothed curves to an iteration's metrics; previous are the metrics of
// the iteration before it.
func (p Plan) Smooth(previous, metrics Metrics) {
	carryAverages(previous, metrics)
	smoothed := collapse.Smooth(previous, metrics, collapse.Curves(), p.Collapse.Decay)
	for _, name := range collapse.Curves() {
		if value, ok := smoothed[name+collapse.SmoothedSuffix]; ok {
			metrics[name+collapse.SmoothedSuffix] = value
		}
	}
}

// Detect lets the detectors look at an iteration. before is their earlier state, and
// metrics are the iteration's. evaluations are those made in it: of the version it made
// and, in the first iteration, of version 0 too. A pure function, for workflows and
// replay.
func (p Plan) Detect(before Detected, iteration int, metrics Metrics, evaluations []store.EvaluationRef) *Detected {
	detectors, err := collapse.New(p.Collapse)
	if err != nil {
		return nil // the spec is of a release without detectors
	}
	out := &Detected{State: before.State, Rollbacks: before.Rollbacks}
	if before.Decision.Action == collapse.RollBack {
		out.Rollbacks++
	}
	figures := func(version int) Metrics {
		for _, e := range evaluations {
			if e.Version == version && len(p.Suites) > 0 && e.Suite == p.Suites[0].Name {
				return e.Metrics
			}
		}
		return nil
	}
	if first := figures(0); iteration == 0 && first != nil {
		out.State, _ = detectors.Observe(out.State, -1, nil, first)
	}
	out.State, out.Events = detectors.Observe(out.State, iteration, metrics, figures(iteration+1))
	out.Decision = detectors.Decide(out.Events)
	if out.Decision.Action == collapse.RollBack && (out.Rollbacks >= p.Collapse.Rollback.Max || out.Decision.Onset <= 0) {
		// Nothing to go back to, or often enough.
		out.Decision.Action = p.Collapse.Rollback.Then
	}
	return out
}

// Averages are the moving averages that the next estimate begins from.
func Averages(m Metrics) Metrics {
	out := Metrics{}
	for _, name := range averageNames() {
		if v, ok := m[name]; ok {
			out[name] = v
		}
	}
	return out
}

// carryAverages keeps the moving averages in the metrics of iterations that are not
// diagnosed, for the next that is.
func carryAverages(previous, metrics Metrics) {
	for name, v := range Averages(previous) {
		if _, now := metrics[name]; !now {
			metrics[name] = v
		}
	}
}

// averageNames are the moving averages among the metrics.
func averageNames() []string {
	var out []string
	for _, prefix := range []string{mutual.FirstTurn, mutual.Trajectory} {
		out = append(out, prefix+mutual.DeviationName, prefix+mutual.DeviationSeqName)
	}
	return out
}
