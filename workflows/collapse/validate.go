package collapse

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

const (
	maxRow        = 1000
	maxVocabulary = 1 << 30
)

// Validate gives everything that is wrong with the config, in the order of its
// fields; nil when nothing is. Paths are those inside the config, as in
// "reward_std.factor".
func (c Config) Validate() strict.Problems {
	v := &check{}
	v.oneOf("on_detection", c.OnDetection, Off, Warn, Stop, RollBack)
	v.integer("warm_up", c.WarmUp, 1, maxRow)
	v.number("decay", c.Decay, c.Decay >= 0 && c.Decay <= 0.999, "a number from 0 to 0.999")
	v.number("solved", c.Solved, c.Solved >= 0 && c.Solved <= 1, "0 (never) or a number up to 1")
	for _, r := range rules {
		l := c.level(r.Name)
		if l == nil {
			continue
		}
		v.action(r.Name, l.OnDetection)
		if r.above {
			v.number(r.Name+".factor", l.Factor, l.Factor > 1 && l.Factor <= 1000, "a number above 1 and at most 1000")
		} else {
			v.number(r.Name+".factor", l.Factor, l.Factor > 0 && l.Factor < 1, "a number above 0 and below 1")
		}
		v.number(r.Name+".floor", l.Floor, l.Floor >= 0 && l.Floor <= 1e6, "a number from 0 to 1000000")
		v.integer(r.Name+".iterations", l.Iterations, 1, maxRow)
	}
	v.action(Validation, c.Validation.OnDetection)
	v.number("validation.below", c.Validation.Below, c.Validation.Below > 0 && c.Validation.Below <= 1, "a number above 0 and at most 1")
	v.integer("validation.evaluations", c.Validation.Evaluations, 1, maxRow)
	v.action(EmptySelection, c.EmptySelection.OnDetection)
	v.integer("empty_selection.iterations", c.EmptySelection.Iterations, 1, maxRow)
	v.action(NonFinite, c.NonFinite.OnDetection)
	v.integer("non_finite.iterations", c.NonFinite.Iterations, 1, maxRow)
	v.action(RolloutDiff, cmp.Or(c.RolloutDiff.OnDetection, Inherit))
	above := c.RolloutDiff.Above
	v.number("training_rollout_diff.above", above, above >= 0 && above <= 1000, "0 (not watched) or a number up to 1000")
	if c.NotExact != (Row{}) {
		v.action(NotExact, c.NotExact.OnDetection)
		v.integer("not_exact.iterations", c.NotExact.Iterations, 1, maxRow)
	}
	v.optional(c)
	v.rollback(c)
	return v.problems
}

// optional checks the rules that may be left out, where they are not.
func (v *check) optional(c Config) {
	if r := c.NoSignal; r != (Row{}) {
		v.action(NoSignal, r.OnDetection)
		v.integer("no_signal.iterations", r.Iterations, 1, maxRow)
	}
	if s := c.NoFormat; s != (Share{}) {
		v.action(NoFormat, s.OnDetection)
		v.number("no_format.below", s.Below, s.Below > 0 && s.Below <= 1, "a number above 0 and at most 1")
		v.integer("no_format.iterations", s.Iterations, 1, maxRow)
	}
	if u := c.EntropyUniform; u != (Uniform{}) {
		v.action(EntropyUniform, u.OnDetection)
		v.number("entropy_uniform.above", u.Above, u.Above > 0 && u.Above <= 1, "a number above 0 and at most 1")
		v.integer("entropy_uniform.iterations", u.Iterations, 1, maxRow)
		v.integer("entropy_uniform.vocabulary", u.Vocabulary, 0, maxVocabulary)
	}
	if l := c.ToolCalls; l != (Level{}) {
		v.action(ToolCalls, l.OnDetection)
		v.number("tool_calls.factor", l.Factor, l.Factor > 0 && l.Factor < 1, "a number above 0 and below 1")
		v.number("tool_calls.floor", l.Floor, l.Floor >= 0 && l.Floor <= 1e6, "a number from 0 to 1000000")
		v.integer("tool_calls.iterations", l.Iterations, 1, maxRow)
	}
	if s := c.EchoTrap; s != (Signs{}) {
		v.action(EchoTrap, s.OnDetection)
		v.integer("echo_trap.signs", s.Signs, 2, len(signs))
		v.integer("echo_trap.within", s.Within, 1, maxRow)
	}
}

func (v *check) rollback(c Config) {
	r := c.Rollback
	v.integer("rollback.max", r.Max, 0, 100)
	v.oneOf("rollback.then", r.Then, Warn, Stop)
	v.number("rollback.learning_rate_factor", r.LearningRateFactor, r.LearningRateFactor > 0 && r.LearningRateFactor <= 10, "a number above 0 and at most 10")
	leave := func(name string, value, low, high float64) {
		v.number("rollback."+name, value, value == 0 || value >= low && value <= high,
			fmt.Sprintf("0 (as it is) or a number from %s to %s", short(low), short(high)))
	}
	leave("selection_keep", r.SelectionKeep, 1e-6, 1)
	leave("clip_high", r.ClipHigh, 1e-6, 10)
	leave("temperature", r.Temperature, 0.01, 10)
	coefficient := func(name string, value, high float64) {
		v.number("rollback."+name, value, value == -1 || value >= 0 && value <= high,
			fmt.Sprintf("-1 (as it is) or a number from 0 to %s", short(high)))
	}
	coefficient("entropy_coefficient", r.EntropyCoefficient, 1)
	coefficient("kl_coefficient", r.KLCoefficient, 10)
	if r.Max != 0 {
		return
	}
	for _, rule := range rules {
		if c.action(rule) == RollBack {
			v.add("rollback.max", "0 beside a rule that rolls back", "an integer from 1 to 100",
				"set rollback.max to 1 or more, or on_detection to stop")
			return
		}
	}
}

// check collects problems.
type check struct{ problems strict.Problems }

func (v *check) add(path, found, allowed, hint string) {
	v.problems = append(v.problems, strict.Problem{Path: path, Found: found, Allowed: allowed, Hint: hint})
}

// number adds a problem unless ok, which is false for NaN as every comparison is.
func (v *check) number(path string, value float64, ok bool, allowed string) {
	if !ok {
		v.add(path, short(value), allowed, "")
	}
}

func (v *check) integer(path string, value, low, high int) {
	if value < low || value > high {
		v.add(path, fmt.Sprint(value), fmt.Sprintf("an integer from %d to %d", low, high), "")
	}
}

func (v *check) action(rule string, a Action) {
	v.oneOf(rule+".on_detection", a, Inherit, Off, Warn, Stop, RollBack)
}

func (v *check) oneOf(path string, a Action, allowed ...Action) {
	words := make([]string, len(allowed))
	for i, b := range allowed {
		if a == b {
			return
		}
		words[i] = string(b)
	}
	v.add(path, fmt.Sprintf("%.60q", string(a)), strings.Join(words, ", "), "")
}
