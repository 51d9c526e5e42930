package collapse

import "github.com/reprise-rl/reprise/infra/store/canon"

// Watch is what one rule knows of a run so far.
type Watch struct {
	// Rule is the rule's name.
	Rule string `json:"rule"`
	// Seen counts the values that have made Level and Average what they are.
	Seen int `json:"seen"`
	// Level is what the figure is measured by.
	Level canon.Float `json:"level"`
	// Average is the EMA of which a best level is the highest and a lowest level
	// the lowest.
	Average canon.Float `json:"average,omitempty"`
	// Row counts the departing values up to the newest, Since is the iteration of
	// the first of them.
	Row   int `json:"row,omitempty"`
	Since int `json:"since,omitempty"`
	// Good is the newest iteration whose value was not even half of the way to its
	// threshold; −1 before there was one.
	Good int `json:"good"`
	// Fired says that this row has made its event.
	Fired bool `json:"fired,omitempty"`
	// Departed is, of a figure of echo_trap, the newest iteration whose value departed, plus 1; 0 if none has.
	Departed int `json:"departed,omitempty"`
}

// limit is a rule's numbers, whatever their names in the config.
type limit struct {
	factor, floor float64
	row           int
}

// observe takes in one finite value of the rule's figure.
func (w Watch) observe(c Config, r Rule, l limit, iteration int, s seen, excused bool) (Watch, *Event) {
	excused = excused || r.fromStart && w.Good >= 0
	level, threshold, armed := w.threshold(c, r, l)
	beyond := func(edge float64) bool {
		return armed && !excused && (r.above && float64(s.value) > edge || !r.above && float64(s.value) < edge)
	}
	if !beyond(threshold) {
		// A fixed number has nothing half of the way to it.
		if r.against == fixed || !beyond(level+(threshold-level)/2) {
			w.Good = iteration
		}
		w.Row, w.Since, w.Fired = 0, 0, false
		return w.learn(c, r, float64(s.value)), nil
	}
	if w.Row == 0 {
		w.Since = iteration
	}
	w.Row++
	if w.Fired || w.Row < l.row {
		return w, nil
	}
	w.Fired = true
	return w, r.event(w, iteration, s, level, threshold, l)
}

// threshold is beyond which a value departs; armed is false while the rule has
// nothing to measure by.
func (w Watch) threshold(c Config, r Rule, l limit) (level, threshold float64, armed bool) {
	if r.against == fixed {
		return l.factor, l.factor, true
	}
	level = float64(w.Level)
	armed = w.Seen >= c.WarmUp
	if r.above {
		level = max(level, l.floor) // a value next to 0 may grow manyfold
	} else {
		armed = armed && level > l.floor // a value next to 0 cannot fall
	}
	return level, level * l.factor, armed
}

// learn moves the levels by a value that did not depart.
func (w Watch) learn(c Config, r Rule, value float64) Watch {
	// The mean of the values as long as there are few, so that the first weighs no
	// more than the others.
	weight := max(1-c.Decay, 1/float64(w.Seen+1))
	switch r.against {
	case early:
		if w.Seen >= c.WarmUp {
			return w
		}
		w.Level = toward(w.Level, value, 1/float64(w.Seen+1))
	case average:
		w.Level = toward(w.Level, value, weight)
	case best, lowest:
		w.Average = toward(w.Average, value, weight)
		switch {
		case w.Seen < c.WarmUp:
			w.Level = w.Average
		case r.against == best:
			w.Level = max(w.Level, w.Average)
		default:
			w.Level = min(w.Level, w.Average)
		}
	}
	w.Seen++
	return w
}

// toward moves an average to a value by a weight. The product is rounded by
// itself, so that no machine fuses it with the sum.
func toward(from canon.Float, value, weight float64) canon.Float {
	return from + canon.Float(float64((value-float64(from))*weight))
}

// onset is the iteration that did the first harm; see the package's text.
func (w Watch) onset(by cause, against reference, row int) int {
	good := w.Good
	if against != fixed {
		good = max(good, w.Since-row)
	}
	if by == byRollout {
		return max(0, good)
	}
	return good + 1
}
