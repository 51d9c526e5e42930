// Package bandit is RAGEN's two-armed bandit: a low arm that always pays the
// same, and a high arm that pays more on average but mostly nothing
// (arXiv 2504.20073, appendix). One turn, one action.
//
// What is asked of the policy is to prefer the mean over certainty, and, across
// names, to reason on what they stand for. Success means that the high arm was
// chosen, not that it paid; with a high arm of a smaller mean than the low one's
// (high_probability 0.10) the right choice is the low arm and success should
// fall, so look at the mean reward beside it.
package bandit

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

// Name is the environment's name in a spec.
const Name = "bandit"

func init() { envs.Register(Name, New) }

// Options of the bandit. See Describe for each.
type Options struct {
	Names           string  `json:"names"`
	LowName         string  `json:"low_name"`
	HighName        string  `json:"high_name"`
	Reversed        bool    `json:"reversed"`
	LowReward       float64 `json:"low_reward"`
	HighReward      float64 `json:"high_reward"`
	HighProbability float64 `json:"high_probability"`
	SharedChance    bool    `json:"shared_chance"`
}

// Defaults are the paper's values with RAGEN's training names.
var Defaults = Options{
	Names:           "pair",
	LowName:         "Phoenix",
	HighName:        "Dragon",
	LowReward:       0.15,
	HighReward:      1,
	HighProbability: 0.25,
}

// Bandit is the environment with its options resolved.
type Bandit struct {
	options Options
	pairs   []pair
}

// pair names the two arms.
type pair struct{ low, high string }

// maxReward bounds the rewards, so that their text has a bounded width.
const maxReward = 1000

// New makes a bandit from its options; the error is an *envs.OptionsError.
func New(raw json.RawMessage) (envs.Environment, error) {
	o := Defaults
	problems := envs.DecodeOptions(raw, &o)
	wrong := func(path string, found any, want string) {
		text, err := json.Marshal(found)
		if err != nil {
			text = []byte(fmt.Sprint(found))
		}
		problems = append(problems, envs.Problem{Path: path, Found: string(text), Want: want})
	}
	pairs := []pair{{o.LowName, o.HighName}}
	if o.Names != "pair" {
		var ok bool
		if pairs, ok = splits[o.Names]; !ok {
			want := "one of " + strings.Join(splitNames, ", ")
			if near := envs.Nearest(o.Names, splitNames); near != "" {
				want += fmt.Sprintf(" (did you mean %q?)", near)
			}
			wrong("names", o.Names, want)
		}
		if o.LowName != Defaults.LowName || o.HighName != Defaults.HighName {
			wrong("names", o.Names, `"pair" where low_name or high_name are given`)
		}
	}
	for _, name := range []struct{ path, value string }{{"low_name", o.LowName}, {"high_name", o.HighName}} {
		if !validName(name.value) {
			wrong(name.path, name.value, "1 to 40 characters, no line breaks, commas, tags or "+envs.Separator)
		}
	}
	if strings.EqualFold(o.LowName, o.HighName) {
		wrong("high_name", o.HighName, "another name than low_name's, case ignored")
	}
	for _, r := range []struct {
		path  string
		value float64
	}{{"low_reward", o.LowReward}, {"high_reward", o.HighReward}} {
		if !(math.Abs(r.value) <= maxReward) {
			wrong(r.path, r.value, fmt.Sprintf("from -%d to %d", maxReward, maxReward))
		}
	}
	if !(o.HighProbability >= 0 && o.HighProbability <= 1) {
		wrong("high_probability", o.HighProbability, "from 0 to 1")
	}
	if len(problems) > 0 {
		return nil, &envs.OptionsError{Environment: Name, Problems: problems}
	}
	b := &Bandit{options: o}
	for _, p := range pairs {
		if o.Reversed {
			p.low, p.high = p.high, p.low
		}
		b.pairs = append(b.pairs, p)
	}
	return b, nil
}

func validName(s string) bool {
	return s != "" && len([]rune(s)) <= 40 && strings.TrimSpace(s) == s &&
		!strings.ContainsAny(s, "\n\r,<>") && !strings.Contains(s, envs.Separator) && s != "1" && s != "2"
}

// Name implements envs.Environment.
func (b *Bandit) Name() string { return Name }

// Instructions implements envs.Environment.
func (b *Bandit) Instructions() string {
	return "One of two arms pays more points on average. Think about what the names stand for, and choose that arm."
}

// Actions implements envs.Environment: nil, since the observation names the
// arms in the instance's order; a fixed list would give away which is which.
func (b *Bandit) Actions() []string { return nil }

// MaxActions implements envs.Environment.
func (b *Bandit) MaxActions() int { return 1 }

