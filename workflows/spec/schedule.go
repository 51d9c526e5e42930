package spec

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

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
	for _, r := range rules() {
		if r.knob && (r.typ == typeNumber || r.typ == typeInteger) {
			out = append(out, r.path)
		}
	}
	for _, r := range t.Rewards {
		out = append(out, "rewards."+r.Name+".weight")
	}
	return out
}

// leftOut reports whether the spec has no value of a field that has no default, so that a way from
// it has no beginning.
func (t Train) leftOut(path string) bool {
	without := []string{"rollout.turn_limit", supervisedShare, "update.supervised.coefficient"}
	return slices.Contains(without, path) && SettingsOf(t).number(path) == 0
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
