package collapse

import (
	"cmp"
	"fmt"
)

// Action is what is done when a rule fires.
type Action string

const (
	// Inherit takes the config's own on_detection. It is every rule's default.
	Inherit Action = "default"
	// Off watches nothing.
	Off Action = "off"
	// Warn records the event and continues.
	Warn Action = "warn"
	// Stop ends the run with a final snapshot.
	Stop Action = "stop"
	// RollBack goes back to the iteration before the onset and on from there, in a
	// new branch, with other knobs.
	RollBack Action = "rollback"
)

func (a Action) weight() int {
	switch a {
	case Warn:
		return 1
	case Stop:
		return 2
	case RollBack:
		return 3
	}
	return 0
}

// Config is the detectors' part of a run's spec. Its zero value is not valid:
// begin with Defaults.
type Config struct {
	// OnDetection is the action of rules without their own: warn, stop, rollback or off.
	// Default warn.
	OnDetection Action `json:"on_detection"`
	// WarmUp is how many values of a figure set its first level; before that its
	// rule is silent. From 1 to 1000. Default 5 (RAGEN v2: 10).
	WarmUp int `json:"warm_up"`
	// Decay of the averages, from 0 to 0.999: a value's weight falls to 37 % in
	// about 1/(1−Decay) iterations. Default 0.9 (RAGEN v2's for its MI figures).
	Decay float64 `json:"decay"`
	// Solved is the smallest success of the rollout at which narrowing is not a collapse;
	// above 0 to 1, or 0 for never. Default 0.9.
	Solved float64 `json:"solved"`

	// RewardStd: default below 0.2 times the early level, 5 in a row.
	RewardStd Level `json:"reward_std"`
	// EntropyFall: default below a third of the average, 3 in a row.
	EntropyFall Level `json:"entropy_fall"`
	// EntropyRise: default above twice the lowest level, 3 in a row.
	EntropyRise Level `json:"entropy_rise"`
	// GradNorm: default above 5 times the average, 2 in a row.
	GradNorm Level `json:"grad_norm"`
	// Distinct: default below half of the early level, 5 in a row.
	Distinct Level `json:"distinct"`
	// Similarity: default dissimilarity below a quarter of the early level, 5 in a row.
	Similarity Level `json:"similarity"`
	// Executable: default below half of the best level, 3 in a row.
	Executable Level `json:"executable"`
	// Validation: default below 0.01, 5 evaluations in a row (RAGEN v2).
	Validation Threshold `json:"validation"`
	// EmptySelection: default 5 in a row (RAGEN v2).
	EmptySelection Row `json:"empty_selection"`
	// NonFinite: default at once.
	NonFinite Row `json:"non_finite"`
	// RolloutDiff: default not watched.
	RolloutDiff Bound `json:"training_rollout_diff,omitzero"`
	// NotExact: default stop, at once.
	NotExact Row `json:"not_exact,omitzero"`

	// The rules from here to EchoTrap watch nothing where they are left out; see Filled.

	// NoSignal: by default 5 in a row.
	NoSignal Row `json:"no_signal,omitzero"`
	// NoFormat: by default below 0.05, the first 5 in a row.
	NoFormat Share `json:"no_format,omitzero"`
	// EntropyUniform: by default above half of the logarithm of the vocabulary, 3 in a row.
	EntropyUniform Uniform `json:"entropy_uniform,omitzero"`
	// ToolCalls: by default below 0.3 of the best level, 5 in a row.
	ToolCalls Level `json:"tool_calls,omitzero"`
	// EchoTrap: by default three signs within 10 iterations.
	EchoTrap Signs `json:"echo_trap,omitzero"`

	// Rollback is what a rollback does.
	Rollback Rollback `json:"rollback"`
}

// Level is the numbers of a rule that measures a figure by a level of its own.
type Level struct {
	// OnDetection is what is done; default as in the config.
	OnDetection Action `json:"on_detection"`
	// Factor times the level is the threshold: between 0 and 1 for figures that
	// fall, above 1 to 1000 for figures that rise.
	Factor float64 `json:"factor"`
	// Floor, in the figure's unit, is the smallest level that means anything: below it a
	// fall is not judged, and a rise is measured from it.
	Floor float64 `json:"floor"`
	// Iterations is how many values in a row must depart. From 1 to 1000.
	Iterations int `json:"iterations"`
}

