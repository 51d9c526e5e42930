package collapse

import (
	"fmt"
	"strconv"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// Event says that a rule has fired.
type Event struct {
	// Detector is the rule's name.
	Detector string `json:"detector"`
	// Iteration is the one whose figures made it fire.
	Iteration int `json:"iteration"`
	// Onset is the iteration that did the first harm: everything before it was fine.
	Onset int `json:"onset"`
	// Severity says how far the collapse has gone.
	Severity Severity `json:"severity"`
	// Evidence are the numbers, the most important first: the metric as it was, then the
	// figure's level and threshold.
	Evidence []Evidence `json:"evidence"`
	// Text says it in a sentence.
	Text string `json:"text"`
}

// Evidence is one number that an event rests on.
type Evidence struct {
	// Name of a metric, or "level", or "threshold".
	Name string `json:"name"`
	// Value of it.
	Value canon.Float `json:"value"`
}

// Target is the iteration that a rollback goes to: its policy, the version Onset, is the
// last good one. It is false if the harm was there from the beginning, so that only the
// base model is before it.
func (e Event) Target() (iteration int, ok bool) { return e.Onset - 1, e.Onset > 0 }

func (r Rule) event(w Watch, iteration int, s seen, level, threshold float64, l limit) *Event {
	e := &Event{
		Detector: r.Name, Iteration: iteration, Severity: r.Severity,
		Onset: w.onset(s.by, r.against, l.row), Evidence: s.evidence,
	}
	unit := "iterations"
	if r.by == byEvaluation {
		unit = "evaluations"
	}
	side := "below"
	if r.above {
		side = "above"
	}
	row := ""
	if l.row > 1 {
		row = fmt.Sprintf(" for %d %s in a row, since iteration %d", l.row, unit, w.Since)
	}
	switch {
	case r.says != "":
		e.Text = r.says + row
	case r.Name == NonFinite:
		e.Text = fmt.Sprintf("not finite: %s%s", names(s.evidence), row)
	case r.Name == NotExact && len(s.evidence) == 1+len(r.details):
		of := s.evidence[1:]
		e.Text = fmt.Sprintf("the log-probs of %v tokens of a micro-batch are not the sampler's; the first is that of row %v, token %v: %v by the sampler, %v by the trainer",
			s.value, of[0].Value, of[1].Value, of[2].Value, of[3].Value)
	case r.against == fixed:
		e.Evidence = append(e.Evidence, Evidence{"threshold", canon.Float(threshold)})
		e.Text = fmt.Sprintf("%s is %s, %s %s%s", r.what, short(float64(s.value)), side, short(threshold), row)
	default:
		e.Evidence = append(e.Evidence, Evidence{"level", canon.Float(level)}, Evidence{"threshold", canon.Float(threshold)})
		e.Text = fmt.Sprintf("%s is %s, %s %s times its %s %s%s", r.what, short(float64(s.value)), side,
			short(l.factor), r.against, short(level), row)
	}
	if r.Remedy != "" {
		e.Text += "; " + r.Remedy
	}
	return e
}

// String is the level's name in a sentence.
func (r reference) String() string {
	switch r {
	case early:
		return "early level"
	case average:
		return "average"
	case best:
		return "best level"
	case lowest:
		return "lowest level"
	}
	return "threshold"
}

func names(evidence []Evidence) string {
	text := ""
	for i, e := range evidence {
		if i > 0 {
			text += ", "
		}
		text += e.Name
	}
	return text
}

func short(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// Decision is what to do about the events of an iteration.
type Decision struct {
	// Action is the strongest action of the rules that fired: Rollback before Stop before
	// Warn; Off without events.
	Action Action `json:"action"`
	// By are the detectors that ask for it, in the order of Rules.
	By []string `json:"by,omitempty"`
	// Onset is the earliest of theirs; a rollback goes to the iteration before it.
	Onset int `json:"onset"`
}

// Decide says what the config wants done about events.
func (d Detectors) Decide(events []Event) Decision {
	decision := Decision{Action: Off}
	for _, e := range events {
		action := d.config.action(ruleOf(e.Detector))
		switch {
		case action.weight() > decision.Action.weight():
			decision = Decision{Action: action, By: []string{e.Detector}, Onset: e.Onset}
		case action == decision.Action && action != Off:
			decision.By = append(decision.By, e.Detector)
			decision.Onset = min(decision.Onset, e.Onset)
		}
	}
	return decision
}
