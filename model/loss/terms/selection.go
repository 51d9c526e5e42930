package terms

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

// Selection names the terms of a loss. It is compiled into the programs, which compute only what is selected;
// how much each counts are knobs. It is comparable.
type Selection struct {
	// Surrogate is loss.Clip if empty.
	Surrogate loss.Surrogate
	// Ratio is loss.TokenRatio if empty, the only one of most surrogates (Term.Units).
	// For loss.SequenceRatio a sequence is a row of the micro-batch.
	Ratio loss.Ratio
	// Turns is the largest turn for loss.TurnRatio, else 0.
	Turns int
	// KL estimates the distance from the reference policy; empty means no KL term.
	KL loss.KLEstimator
	// KLByToken gives each token a coefficient of its own, batch.KLCoefficients, instead of
	// the knob KLCoefficient.
	KLByToken bool
	// Guards are names of guards in the order of the table, with a comma between two; see Guards.
	Guards string
	// Supervised adds the negative log-likelihood of the tokens that batch.Supervised
	// marks, which have no part in the other terms.
	Supervised bool
	// Value is a critic's loss, Squared if empty; a policy has none.
	Value string
}

// Guards are names of guards as Selection has them.
func Guards(names ...string) string {
	var out []string
	for _, known := range Names(Guard) {
		if slices.Contains(names, known) {
			out = append(out, known)
		}
	}
	return strings.Join(out, ",")
}

// Has reports whether a guard is selected.
func (s Selection) Has(guard string) bool {
	return slices.Contains(strings.Split(s.Guards, ","), guard)
}

// Check returns an error of kind batch.ErrInput if a name is none of the table, or if terms do not go together.
func (s Selection) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{batch.ErrInput}, args...)...)
	}
	surrogate, ok := Find(Surrogate, s.surrogate())
	if !ok {
		return bad("surrogate %q", s.Surrogate)
	}
	ratio, ok := Find(Ratio, s.ratio())
	if !ok {
		return bad("ratio %q", s.Ratio)
	}
	if s.Guards != Guards(strings.Split(s.Guards, ",")...) {
		return bad("guards %q", s.Guards)
	}
	for _, t := range append(s.guards(), ratio) {
		if t.Units && !surrogate.Units {
			return bad("%s %s with surrogate %q", t.Kind, t.Name, s.Surrogate)
		}
	}
	if _, ok := Find(Distance, string(s.KL)); !ok && s.KL != "" {
		return bad("KL estimator %q", s.KL)
	}
	if _, ok := Find(Value, s.value()); !ok {
		return bad("critic's loss %q", s.Value)
	}
	switch {
	case (s.Ratio == loss.TurnRatio) != (s.Turns > 0):
		return bad("%d turns with ratio %q", s.Turns, s.Ratio)
	case s.KLByToken && s.KL == "":
		return bad("a coefficient for each token without a KL estimator")
	}
	return nil
}

func (s Selection) surrogate() string {
	if s.Surrogate == "" {
		return string(loss.Clip)
	}
	return string(s.Surrogate)
}

func (s Selection) ratio() string {
	if s.Ratio == "" {
		return string(loss.TokenRatio)
	}
	return string(s.Ratio)
}

func (s Selection) value() string {
	if s.Value == "" {
		return Squared
	}
	return s.Value
}

func (s Selection) guards() []Term {
	var out []Term
	for _, t := range Of(Guard) {
		if s.Has(t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// Terms are the terms of the loss of a policy, in the order of the table.
func (s Selection) Terms() []Term {
	return s.selected(Frame, Surrogate, Distance, Ratio, Guard, Imitation, Weighing)
}

// selected are the selected terms of some kinds.
func (s Selection) selected(kinds ...Kind) []Term {
	on := func(t Term) bool {
		switch t.Kind {
		case Surrogate:
			return t.Name == s.surrogate()
		case Distance:
			return t.Name == string(s.KL)
		case Ratio:
			return t.Name == s.ratio()
		case Guard:
			return s.Has(t.Name)
		case Imitation:
			return s.Supervised
		case Weighing:
			return s.KLByToken
		case Value:
			return t.Name == s.value()
		default:
			return true
		}
	}
	var out []Term
	for _, t := range Table {
		if slices.Contains(kinds, t.Kind) && on(t) {
			out = append(out, t)
		}
	}
	return out
}

// Layout is what the programs of a loss read and report. The place of each in its vector is that in the list.
type Layout struct {
	Columns []batch.Column
	Knobs   []Knob
	Metrics []Metric
}

// PolicyLayout is the layout of a policy's loss.
func (s Selection) PolicyLayout() Layout {
	of := s.Terms()
	together := slices.ContainsFunc(of, func(t Term) bool {
		return slices.ContainsFunc(t.Knobs, func(k Knob) bool { return k.Packing == Together })
	})
	l := layoutOf(of)
	l.Knobs = nil
	for _, t := range Table {
		selected := slices.ContainsFunc(of, func(o Term) bool { return o.Kind == t.Kind && o.Name == t.Name })
		for _, k := range t.Knobs {
			if selected || together && k.Packing == Together {
				l.Knobs = with(l.Knobs, k, func(k Knob) string { return k.Name })
			}
		}
	}
	return l
}

// Own are the knobs of the selected terms that are not the frame's alone.
func (s Selection) Own() map[string]Knob {
	out := map[string]Knob{}
	for _, t := range s.Terms() {
		for _, k := range t.Knobs {
			if t.Kind != Frame {
				out[k.Name] = k
			}
		}
	}
	return out
}

// CriticTerm is the term of a critic's loss.
func (s Selection) CriticTerm() Term { return s.selected(Value)[0] }

// CriticLayout is the layout of a critic's loss.
func (s Selection) CriticLayout() Layout { return layoutOf(s.selected(Value)) }

func layoutOf(of []Term) Layout {
	var l Layout
	for _, t := range of {
		for _, c := range t.Reads {
			l.Columns = with(l.Columns, c, batch.Column.String)
		}
		for _, k := range t.Knobs {
			l.Knobs = with(l.Knobs, k, func(k Knob) string { return k.Name })
		}
		for _, m := range t.Metrics {
			l.Metrics = with(l.Metrics, m, func(m Metric) string { return m.Name })
		}
	}
	return l
}

// with appends what no one of the name is before.
func with[T any](all []T, x T, name func(T) string) []T {
	if slices.ContainsFunc(all, func(other T) bool { return name(other) == name(x) }) {
		return all
	}
	return append(all, x)
}

// Knob is the place of a knob, and Metric that of a metric; −1 if there is none of the name.
func (l Layout) Knob(name string) int {
	return slices.IndexFunc(l.Knobs, func(k Knob) bool { return k.Name == name })
}

// Metric is the place of a metric; −1 if there is none of the name.
func (l Layout) Metric(name string) int {
	return slices.IndexFunc(l.Metrics, func(m Metric) bool { return m.Name == name })
}

// Pack puts knobs into the order of the layout; 0 is one that is not given.
func (l Layout) Pack(of Knobs) []float32 {
	out := make([]float32, len(l.Knobs))
	for i, k := range l.Knobs {
		out[i] = of[k.Name]
	}
	return out
}

// Report gives metrics, in the order of the layout, their names.
func (l Layout) Report(of []float64) map[string]float64 {
	out := make(map[string]float64, len(of))
	for i, m := range l.Metrics {
		out[m.Name] = of[i]
	}
	return out
}

// Own are the metrics that come after the frame's.
func (l Layout) Own() []Metric { return l.Metrics[len(Table[0].Metrics):] }
