// Package collapse notices that a run is falling into the echo trap of RAGEN
// (arXiv 2504.20073, section 4.2): the policy narrows onto one template, the rewards of a
// group stop varying, and later the reward collapses.
//
// Everything here is a pure function and may be used in workflow code. The knowledge of a
// run so far is a State of about a hundred bytes a rule, carried in the workflow's state,
// and
//
//	state, events = detectors.Observe(state, iteration, metrics, evaluation)
//
// gives the same events for the same inputs, however often the run was resumed
// in between. An Event says which rule fired, on what evidence, and where to go
// back to; Decide says what the Config wants done about it.
//
// # The rules
//
// A rule looks at one figure. The first WarmUp values set its reference level;
// then a value departs when it is beyond a factor times that level, and the rule
// fires when Iterations values in a row have departed. A departing value never
// moves the level it is measured by, so a figure that has fallen cannot teach the
// rule that low is normal. A rule fires once: again only after a value that does
// not depart. The levels are
//
//   - the early level: the mean of the first WarmUp values. For figures that a healthy run roughly keeps (RAGEN v2's rule of
//     the rewards' standard deviation).
//   - the average: an exponential moving average (EMA) of the values so far. For
//     figures that drift in a healthy run: entropy decays slowly, and only a fall
//     that outruns the average is a sign (the paper's "sharp drop").
//   - the best and the lowest level: the highest and the lowest EMA so far. For figures that a run must learn first, such as
//     turns that can be executed, and for figures that should not rise again, such as entropy.
//   - a fixed number, as in RAGEN v2's validation below 1 %.
//
// A policy that solves its task narrows too, and that is not a collapse. If the success
// of the rollout is at least Solved, the rules about narrowing (standard deviation of
// rewards, entropy, diversity) count nothing as departing.
//
// The rule echo_trap looks at several figures together: at how many of the four signs have shown within
// some iterations.
//
// A missing figure, as in an iteration without an update, leaves its rule as it is. A
// figure that is NaN or infinite concerns the rule non_finite alone.
//
// # The onset
//
// Version n of the policy rolls out in iteration n, which makes version n+1. So a
// bad figure of rollout n means that version n is bad, and iteration n−1 made it;
// a bad figure of update n means iteration n itself. The onset of an event is the
// iteration that did the first harm: everything before it was fine, and a rollback
// goes to the iteration before it. It is the iteration before the first value that had
// gone half of the way to its threshold and never came back. It is at most Iterations
// before the first value that departed, since a slow drift is not a collapse.
package collapse

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// Metrics are figures by name, with the names that RAGEN and verl give them.
type Metrics = map[string]canon.Float

// Detectors are the rules with their settings. Build them with New.
type Detectors struct {
	config Config
}

// New gives the detectors of a config, or everything that is wrong with it, as
// strict.Problems.
func New(c Config) (Detectors, error) {
	if problems := c.Validate(); len(problems) > 0 {
		return Detectors{}, fmt.Errorf("collapse detectors: %w", problems)
	}
	return Detectors{config: c}, nil
}

// State is what the detectors know of a run so far. The zero value knows nothing.
// It is JSON of at most about 3 KiB, and decoding it gives the same state.
type State struct {
	// Newest is the newest iteration observed; nil before there was one.
	Newest *int `json:"newest,omitempty"`
	// Watches are the rules' own states, in the order of Rules. A rule that has seen
	// nothing yet has none.
	Watches []Watch `json:"watches,omitempty"`
}

// Observe takes the figures of one iteration: the metrics of its rollout and update, and
// the evaluation of the policy version it made, if that was evaluated. Either may be nil.
// The first policy's evaluation, before iteration 0, counts as iteration −1. It gives the
// new state and what was detected now, in the order of Rules. s is left as it is.
//
// Iterations come in ascending order, gaps allowed. One that was observed already
// changes nothing and detects nothing.
func (d Detectors) Observe(s State, iteration int, metrics, evaluation Metrics) (State, []Event) {
	if s.Newest != nil && iteration <= *s.Newest {
		return s, nil
	}
	after := State{Newest: &iteration}
	var events []Event
	for _, r := range rules {
		if r.Name == EchoTrap {
			continue // see together
		}
		w, known := s.watch(r.Name)
		if !known {
			w = Watch{Rule: r.Name, Good: -1}
		}
		figures := metrics
		if r.by == byEvaluation {
			figures = evaluation
		}
		var event *Event
		if seen, ok := d.look(r, figures); ok && d.config.action(r) != Off {
			known = true
			w, event = w.observe(d.config, r, d.config.limit(r), iteration, seen, d.solved(r, metrics))
		}
		if known {
			after.Watches = append(after.Watches, w)
		}
		if event != nil {
			events = append(events, *event)
		}
	}
	watches, event := d.together(s, iteration, metrics)
	if after.Watches = append(after.Watches, watches...); event != nil {
		events = append(events, *event)
	}
	return after, events
}

// Rewind returns the state with which a run continues after a rollback, from the state at
// the iteration it was rolled back to: the levels stay, and every count starts again. The
// levels of a later state would be wrong: a collapse moves the levels of rules that do
// not see it, as rising entropy moves the level that a fall is measured from.
func (s State) Rewind(iteration int) State {
	after := State{Newest: &iteration, Watches: slices.Clone(s.Watches)}
	for i := range after.Watches {
		w := &after.Watches[i]
		w.Row, w.Since, w.Fired, w.Departed = 0, 0, false, 0
		w.Good = min(w.Good, iteration)
		if ruleOf(w.Rule).by != byEvaluation {
			w.Good = iteration // where a rollback goes to is fine
		}
	}
	return after
}

func (s State) watch(name string) (Watch, bool) {
	for _, w := range s.Watches {
		if w.Rule == name {
			return w, true
		}
	}
	return Watch{}, false
}

// solved reports whether the rollout's success excuses the rule's figure.
func (d Detectors) solved(r Rule, metrics Metrics) bool {
	success, ok := metrics[MetricSuccess]
	return r.narrowing && ok && d.config.Solved > 0 && float64(success) >= d.config.Solved
}
