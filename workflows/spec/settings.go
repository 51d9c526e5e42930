package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Settings are the effective knobs of an iteration: what select, credit and
// update do. A manifest records them, and an iteration is recomputed from
// them. They begin as the spec says and change by Apply.
type Settings struct {
	Rollout   RolloutSettings `json:"rollout"`
	Selection Selection       `json:"selection"`
	Credit    Credit          `json:"credit"`
	Update    Update          `json:"update"`
	Critic    Critic          `json:"critic"`
	// Weights are the weights of the parts of the reward that the schedule changes, by their
	// names; nil for none.
	Weights map[string]float64 `json:"weights,omitempty"`
}

// RolloutSettings is the part of Rollout that select and update read.
type RolloutSettings struct {
	// Groups and GroupSize are as in Rollout, fixed for the run.
	Groups    int `json:"groups"`
	GroupSize int `json:"group_size"`
	// Temperature is the temperature of sampling and of log-probs.
	Temperature float64 `json:"temperature"`
	// TurnLimit is as in Rollout.
	TurnLimit int `json:"turn_limit,omitempty"`
}

// Limit is the most turns of a trajectory of a run that may have so many.
func (r RolloutSettings) Limit(turns int) int {
	return min(cmp.Or(r.TurnLimit, turns), turns)
}

// SettingsOf is what a run with the spec t begins with.
func SettingsOf(t Train) Settings {
	return Settings{
		Rollout: RolloutSettings{
			Groups: t.Rollout.Groups, GroupSize: t.Rollout.GroupSize, Temperature: t.Rollout.Temperature, TurnLimit: t.Rollout.TurnLimit,
		},
		Weights:   t.scheduledWeights(),
		Selection: t.Selection,
		Credit:    t.Credit,
		Update:    t.Update,
		Critic:    t.Critic,
	}
}

// Change is a new value of one knob, as the change-knob command carries it.
type Change struct {
	// Path is the knob's path in the spec, as in "update.learning_rate".
	Path string `json:"path"`
	// Value is its JSON value.
	Value json.RawMessage `json:"value"`
}

// UnmarshalJSON implements json.Unmarshaler. Its error shows an example.
func (c *Change) UnmarshalJSON(b []byte) error {
	type change Change
	if err := json.Unmarshal(b, (*change)(c)); err != nil {
		return fmt.Errorf(`a change is an object, as {"path": "update.learning_rate", "value": 1e-4}; found %s`, strict.Shorten(string(b)))
	}
	return nil
}

// Value is the number of a knob, false if it has none.
func (s Settings) Value(path string) (float64, bool) {
	f, ok := field(reflect.ValueOf(s), path, false)
	if !ok || !f.CanFloat() {
		return 0, false
	}
	return f.Float(), true
}

// Knobs are the paths that Apply changes: those on which no shape and no
// compiled program depends.
func Knobs() []string {
	var paths []string
	for _, r := range rules() {
		if r.knob {
			paths = append(paths, r.path)
		}
	}
	return paths
}

// Apply returns the settings with the changes made, in their order, checked as
// Decode checks a spec. The error, of type Problems, names all that is wrong;
// then none of the changes is made.
func (s Settings) Apply(changes ...Change) (Settings, error) {
	changed := s
	var problems Problems
	for _, c := range changes {
		problems = append(problems, changed.apply(c)...)
	}
	if len(problems) == 0 {
		problems = append(problems, changed.unmet()...)
	}
	if err := problems.Err(); err != nil {
		return s, err
	}
	return changed, nil
}

func (s *Settings) apply(c Change) Problems {
	r := byPath(c.Path)
	if r == nil {
		hint := cmp.Or(homes(c.Path, func(r *rule) bool { return r.knob }), Hint(c.Path, Knobs()))
		return Problems{{Path: orWhole(strict.Shorten(c.Path)), Found: "an unknown knob", Allowed: strings.Join(Knobs(), ", "), Hint: hint}}
	}
	if !r.knob {
		return Problems{{Path: r.path, Found: "a field that is fixed for the run", Allowed: strings.Join(Knobs(), ", ")}}
	}
	n, problems, ok := parse(c.Value)
	if !ok {
		for i := range problems {
			problems[i].Path = r.path
			problems[i].Allowed = r.allowed()
		}
		return problems
	}
	// Duplicate keys need no word of their own: no knob is an object.
	value, problems := r.read(n)
	if len(problems) > 0 {
		if n.Kind() == strict.Null {
			problems[0].Hint = "" // a change has no default to fall back to
		}
		return problems
	}
	if r.path == firstTurn && s.Update.KLFirstTurn == 0 {
		return Problems{{Path: r.path, Found: "a field that the spec does not give", Allowed: "a change of a weight that the spec gives", Hint: "it is compiled into the programs"}}
	}
	set(s, r.path, value)
	return nil
}

// WithKnobs are the settings with the knobs of others: what is fixed for a run stays.
func (s Settings) WithKnobs(of Settings) Settings {
	for _, path := range Knobs() {
		from, there := field(reflect.ValueOf(of), path, false)
		now, ok := field(reflect.ValueOf(s), path, false)
		if there && !(ok && reflect.DeepEqual(now.Interface(), from.Interface())) {
			set(&s, path, from.Interface())
		}
	}
	s.Weights = of.Weights
	return s
}

// Diff lists the knobs in which two settings differ, in the spec's order.
func (s Settings) Diff(other Settings) Differences {
	return differ(reflect.ValueOf(s), reflect.ValueOf(other))
}

// JSON is the settings in the canonical form of Train.JSON.
func (s Settings) JSON() ([]byte, error) { return canonicalJSON(s) }

// unmet are the relations that a change of knobs breaks.
func (s Settings) unmet() Problems {
	t := Train{
		Rollout:   Rollout{Groups: s.Rollout.Groups, GroupSize: s.Rollout.GroupSize},
		Selection: s.Selection, Credit: s.Credit, Update: s.Update,
	}
	return unmet(t, func(r relation) bool { return r.knobs })
}
