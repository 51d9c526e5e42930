// Command example is the program reprise with an environment and an algorithm of its own, which its user wrote. Such a
// program needs no fork: it can stand in a module of yours that requires this one.
package main

import (
	"fmt"
	"math"
	"strconv"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/workers/program"
)

// linked is what reprise does not have.
var linked = []program.Option{
	program.WithEnvironment("successor", "Say the number after the one that is shown.", newSuccessor),
	program.WithMethod(sign),
}

func main() { program.Main(linked...) }

// sign is a method: a trajectory is better than its group, or worse, whatever the difference.
var sign = credit.Algorithm{
	Name: "sign", By: "the sign of the difference from the group's mean (sign)",
	Formula: "A = sign(R − mean_G), 0 up to the margin", Paper: "ours",
	Compares: true, DropsFlat: true, Own: []option.Option{margin},
	Compute: func(in credit.Input, o credit.Options) (advantages, returns [][]float64, err error) {
		sum, members := map[int]float64{}, map[int]float64{}
		for row, group := range in.Groups {
			sum[group] += in.Returns[row]
			members[group]++
		}
		signs := make([]float64, len(in.Returns))
		for row, group := range in.Groups {
			if off := in.Returns[row] - sum[group]/members[group]; math.Abs(off) > margin.Number(o.Own) {
				signs[row] = math.Copysign(1, off)
			}
		}
		return in.ByRow(signs, nil)
	},
}

// margin is a field of specs: credit.margin.
var margin = option.Option{
	Section: option.Credit, Name: "margin", High: 1000, Default: 0.01, Source: option.Ours,
	Doc: "The smallest difference from the group's mean that counts (%s).",
}

// successor is an environment of one action: to say the number after the one that is shown.
type successor struct{ most int }

// newSuccessor declares the options and makes the environment of their values.
func newSuccessor(o *envs.Options) envs.Environment {
	s := &successor{}
	o.Int("most", &s.most, 4, 1, 20, "the greatest number that is shown: {range}")
	return s
}

func (s *successor) Name() string           { return "successor" }
func (s *successor) Instructions() string   { return "Say the number after the one that is shown." }
func (s *successor) MaxActions() int        { return 1 }
func (s *successor) MaxActionsPerTurn() int { return 1 }

func (s *successor) Actions() []string {
	names := make([]string, s.most+1)
	for i := range names {
		names[i] = strconv.Itoa(i + 1)
	}
	return names
}

// Certain implements envs.Certain: a search may keep the best of several replies.
func (*successor) Certain() bool { return true }

// Reset draws the number from the instance, which the members of a group share.
func (s *successor) Reset(instance, _ draw.Address) envs.Episode {
	instance.Member = 0
	return &asked{in: s, number: 1 + instance.Rand().IntN(s.most)}
}

// Cases are all numbers: the widest observation is among them.
func (s *successor) Cases() []envs.Episode {
	cases := make([]envs.Episode, s.most)
	for i := range cases {
		cases[i] = &asked{in: s, number: i + 1}
	}
	return cases
}

// asked is an episode of successor.
type asked struct {
	in     *successor
	number int
	said   string
}

func (a *asked) Observation() string                { return fmt.Sprintf("Number: %d", a.number) }
func (a *asked) Choices() []string                  { return a.in.Actions() }
func (a *asked) Legal(action string) (string, bool) { return envs.Lookup(a.Choices(), action) }
func (a *asked) StateKey() string                   { return fmt.Sprint(a.number, a.said) }
func (a *asked) Done() bool                         { return a.said != "" }
func (a *asked) Success() bool                      { return a.said == strconv.Itoa(a.number+1) }

func (a *asked) Step(action string) envs.Outcome {
	a.said = action
	out := envs.Outcome{Done: true, Success: a.Success(), Effective: true}
	if out.Success {
		out.Reward = 1
	}
	return out
}
