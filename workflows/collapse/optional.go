package collapse

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// The rules of this file watch nothing where a config leaves them out whole, as configs of earlier
// releases do. Runs of other policies than the starter have them by default: see Config.Filled.

// Share is the numbers of a rule that looks for a share that is too low.
type Share struct {
	// OnDetection is what is done; default as in the config.
	OnDetection Action `json:"on_detection,omitempty"`
	// Below is the threshold, from above 0 to 1.
	Below float64 `json:"below,omitempty"`
	// Iterations is how many in a row must be below it. From 1 to 1000.
	Iterations int `json:"iterations,omitempty"`
}

// Uniform is the numbers of the rule that compares the entropy with that of uniform choice.
type Uniform struct {
	// OnDetection is what is done; default as in the config.
	OnDetection Action `json:"on_detection,omitempty"`
	// Above is the threshold, a share of the logarithm of the vocabulary, from above 0 to 1.
	Above float64 `json:"above,omitempty"`
	// Iterations is how many in a row must be above it. From 1 to 1000.
	Iterations int `json:"iterations,omitempty"`
	// Vocabulary is the model's number of tokens. Leave it out: the start of a run writes it down.
	Vocabulary int `json:"vocabulary,omitempty"`
}

// Signs is the numbers of the rule that watches the signs of the echo trap together.
type Signs struct {
	// OnDetection is what is done; default as in the config.
	OnDetection Action `json:"on_detection,omitempty"`
	// Signs is how many of the four must have shown, from 2 to 4.
	Signs int `json:"signs,omitempty"`
	// Within is the iterations in which they must have, from 1 to 1000.
	Within int `json:"within,omitempty"`
}

// published are the numbers of the optional rules.
var published = Config{
	NoSignal:       Row{OnDetection: Inherit, Iterations: 5},
	NoFormat:       Share{OnDetection: Inherit, Below: 0.05, Iterations: 5},
	EntropyUniform: Uniform{OnDetection: Inherit, Above: 0.5, Iterations: 3},
	ToolCalls:      Level{OnDetection: Inherit, Factor: 0.3, Floor: 0.2, Iterations: 5},
	EchoTrap:       Signs{OnDetection: Inherit, Signs: 3, Within: 10},
}

// With is a config in which an optional rule has its usual numbers. The name of any other field changes
// nothing.
func (c Config) With(rule string) Config {
	switch rule {
	case NoSignal:
		c.NoSignal = published.NoSignal
	case NoFormat:
		c.NoFormat = published.NoFormat
	case EntropyUniform:
		c.EntropyUniform = published.EntropyUniform
	case ToolCalls:
		c.ToolCalls = published.ToolCalls
	case EchoTrap:
		c.EchoTrap = published.EchoTrap
	}
	return c
}

// Filled is a config in which the optional rules that it leaves out have their usual numbers.
func (c Config) Filled() Config {
	c.NoSignal = cmp.Or(c.NoSignal, published.NoSignal)
	c.NoFormat = cmp.Or(c.NoFormat, published.NoFormat)
	c.EntropyUniform = cmp.Or(c.EntropyUniform, published.EntropyUniform)
	c.ToolCalls = cmp.Or(c.ToolCalls, published.ToolCalls)
	c.EchoTrap = cmp.Or(c.EchoTrap, published.EchoTrap)
	return c
}

// optional is the limit and the action of an optional rule; false if the rule is another one, or is
// not watched.
func (c Config) optional(name string) (limit, Action, bool) {
	switch name {
	case NoSignal:
		return limit{factor: flat, row: c.NoSignal.Iterations}, c.NoSignal.OnDetection, c.NoSignal != Row{}
	case NoFormat:
		return limit{factor: c.NoFormat.Below, row: c.NoFormat.Iterations}, c.NoFormat.OnDetection, c.NoFormat != Share{}
	case EntropyUniform:
		u := c.EntropyUniform
		return limit{factor: u.Above, row: u.Iterations}, u.OnDetection, u.Vocabulary > 1
	case ToolCalls:
		l := c.ToolCalls
		return limit{factor: l.Factor, floor: l.Floor, row: l.Iterations}, l.OnDetection, l != Level{}
	case EchoTrap:
		return limit{row: c.EchoTrap.Within}, c.EchoTrap.OnDetection, c.EchoTrap != Signs{}
	}
	return limit{}, Off, false
}

// flat is the deviation of returns below which they are equal.
const flat = 1e-9

var optionalRules = []Rule{
	{
		Name: NoSignal, Metrics: []string{MetricRewardStd}, Severity: Late,
		what: "the in-group reward deviation", says: "no group's returns differed", against: fixed, narrowing: true,
		Doc:    "In no group did the returns differ, for some iterations in a row: there is nothing to learn from, whether such groups are kept or not.",
		Source: "Ours, from a published model that earned no reward and was erased by the entropy bonus.",
		Remedy: "nothing can be learned from that: set policy.warm_start, an easier environment, or a larger rollout.group_size",
	},
	{
		Name: NoFormat, Metrics: []string{MetricExecutable, MetricValid}, Severity: Early,
		what: "the share of turns with an executable action", against: fixed, fromStart: true,
		Doc:    "The share of turns with an executable action has been next to 0 since the first iteration: the policy does not know the format. That it loses the format later is what `executable` looks for.",
		Source: "Ours: published models of 135 M parameters copy the prompt's placeholders.",
		Remedy: "the policy does not write the format: set policy.warm_start, or a wording that shows an example (rollout.protocol)",
	},
	{
		Name: EntropyUniform, Metrics: []string{MetricEntropy}, Severity: Late,
		what: "the entropy as a share of that of uniform choice", against: fixed, above: true,
		Doc:    "The entropy, raw, is above a share of the logarithm of the vocabulary for some iterations in a row: the policy chooses tokens almost at random.",
		Source: "Ours, from a published model whose entropy rose from 0.34 to 0.94 of it in ten iterations.",
		Remedy: "the policy comes apart: set update.entropy_coefficient to 0 or lower update.learning_rate, and go back to an earlier version",
	},
	{
		Name: ToolCalls, Metrics: []string{MetricToolCalls}, Severity: Early,
		what: "the number of tool calls an episode", against: best, narrowing: true,
		Doc:    "The calls of all tools an episode are below a fraction of their best level for some iterations in a row, though the task is not solved: the policy gives its tools up.",
		Source: "PyVision-RL (arXiv 2602.20739): interaction collapse. The numbers are ours.",
		Remedy: "the policy gives its tools up: reward calls that help (the reward tools), or lower update.learning_rate",
	},
}

// look reads a rule's figure; false if there is none.
func (d Detectors) look(r Rule, m Metrics) (seen, bool) {
	switch r.Name {
	case ToolCalls:
		return lookToolCalls(m)
	case EntropyUniform:
		s, ok := r.look(m)
		s.value = canon.Float(float64(s.value) / math.Log(float64(d.config.EntropyUniform.Vocabulary)))
		return s, ok && d.config.EntropyUniform.Vocabulary > 1
	}
	return r.look(m)
}

// lookToolCalls adds the calls of all tools of all environments, in the order of their names.
func lookToolCalls(m Metrics) (seen, bool) {
	s := seen{by: byRollout}
	for name := range m {
		if strings.HasPrefix(name, "train/") && strings.HasSuffix(name, "_calls") && m[name].Finite() {
			s.evidence = append(s.evidence, Evidence{name, m[name]})
		}
	}
	slices.SortFunc(s.evidence, func(a, b Evidence) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range s.evidence {
		s.value += e.Value
	}
	return s, len(s.evidence) > 0
}
