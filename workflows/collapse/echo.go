package collapse

import (
	"fmt"
	"math"
	"strings"
)

// A sign of the echo trap shows in an iteration in which one of its figures departs.
type sign struct {
	name    string
	figures []figure
}

// figure is a rule that makes no event of its own, with its numbers.
type figure struct {
	rule  Rule
	limit limit
}

// The four signs of arXiv 2504.20073, section 4.2. Each alone shows in many runs that come to no harm, so its
// numbers are more sensitive than those of the rule of the same figure. They are fitted to seeds 1 to 3 of
// docs/study, as docs/results/study.md says.
var signs = []sign{
	{"the in-group reward deviation fell", []figure{
		{Rule{Name: EchoTrap + ".deviation", Metrics: []string{MetricRewardStd + SmoothedSuffix}, against: average, narrowing: true},
			limit{factor: 0.2, floor: 1e-6}},
	}},
	{"the entropy left its level", []figure{
		{Rule{Name: EchoTrap + ".entropy_fall", Metrics: []string{MetricEntropy}, against: early, narrowing: true}, limit{factor: 0.3, floor: 0.05}},
		{Rule{Name: EchoTrap + ".entropy_rise", Metrics: []string{MetricEntropy}, against: lowest, above: true}, limit{factor: 1.5, floor: 0.1}},
	}},
	{"the gradient norm rose", []figure{
		{Rule{Name: EchoTrap + ".gradient", Metrics: []string{MetricGradNorm}, against: average, above: true}, limit{factor: 1.3, floor: 0.1}},
	}},
	{"the reward fell below its early level", []figure{
		{Rule{Name: EchoTrap + ".reward", Metrics: []string{MetricReward + SmoothedSuffix}, against: early}, limit{factor: 0.95}},
	}},
}

var echoTrap = Rule{
	Name: EchoTrap, Severity: Late,
	Metrics: []string{MetricRewardStd + SmoothedSuffix, MetricEntropy, MetricGradNorm, MetricReward + SmoothedSuffix},
	Doc:     "Several of the four signs showed within some iterations: the smoothed in-group deviation of the reward below 0.2 of its average, the entropy below 0.3 of its early level or above 1.5 times its lowest, the gradient norm above 1.3 times its average, the smoothed reward below 0.95 of its early level.",
	Source:  "arXiv 2504.20073, section 4.2, whose signs are watched together. The numbers are fitted to seeds 1 to 3 of docs/study.",
	Remedy:  "the run looks like the echo trap: go back to before it with a lower update.learning_rate, or with selection by deviation",
}

// together looks at the four signs in an iteration. It gives what their watches have become, and an event
// if enough of them have shown.
func (d Detectors) together(s State, iteration int, metrics Metrics) (watches []Watch, event *Event) {
	if d.config.action(echoTrap) == Off {
		return nil, nil
	}
	e := &Event{Detector: EchoTrap, Iteration: iteration, Onset: iteration, Severity: echoTrap.Severity}
	var shown []string
	for _, sign := range signs {
		last, begun := 0, iteration // iterations from 1, as Watch.Departed
		for _, f := range sign.figures {
			w, known := s.watch(f.rule.Name)
			if !known {
				w = Watch{Rule: f.rule.Name, Good: -1}
			}
			if seen, ok := f.rule.look(metrics); ok {
				l := f.limit
				l.row = math.MaxInt // no event of its own
				w, _ = w.observe(d.config, f.rule, l, iteration, seen, d.solved(f.rule, metrics))
				if known = true; w.Row > 0 {
					w.Departed = iteration + 1
				}
			}
			if !known {
				continue
			}
			watches = append(watches, w)
			if last = max(last, w.Departed); w.Row > 0 {
				begun = min(begun, w.Since)
			} else if w.Departed > 0 {
				begun = min(begun, w.Departed-1)
			}
			if v, ok := metrics[f.rule.Metrics[0]]; ok && w.Row > 0 {
				e.Evidence = append(e.Evidence, Evidence{f.rule.Metrics[0], v})
			}
		}
		if last > 0 && iteration-last+1 < d.config.EchoTrap.Within {
			shown = append(shown, fmt.Sprintf("%s (iteration %d)", sign.name, last-1))
			e.Onset = min(e.Onset, begun)
		}
	}
	joint, known := s.watch(EchoTrap)
	if !known {
		joint = Watch{Rule: EchoTrap, Good: -1}
	}
	before := joint.Fired
	if joint.Fired = len(shown) >= d.config.EchoTrap.Signs; !joint.Fired {
		joint.Good = iteration
	}
	if joint.Fired && !before {
		// The first of them showed what the iteration before had made. A slow drift is not the trap.
		e.Onset = max(0, e.Onset-1, iteration-2*d.config.EchoTrap.Within+1)
		e.Text = fmt.Sprintf("%d of the %d signs of the echo trap within %d iterations: %s; %s",
			len(shown), len(signs), d.config.EchoTrap.Within, strings.Join(shown, ", "), echoTrap.Remedy)
		event = e
	}
	return append(watches, joint), event
}
