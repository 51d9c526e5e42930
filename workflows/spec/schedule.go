package spec

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Scheduled is a value that a setting has from an iteration on. The entries of one setting
// stand in the order of their iterations.
type Scheduled struct {
	// Field is the path of a numeric knob, or "rewards.NAME.weight".
	Field string  `json:"field"`
	From  int     `json:"from"`
	Value float64 `json:"value"`
	// Over is how many iterations the way to Value takes: iteration From + i has i + 1 of Over
	// equal parts of it. 0 is a step.
	Over int `json:"over,omitempty"`
}

const maxScheduled = 64

// scheduleRules are the fields of an entry of the schedule.
var scheduleRules = []*rule{
	{path: "field", typ: typeString, required: true, text: func(string) string { return "" }, textAllowed: "the path of a numeric knob, or rewards.NAME.weight", source: fromOurs,
		doc: "The setting: a numeric field marked ◆, or the weight of a part of the reward, as in `rewards.progress.weight`."},
	{path: "from", typ: typeInteger, required: true, span: between(0, 1_000_000), source: fromOurs,
		doc: "The first iteration that it changes, counted from 0."},
	{path: "value", typ: typeNumber, required: true, span: between(-1e9, 1e9), source: fromOurs,
		doc: "The value from then on, in the field's range."},
	{path: "over", typ: typeInteger, value: 0, span: between(0, 1_000_000), source: fromOurs,
		doc: "Over how many iterations the field goes to the value, in equal parts: the last of them has it. 0 is at once. A field of integers is rounded."},
}

func assembleSchedule(values map[string]any) []Scheduled {
	var out []Scheduled
	read, _ := values["schedule"].([]map[string]any)
	for _, v := range read {
		var s Scheduled
		s.Field, _ = v["field"].(string)
		s.From, _ = v["from"].(int)
		s.Value, _ = v["value"].(float64)
		s.Over, _ = v["over"].(int)
		out = append(out, s)
	}
	return out
}

// SettingsAt are the settings of an iteration: those that hold now, with what the schedule
// gives to its fields. base are those that the run began with.
func SettingsAt(schedule []Scheduled, base, now Settings, iteration int) Settings {
	before := map[string]float64{}
	for _, e := range schedule {
		from, ok := before[e.Field]
		if !ok {
			from = base.number(e.Field)
		}
		before[e.Field] = e.Value
		if iteration < e.From {
			continue
		}
		value := e.Value
		if done := iteration - e.From + 1; done < e.Over {
			value = from + float64((e.Value-from)*float64(done)/float64(e.Over))
		}
		now.setNumber(e.Field, value)
	}
	return now
}

// SetBySchedule reports whether a schedule has the field.
func SetBySchedule(schedule []Scheduled, path string) bool {
	return slices.ContainsFunc(schedule, func(e Scheduled) bool { return e.Field == path })
}

// weighted is the module whose weight a path names.
func weighted(path string) (module string, ok bool) {
	module, begins := strings.CutPrefix(path, "rewards.")
	module, ends := strings.CutSuffix(module, ".weight")
	return module, begins && ends
}

func (s Settings) number(path string) float64 {
	if module, ok := weighted(path); ok {
		return s.Weights[module]
	}
	f, ok := field(reflect.ValueOf(s), path, false)
	switch {
	case ok && f.CanInt():
		return float64(f.Int())
	case ok && f.CanFloat():
		return f.Float()
	}
	return 0
}

func (s *Settings) setNumber(path string, value float64) {
	if module, ok := weighted(path); ok {
		weights := maps.Clone(s.Weights) // other settings share the map
		if weights == nil {
			weights = map[string]float64{}
		}
		weights[module] = value
		s.Weights = weights
		return
	}
	f, ok := field(reflect.ValueOf(s).Elem(), path, false)
	switch {
	case ok && f.CanInt():
		f.SetInt(int64(math.Round(value)))
	case ok && f.CanFloat():
		f.SetFloat(value)
	}
}

// scheduledWeights are the weights that the schedule changes, as the spec has them; nil for
// none.
func (t Train) scheduledWeights() map[string]float64 {
	var out map[string]float64
	for _, r := range t.Rewards {
		if SetBySchedule(t.Schedule, "rewards."+r.Name+".weight") {
			if out == nil {
				out = map[string]float64{}
			}
			out[r.Name] = r.Weight
		}
	}
	return out
}

// Weight is the weight of a part of the reward in an iteration.
func (s Settings) Weight(r Reward) float64 {
	if w, ok := s.Weights[r.Name]; ok {
		return w
	}
	return r.Weight
}

// schedulable are the paths that a schedule of the spec may have.
func (t Train) schedulable() []string {
	var out []string
	for _, r := range rules {
		if r.knob && (r.typ == typeNumber || r.typ == typeInteger) {
			out = append(out, r.path)
		}
	}
	for _, r := range t.Rewards {
		out = append(out, "rewards."+r.Name+".weight")
	}
	return out
}

const supervisedShare = "update.supervised.share"

// leftOut reports whether the spec has no value of a field that has no default, so that a way from
// it has no beginning.
func (t Train) leftOut(path string) bool {
	switch path {
	case "rollout.turn_limit":
		return t.Rollout.TurnLimit == 0
	case supervisedShare:
		return t.Update.Supervised.Share == 0
	case "update.supervised.coefficient":
		return t.Update.Supervised.Coefficient == 0
	}
	return false
}

