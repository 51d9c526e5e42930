package bandit

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

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
	Instances       int     `json:"instances"`
	Pool            int     `json:"pool"`
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

// maxReward bounds the rewards, so that their text has a bounded width.
const maxReward = 1000

// New makes a bandit from its options; the error is an *envs.OptionsError.
func New(raw json.RawMessage) (envs.Environment, error) {
	o := Defaults
	checks := board.Checks{Problems: envs.DecodeOptions(raw, &o)}
	checks.OneOf("names", o.Names, splitNames)
	pairs, ok := splits[o.Names]
	if !ok {
		pairs = []pair{{o.LowName, o.HighName}}
	}
	if o.Names != splitNames[0] && (o.LowName != Defaults.LowName || o.HighName != Defaults.HighName) {
		checks.Wrong("names", o.Names, `"pair" where low_name or high_name are given`)
	}
	for _, name := range []struct{ path, value string }{{"low_name", o.LowName}, {"high_name", o.HighName}} {
		if !validName(name.value) {
			checks.Wrong(name.path, name.value, "1 to 40 characters, no line breaks, commas, tags or "+envs.Separator)
		}
	}
	if strings.EqualFold(o.LowName, o.HighName) {
		checks.Wrong("high_name", o.HighName, "another name than low_name's, case ignored")
	}
	for _, r := range []struct {
		path  string
		value float64
	}{{"low_reward", o.LowReward}, {"high_reward", o.HighReward}} {
		if !(math.Abs(r.value) <= maxReward) {
			checks.Wrong(r.path, r.value, fmt.Sprintf("from -%d to %d", maxReward, maxReward))
		}
	}
	checks.Probability("high_probability", o.HighProbability)
	b := &Bandit{options: o}
	for _, p := range pairs {
		if o.Reversed {
			p.low, p.high = p.high, p.low
		}
		b.pairs = append(b.pairs, p)
	}
	all := b.listings()
	if ok || o.Names == splitNames[0] {
		checks.Range("instances", o.Instances, 0, len(all))
	}
	checks.Range("pool", o.Pool, 0, board.MaxInstances)
	if err := checks.Err(Name); err != nil {
		return nil, err
	}
	if o.Instances > 0 {
		for _, at := range board.Member(0, o.Pool).Rand().Perm(len(all))[:o.Instances] {
			b.pool = append(b.pool, all[at])
		}
	}
	return b, nil
}

func validName(s string) bool {
	return s != "" && len([]rune(s)) <= 40 && strings.TrimSpace(s) == s &&
		!strings.ContainsAny(s, "\n\r,<>") && !strings.Contains(s, envs.Separator) && s != "1" && s != "2"
}

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
			{Name: "instances", Type: "integer", Default: Defaults.Instances, Doc: "how many different instances there are, whatever the seed: a pair and the order in which its arms are listed, so at most two for each pair; 0 for no limit"},
			{Name: "pool", Type: "integer", Default: Defaults.Pool, Doc: "which instances these are: pools with other numbers have others"},
		},
	}
}