// Threshold is the numbers of a rule with a fixed threshold.
type Threshold struct {
	// OnDetection is what is done; default as in the config.
	OnDetection Action `json:"on_detection"`
	// Below is the threshold, from above 0 to 1.
	Below float64 `json:"below"`
	// Evaluations is how many in a row must be below it. From 1 to 1000.
	Evaluations int `json:"evaluations"`
}

// Row is the number of a rule that only counts.
type Row struct {
	// OnDetection is what is done; default as in the config.
	OnDetection Action `json:"on_detection"`
	// Iterations is how many in a row fire it. From 1 to 1000.
	Iterations int `json:"iterations"`
}

// Bound is the number of a rule that fires at once above a fixed bound. Its zero value
// watches nothing.
type Bound struct {
	// OnDetection is what is done; default, or left out, as in the config.
	OnDetection Action `json:"on_detection,omitempty"`
	// Above is the bound, in the figure's unit, up to 1000; 0 watches nothing.
	Above float64 `json:"above,omitempty"`
}

// Rollback is what a rollback does: which knobs it changes, and how often. A
// change is made to the settings of the iteration the run goes back to, each time
// again.
type Rollback struct {
	// Max is how often a run is rolled back, from 0 to 100. Default 2.
	Max int `json:"max"`
	// Then is the action when Max is used up, or when only the base model is before the
	// onset: warn or stop. Default stop.
	Then Action `json:"then"`
	// LearningRateFactor multiplies the learning rate; above 0 to 10. Default 0.5.
	LearningRateFactor float64 `json:"learning_rate_factor"`
	// SelectionKeep is the new share of groups that are kept, up to 1. 0, the
	// default, leaves it as it is.
	SelectionKeep float64 `json:"selection_keep"`
	// ClipHigh is the new upper clip bound, up to 10. 0, the default, leaves it.
	ClipHigh float64 `json:"clip_high"`
	// Temperature is the new one of sampling, from 0.01 to 10. 0, the default,
	// leaves it.
	Temperature float64 `json:"temperature"`
	// EntropyCoefficient is the new weight of the entropy bonus, up to 1. −1, the
	// default, leaves it.
	EntropyCoefficient float64 `json:"entropy_coefficient"`
	// KLCoefficient is the new weight of the KL divergence from the reference, up
	// to 10. −1, the default, leaves it.
	KLCoefficient float64 `json:"kl_coefficient"`
}

// Defaults is the config of a run of the starter that says nothing: all rules but the optional ones are
// watched, and warned of.
func Defaults() Config {
	return Config{
		OnDetection: Warn, WarmUp: 5, Decay: DefaultDecay, Solved: 0.9,
		RewardStd:      Level{OnDetection: Inherit, Factor: 0.2, Floor: 1e-6, Iterations: 5},
		EntropyFall:    Level{OnDetection: Inherit, Factor: 1.0 / 3, Floor: 0.05, Iterations: 3},
		EntropyRise:    Level{OnDetection: Inherit, Factor: 2, Floor: 0.1, Iterations: 3},
		GradNorm:       Level{OnDetection: Inherit, Factor: 5, Floor: 0.1, Iterations: 2},
		Distinct:       Level{OnDetection: Inherit, Factor: 0.5, Floor: 1e-6, Iterations: 5},
		Similarity:     Level{OnDetection: Inherit, Factor: 0.25, Floor: 0.01, Iterations: 5},
		Executable:     Level{OnDetection: Inherit, Factor: 0.5, Floor: 0.05, Iterations: 3},
		Validation:     Threshold{OnDetection: Inherit, Below: 0.01, Evaluations: 5},
		EmptySelection: Row{OnDetection: Inherit, Iterations: 5},
		NonFinite:      Row{OnDetection: Inherit, Iterations: 1},
		NotExact:       Row{OnDetection: Stop, Iterations: 1},
		Rollback:       Rollback{Max: 2, Then: Stop, LearningRateFactor: 0.5, EntropyCoefficient: -1, KLCoefficient: -1},
	}
}