// scheduledBefore is what an entry's field has before it.
func (t Train) scheduledBefore(entry int) float64 {
	e := t.Schedule[entry]
	for _, before := range slices.Backward(t.Schedule[:entry]) {
		if before.Field == e.Field {
			return before.Value
		}
	}
	return SettingsOf(t).number(e.Field)
}

// schedule checks the schedule: that each entry begins, that it follows the one before of its
// field, that its value is in the field's range, and that the settings fit together when it has
// reached the value.
func (d *decoder) schedule(t Train) {
	if d.isBad("schedule") || d.isBad("iterations") || d.isBad("rewards") {
		return
	}
	last := map[string]Scheduled{}
	before := len(d.problems)
	for i, e := range t.Schedule {
		at := strict.Index("schedule", i)
		wrong := func(key, found, allowed, hint string) {
			d.add(at, Problem{Path: strict.Join(at, key), Found: found, Allowed: allowed, Hint: hint})
		}
		fields := t.schedulable()
		if !slices.Contains(fields, e.Field) {
			found, hint := strict.Quote(e.Field), strict.DidYouMean(e.Field, fields)
			if r := byPath[e.Field]; r != nil && hint == "" {
				hint = "it is fixed for the run: shapes or programs depend on it, or it is no number"
			}
			wrong("field", found, oneOf(fields), hint)
			continue
		}
		if r := byPath[e.Field]; r != nil {
			if r.typ == typeInteger && e.Value != math.Trunc(e.Value) || !r.span.holds(e.Value) {
				wrong("value", formatNumber(e.Value), r.allowed(), "")
			}
		} else if r := rewardRules[1]; !r.span.holds(e.Value) {
			wrong("value", formatNumber(e.Value), r.allowed(), "")
		}
		switch {
		case e.Field == "rollout.turn_limit" && e.Value > float64(t.Rollout.Turns):
			wrong("value", formatNumber(e.Value), fmt.Sprintf("at most %d (rollout.turns)", t.Rollout.Turns), "")
		case t.leftOut(e.Field) && last[e.Field].Field == "" && e.Over > 0:
			wrong("over", fmt.Sprint(e.Over), fmt.Sprintf("a step, unless %s says where the way begins", e.Field), "give "+e.Field)
		case e.Field == supervisedShare && e.Over > 0 && (e.Value == 1 || t.scheduledBefore(i) == 1):
			wrong("over", fmt.Sprint(e.Over), fmt.Sprintf("a step to 1 or from 1: no share is between %s and 1", formatNumber(mostSupervised)), "")
		case e.Field == "update.kl_first_turn" && t.Update.KLFirstTurn == 0:
			wrong("field", strict.Quote(e.Field), "a field that the spec gives", "give update.kl_first_turn, which is compiled into the programs")
		case strings.HasPrefix(e.Field, "update.supervised.") && !t.Update.Supervised.On():
			wrong("field", strict.Quote(e.Field), "a field that the spec uses", "give update.supervised.from")
		}
		if e.From >= t.Iterations {
			wrong("from", fmt.Sprint(e.From), fmt.Sprintf("less than %d (iterations), or it never begins", t.Iterations), "")
		}
		if p, ok := last[e.Field]; ok {
			if end := p.From + max(p.Over, 1); e.From < end {
				wrong("from", fmt.Sprint(e.From), fmt.Sprintf("at least %d, where the entry of the field before it has ended", end), "")
			}
		}
		last[e.Field] = e
		if t.Collapse.Reach(1) > 0 {
			for _, k := range t.Collapse.Rollback.Knobs() {
				if k.Path == e.Field {
					wrong("field", strict.Quote(e.Field), "a field that collapse.rollback leaves alone", "the schedule would set it again")
				}
			}
		}
	}
	if len(d.problems) > before {
		return
	}
	base := SettingsOf(t)
	for i, e := range t.Schedule {
		for _, p := range unmetAt(t.Schedule, base, base, e.end()) {
			at := strict.Index("schedule", i)
			d.add(at, Problem{Path: at, Found: p.Path + " " + p.Found, Allowed: p.Allowed})
		}
	}
}

// end is the iteration in which a field has reached the value.
func (e Scheduled) end() int { return e.From + max(e.Over-1, 0) }

// unmetAt is what does not fit together in an iteration.
func unmetAt(schedule []Scheduled, base, now Settings, iteration int) Problems {
	problems := SettingsAt(schedule, base, now, iteration).unmet()
	for i := range problems {
		problems[i].Found += fmt.Sprintf(" in iteration %d", iteration)
	}
	return problems
}

// Ahead reports what will not fit together, if the settings from an iteration on are those of now
// and what the schedule gives to its fields. base are those that the run began with. The error is
// of type Problems.
func Ahead(schedule []Scheduled, base, now Settings, from int) error {
	for _, e := range schedule {
		if e.end() < from {
			continue
		}
		if problems := unmetAt(schedule, base, now, e.end()); len(problems) > 0 {
			return problems.Err()
		}
	}
	return nil
}