// MaxActionsPerTurn implements envs.Environment.
func (b *Bandit) MaxActionsPerTurn() int { return 1 }

// Reset implements envs.Environment. The instance draws the pair of names and
// the order in which they are listed; the chance draws the payout, from the
// instance's address where shared_chance asks for RAGEN's behaviour.
func (b *Bandit) Reset(instance, chance draw.Address) envs.Episode {
	instance.Member = 0
	r := instance.Rand()
	p := b.pairs[r.IntN(len(b.pairs))]
	e := &episode{bandit: b, pair: p, highFirst: r.IntN(2) == 1, chance: chance}
	if b.options.SharedChance {
		e.chance.Member = 0
	}
	return e
}

// Cases implements envs.Environment: every pair in both orders.
func (b *Bandit) Cases() []envs.Episode {
	var cases []envs.Episode
	for _, p := range b.pairs {
		for _, highFirst := range []bool{false, true} {
			cases = append(cases, &episode{bandit: b, pair: p, highFirst: highFirst})
		}
	}
	return cases
}

// episode is the state of a member's episode.
type episode struct {
	bandit    *Bandit
	pair      pair
	highFirst bool
	chance    draw.Address
	chosen    string
}

// Choices implements envs.Episode: the arms in the listed order.
func (e *episode) Choices() []string {
	if e.highFirst {
		return []string{e.pair.high, e.pair.low}
	}
	return []string{e.pair.low, e.pair.high}
}

// Observation implements envs.Episode.
func (e *episode) Observation() string { return "Arms: " + strings.Join(e.Choices(), ", ") }

// Legal implements envs.Episode: a name, or the number of its place in the list.
func (e *episode) Legal(action string) (string, bool) {
	choices := e.Choices()
	switch action {
	case "1":
		return choices[0], true
	case "2":
		return choices[1], true
	}
	return envs.Lookup(choices, action)
}

// Step implements envs.Episode.
func (e *episode) Step(action string) envs.Outcome {
	if e.chosen != "" || action != e.pair.low && action != e.pair.high {
		panic(fmt.Sprintf("bandit: step %q is not legal (chosen: %q)", action, e.chosen))
	}
	e.chosen = action
	reward := e.bandit.options.LowReward
	if action == e.pair.high {
		reward = 0
		// The draw is made for the high arm alone: the low one pays without chance.
		if e.chance.Rand().Float64() < e.bandit.options.HighProbability {
			reward = e.bandit.options.HighReward
		}
	}
	return envs.Outcome{
		Reward:    reward,
		Done:      true,
		Effective: true,
		Success:   e.Success(),
		Text:      fmt.Sprintf("%s: %s points", action, envs.FormatReward(reward)),
	}
}

// StateKey implements envs.Episode.
func (e *episode) StateKey() string {
	return fmt.Sprintf("low=%s high=%s first=%s chosen=%s", e.pair.low, e.pair.high, e.Choices()[0], e.chosen)
}

// Done implements envs.Episode.
func (e *episode) Done() bool { return e.chosen != "" }

// Success implements envs.Episode: the high arm was chosen, whatever it paid.
func (e *episode) Success() bool { return e.chosen == e.pair.high }

// Describe implements envs.Environment.
func (b *Bandit) Describe() envs.Description {
	return envs.Description{
		Name:    Name,
		Summary: "Two named arms: one pays little for certain, one pays more on average but seldom. One turn, one action; success is the choice of the high arm.",
		Options: []envs.Option{
			{Name: "names", Type: "string", Default: Defaults.Names, Doc: `"pair" for low_name and high_name, or one of RAGEN's sets, a pair drawn for each instance: ` + strings.Join(splitNames[1:], ", ")},
			{Name: "low_name", Type: "string", Default: Defaults.LowName, Doc: "name of the low arm (RAGEN's training pair)"},
			{Name: "high_name", Type: "string", Default: Defaults.HighName, Doc: "name of the high arm (RAGEN's training pair)"},
			{Name: "reversed", Type: "boolean", Default: Defaults.Reversed, Doc: "swap the names of the arms: the paper's counter-intuitive assignment"},
			{Name: "low_reward", Type: "number", Default: Defaults.LowReward, Doc: "what the low arm always pays: 0.15 in the paper, 0.1 in RAGEN's code"},
			{Name: "high_reward", Type: "number", Default: Defaults.HighReward, Doc: "what the high arm pays when it pays"},
			{Name: "high_probability", Type: "number", Default: Defaults.HighProbability, Doc: "how often the high arm pays"},
			{Name: "shared_chance", Type: "boolean", Default: Defaults.SharedChance, Doc: "one payout for a whole group, as in RAGEN's code; otherwise each member has its own"},
		},
	}
}