// level is a rule's Level, nil if it has none.
func (c *Config) level(name string) *Level {
	switch name {
	case RewardStd:
		return &c.RewardStd
	case EntropyFall:
		return &c.EntropyFall
	case EntropyRise:
		return &c.EntropyRise
	case GradNorm:
		return &c.GradNorm
	case Distinct:
		return &c.Distinct
	case Similarity:
		return &c.Similarity
	case Executable:
		return &c.Executable
	}
	return nil
}

// limit is a rule's numbers.
func (c Config) limit(r Rule) limit {
	switch r.Name {
	case Validation:
		return limit{factor: c.Validation.Below, row: c.Validation.Evaluations}
	case EmptySelection:
		return limit{factor: 1, row: c.EmptySelection.Iterations}
	case NonFinite:
		return limit{factor: 0, row: c.NonFinite.Iterations}
	case RolloutDiff:
		return limit{factor: c.RolloutDiff.Above, row: 1}
	case NotExact:
		return limit{row: max(c.NotExact.Iterations, 1)}
	}
	if l, _, ok := c.optional(r.Name); ok {
		return l
	}
	l := c.level(r.Name)
	if l == nil {
		return limit{}
	}
	return limit{factor: l.Factor, floor: l.Floor, row: l.Iterations}
}

// action is what is done when a rule fires; Off if it is not watched.
func (c Config) action(r Rule) Action {
	var a Action
	switch r.Name {
	case Validation:
		a = c.Validation.OnDetection
	case EmptySelection:
		a = c.EmptySelection.OnDetection
	case NonFinite:
		a = c.NonFinite.OnDetection
	case NotExact:
		if c.NotExact == (Row{}) {
			return Off
		}
		a = c.NotExact.OnDetection
	case RolloutDiff:
		if c.RolloutDiff.Above == 0 {
			return Off
		}
		a = cmp.Or(c.RolloutDiff.OnDetection, Inherit)
	default:
		if l := c.level(r.Name); l != nil {
			a = l.OnDetection
			break
		}
		_, own, watched := c.optional(r.Name)
		if !watched {
			return Off
		}
		a = cmp.Or(own, Inherit)
	}
	if a == Inherit {
		return c.OnDetection
	}
	return a
}

// Reach is how many iterations before its detection a collapse may be rolled back
// to, at most, in a run that evaluates every so many iterations (0 for never).
// Retention keeps at least that much. Iterations without a rule's figure, such as
// those without an update, come on top: they do not change the policy. 0 if
// nothing is rolled back.
func (c Config) Reach(evaluationEvery int) int {
	reach := 0
	for _, r := range rules {
		if c.action(r) != RollBack {
			continue
		}
		row := c.limit(r).row
		switch {
		case r.by == byEvaluation:
			reach = max(reach, row*evaluationEvery)
		case r.against == fixed:
			reach = max(reach, row+1)
		default:
			reach = max(reach, 2*row)
		}
	}
	return reach
}

// Knob is one change that a rollback makes to the settings.
type Knob struct {
	// Path is the knob's path in the spec.
	Path string
	// Times multiplies the value; 0 if Set replaces it.
	Times float64
	// Set replaces the value if Times is 0.
	Set float64
}

// Knobs lists what a rollback changes.
func (r Rollback) Knobs() []Knob {
	var knobs []Knob
	if r.LearningRateFactor != 1 {
		knobs = append(knobs, Knob{Path: "update.learning_rate", Times: r.LearningRateFactor})
	}
	for _, k := range []struct {
		path  string
		value float64
		leave bool
	}{
		{"selection.keep", r.SelectionKeep, r.SelectionKeep == 0},
		{"update.clip_high", r.ClipHigh, r.ClipHigh == 0},
		{"rollout.temperature", r.Temperature, r.Temperature == 0},
		{"update.entropy_coefficient", r.EntropyCoefficient, r.EntropyCoefficient < 0},
		{"update.kl_coefficient", r.KLCoefficient, r.KLCoefficient < 0},
	} {
		if !k.leave {
			knobs = append(knobs, Knob{Path: k.path, Set: k.value})
		}
	}
	return knobs
}

// String is the change in words, as in "update.learning_rate × 0.5".
func (k Knob) String() string {
	if k.Times != 0 {
		return fmt.Sprintf("%s × %s", k.Path, short(k.Times))
	}
	return fmt.Sprintf("%s = %s", k.Path, short(k.Set))
}
