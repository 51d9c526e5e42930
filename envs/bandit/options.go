package bandit

import (
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

const summary = "Two named arms: one pays little for certain, the other seldom pays, but more on average. One turn, one action; success is the choice of the high arm."

// lowName and highName are RAGEN's training names.
const lowName, highName = "Phoenix", "Dragon"

// maxReward bounds the rewards, so that their text has a bounded width.
const maxReward = 1000

// Options of the bandit; New says what each is. The defaults are the paper's values
// with RAGEN's training names.
type Options struct {
	Names, LowName, HighName               string
	Reversed, SharedChance                 bool
	LowReward, HighReward, HighProbability float64
	Instances, Pool                        int
}

// New makes a bandit from its options.
func New(o *envs.Options) envs.Environment {
	b := &Bandit{}
	s := &b.options
	o.Choice("names", &s.Names, splitNames[0], splitNames, `"pair" uses low_name and high_name; each instance of one of RAGEN's sets draws a pair: `+strings.Join(splitNames[1:], ", "))
	o.Text("low_name", &s.LowName, lowName, "name of the low arm (RAGEN's training pair)")
	o.Text("high_name", &s.HighName, highName, "name of the high arm (RAGEN's training pair)")
	o.Bool("reversed", &s.Reversed, false, "swap the names of the arms: the paper's counter-intuitive assignment")
	b.name(o)
	o.Number("low_reward", &s.LowReward, 0.15, -maxReward, maxReward, "what the low arm always pays: 0.15 in the paper, 0.1 in RAGEN's code")
	o.Number("high_reward", &s.HighReward, 1, -maxReward, maxReward, "what the high arm pays if it pays")
	o.Number("high_probability", &s.HighProbability, 0.25, 0, 1, "how often the high arm pays")
	o.Bool("shared_chance", &s.SharedChance, false, "one payout for a whole group, as in RAGEN's code; otherwise each member has its own")
	all, most := b.listings(), board.MaxInstances
	if len(all) > 0 {
		most = len(all)
	}
	o.Int("instances", &s.Instances, 0, 0, most, "how many different instances there are, whatever the seed; 0 for no limit. An instance is a pair and the order of its arms, so there are at most two for each pair")
	o.Int("pool", &s.Pool, 0, 0, board.MaxInstances, "which instances these are: another pool has others")
	if s.Instances > 0 && o.OK() {
		b.pool = board.Some(all, s.Instances, s.Pool)
	}
	return b
}

// name checks the names and gives the bandit its pairs; none if names is unknown.
func (b *Bandit) name(o *envs.Options) {
	s := b.options
	pairs := splits[s.Names]
	if s.Names == splitNames[0] {
		pairs = []pair{{s.LowName, s.HighName}}
	} else if s.LowName != lowName || s.HighName != highName {
		o.Wrong("names", `"pair" where low_name or high_name are given`)
	}
	for _, name := range []struct{ path, value string }{{"low_name", s.LowName}, {"high_name", s.HighName}} {
		if !validName(name.value) {
			o.Wrong(name.path, "1 to 40 characters, no line breaks, commas, tags or "+envs.Separator)
		}
	}
	if strings.EqualFold(s.LowName, s.HighName) {
		o.Wrong("high_name", "another name than low_name's, case ignored")
	}
	for _, p := range pairs {
		if s.Reversed {
			p.low, p.high = p.high, p.low
		}
		b.pairs = append(b.pairs, p)
	}
}

func validName(s string) bool {
	return s != "" && len([]rune(s)) <= 40 && strings.TrimSpace(s) == s &&
		!strings.ContainsAny(s, "\n\r,<>") && !strings.Contains(s, envs.Separator) && s != "1" && s != "2"
}
